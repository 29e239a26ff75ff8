# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Recordings as CSV: a line per cycle with target, tip pose, state and joint positions."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
from rclpy.serialization import deserialize_message

from dls_ik.core.types import Array
from dls_ik.errors import PoseError
from dls_ik.model.rotations import quaternion_from_rotation
from dls_ik.ros.client.target_publisher import UNKNOWN_STATE
from dls_ik.ros.frames import matrix_from_pose, pose_errors
from dls_ik.ros.recording.definitions import message_class
from dls_ik.ros.recording.topics import (
    COMMAND_ROLE,
    JOINTS_KIND,
    POSE_KIND,
    STATE_ROLE,
    STATUS_ROLE,
    STATUSES_KIND,
    TARGET_ROLE,
    TIP_ROLE,
)
from dls_ik.servo.state import ServoState

POSE_FIELDS = ("x", "y", "z", "qx", "qy", "qz", "qw")
TABLE_TYPES = (JOINTS_KIND, POSE_KIND, STATUSES_KIND)


def table_header(joints: list[str]) -> list[str]:
    """Return the names of the columns of a table with these joints."""
    poses = [f"{name}_{part}" for name in ("target", "tip") for part in POSE_FIELDS]
    return ["t", "state", *poses, "position_error", "rotation_error", *joints]


def pose_cells(T: Array | None) -> list[Any]:
    """Return the cells of a pose: position and quaternion; empty cells for None."""
    if T is None:
        return [""] * len(POSE_FIELDS)
    return [*T[:3, 3].tolist(), *quaternion_from_rotation(T[:3, :3])]


class CsvWriter:
    """Writer of a table; each tip pose of the node is a line.

    Lines are written once joint positions are known. The target of a line is the last target pose;
    its cells are empty before the first one, and if its frame is not the frame of the tip pose.

    Args:
        path: File to create, or to replace.

    Raises:
        OSError: If the file cannot be created.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("w", newline="", encoding="utf-8")
        self._writer = csv.writer(self._file)
        self._topics: dict[str, tuple[str, str, Any]] = {}  # type, role and class
        self._state = UNKNOWN_STATE
        self._target: tuple[str, Array | None] = ("", None)  # frame and pose
        self._joints: list[str] = []
        self._q: dict[str, float] = {}
        self._measured: set[str] = set()  # joints whose positions are measured

    def add_topic(self, topic: str, kind: str, role: str) -> None:
        """Add a topic; a table has columns for joint states, poses and the status only."""
        if kind in TABLE_TYPES:
            self._topics[topic] = kind, role, message_class(kind)

    def write(self, topic: str, time: int, sent: int, data: bytes) -> None:
        """Keep the content of a message; write a line for a tip pose."""
        del sent
        if topic not in self._topics:
            return
        kind, role, message_type = self._topics[topic]
        message = deserialize_message(data, message_type)
        if kind == JOINTS_KIND:
            self._keep_joints(message, role)
        elif role == STATUS_ROLE:
            state = ServoState.from_message(message.code, message.message)
            self._state = UNKNOWN_STATE if state is None else state.name
        elif role == TARGET_ROLE:
            self._keep_target(message)
        elif role == TIP_ROLE:
            self._write_line(time, message)

    def flush(self) -> None:
        """Hand all lines to the operating system."""
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _keep_joints(self, message: Any, role: str) -> None:
        """Keep measured positions, and commanded positions of joints that are not measured."""
        if role not in (STATE_ROLE, COMMAND_ROLE) or len(message.position) != len(message.name):
            return  # a target, or a message with velocities or efforts only
        found = dict(zip(message.name, message.position, strict=True))
        if role == STATE_ROLE:
            self._measured |= found.keys()
        else:
            found = {name: q for name, q in found.items() if name not in self._measured}
        self._q |= found

    def _keep_target(self, message: Any) -> None:
        try:
            self._target = message.header.frame_id, matrix_from_pose(message.pose)
        except PoseError:
            self._target = "", None

    def _write_line(self, time: int, message: Any) -> None:
        if not self._q:
            return
        if not self._joints:
            self._joints = sorted(self._q)
            self._writer.writerow(table_header(self._joints))
        tip = matrix_from_pose(message.pose)
        frame, target = self._target
        if frame not in ("", message.header.frame_id):
            target = None
        errors = ("", "") if target is None else pose_errors(tip, target)
        q = [self._q[name] for name in self._joints]
        t = f"{1e-9 * time:.6f}"
        self._writer.writerow([t, self._state, *pose_cells(target), *pose_cells(tip), *errors, *q])


def read_table(path: Path) -> tuple[list[dict[str, str]], list[str], str]:
    """Read a CSV file of `dls-ik record` or of `dls-ik stream --record`.

    Returns:
        Lines by column, names of the joints, and a text if the last line is cut off, else empty.

    Raises:
        ValueError: If the file is not such a table.
    """
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        header = list(reader.fieldnames or ())
        fixed = table_header([])
        if header[: len(fixed)] != fixed:
            raise ValueError(f"its header must begin with {','.join(fixed[:3])},...")
        lines = list(reader)
    damage = ""
    if lines and None in lines[-1].values():
        lines, damage = lines[:-1], "the last line is cut off"
    bad = [i for i, line in enumerate(lines, 2) if not _is_line(line, header)]
    if bad:
        raise ValueError(
            f"line {bad[0]} must have {len(header)} values: finite numbers, except the state"
        )
    return lines, header[len(fixed) :], damage


def _is_line(line: dict[str, str], header: list[str]) -> bool:
    """Return whether all values of a line but the state are numbers or empty."""
    if None in line or None in line.values():
        return False
    try:
        values = [float(line[name] or 0.0) for name in header if name != "state"]
    except ValueError:
        return False
    return bool(np.isfinite(values).all())
