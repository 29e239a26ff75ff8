# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Content of a recording: targets, joint positions and robot, with times from its start."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from geometry_msgs.msg import PoseStamped
from rclpy.serialization import deserialize_message

from dls_ik.core.types import Array
from dls_ik.errors import RobotModelError
from dls_ik.model.robot import RobotModel
from dls_ik.model.rotations import rotation_from_quaternion, transform
from dls_ik.ros.frames import fill_pose, nanoseconds, pose_errors
from dls_ik.ros.recording.definitions import definition_difference, message_class
from dls_ik.ros.recording.files import RecordedMessage, RecordingError, read_messages
from dls_ik.ros.recording.tables import POSE_FIELDS, read_table
from dls_ik.ros.recording.topics import (
    INFO_TOPIC,
    JOINTS_KIND,
    POSE_KIND,
    TARGET_KINDS,
    TEXT_KIND,
    RecordingInfo,
    joint_topic,
)
from dls_ik.ros.robot_source import DESCRIPTION_TOPIC, robot_from_text
from dls_ik.text import listing

MAX_GAP = 10.0  # [s] longer gaps between two messages are shortened to this time
MAX_TIP_DIFFERENCE = 1e-3  # [m, rad] larger differences at equal joint positions: another robot
MAX_STAMP_DRIFT = 0.2  # [s] larger changes of the difference of arrival and stamp are jumps
NUM_COMPARED = 20  # random configurations at which two robots are compared
TABLE_TARGET = "target_pose"  # topic of the targets of a table


class RecordedTarget(NamedTuple):
    """Target that was sent to the node."""

    time: float  # arrival after the start of the recording [s]
    topic: str
    kind: str  # type of the message
    message: Any


class Recording(NamedTuple):
    """Content of a recording."""

    path: Path
    info: RecordingInfo
    targets: tuple[RecordedTarget, ...]
    joint_names: tuple[str, ...]  # (n,) names in messages
    times: Array  # (k,) times of the joint positions [s]
    q: Array  # (k, n) joint positions [rad or m]
    urdf: str  # empty: not recorded
    notes: tuple[str, ...] = ()  # texts about lost messages and changed times

    def has_joints(self, names: Sequence[str]) -> bool:
        """Return whether positions of all named joints are recorded."""
        return bool(len(self.q)) and set(names) <= set(self.joint_names)

    def positions_at(self, t: float, names: Sequence[str]) -> Array:
        """Return the joint positions (m,) of named joints at a time [s].

        They are the newest recorded positions at that time; before the first positions, the first.
        """
        row = self.q[max(int(np.searchsorted(self.times, t, "right")) - 1, 0)]
        return row[[self.joint_names.index(name) for name in names]]

    def check_robot(self, names: Sequence[str], robot: RobotModel) -> None:
        """Check that the recording is of a robot with the same joints and the same kinematics.

        Args:
            names: (n,) joint names of the node from base to tip, as in messages.
            robot: Robot of the node.

        Raises:
            RecordingError: If the recording is of another robot.
        """
        known = self.info.joints or self.joint_names
        missing = [name for name in names if name not in known]
        if known and missing:
            raise RecordingError(
                f"{self.path} is of another robot: it has no joint {listing(missing)}; its joints "
                f"are {listing(known)}"
            )
        if not self.urdf:
            return
        try:
            other = robot_from_text(self.urdf, robot.base, robot.tip)
            same_joints = other.joint_names == robot.joint_names
        except RobotModelError as error:
            raise RecordingError(f"{self.path} is of another robot: {error}") from error
        if not same_joints:
            raise RecordingError(
                f"{self.path} is of another robot: the joints from {robot.base} to {robot.tip} are "
                f"{listing(other.joint_names)} in the recording, {listing(robot.joint_names)} in "
                "the node"
            )
        q = robot.random(NUM_COMPARED, np.random.default_rng(0))
        found = [pose_errors(*pair) for pair in zip(robot.fk(q), other.fk(q), strict=True)]
        position, rotation = np.max(found, axis=0)
        if max(position, rotation) > MAX_TIP_DIFFERENCE:
            raise RecordingError(
                f"{self.path} is of another robot: at equal joint positions its tip is up to "
                f"{position:.3g} m and {rotation:.3g} rad elsewhere; --force replays it anyway"
            )


def read_recording(path: Path) -> Recording:
    """Read a recording: an MCAP file, the folder of a rosbag2, or a CSV file.

    Raises:
        RecordingError: If there is no such file, it has no targets and no joint positions, or its
            messages have another definition than the installed ones.
    """
    try:
        found = _read_csv(path) if path.suffix.lower() == ".csv" else _read_bag(path)
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise RecordingError(f"cannot read {path}: {error}") from error
    if not found.targets and not len(found.q):
        raise RecordingError(
            f"{path} has nothing to replay: it has no targets (geometry_msgs PoseStamped, "
            "TwistStamped, Twist or PoseArray) and no joint states"
        )
    return found


def _read_bag(path: Path) -> Recording:
    """Read an MCAP file or a rosbag2."""
    messages, damage = read_messages(path)
    notes = [damage] if damage else []
    _check_definitions(path, messages)
    info = _find_info(messages)
    times, jumps = steady_times([message.time for message in messages])
    notes += jumps
    targets, urdf = [], ""
    joints = _JointTable(info.joints)
    of_joints = {m.topic: info.roles.get(m.topic, "") for m in messages if m.kind == JOINTS_KIND}
    joints_name = joint_topic(of_joints)
    for t, message in zip(times.tolist(), messages, strict=True):
        role = info.roles.get(message.topic, "") if info.roles else ""
        if message.kind in (*TARGET_KINDS, JOINTS_KIND) and _is_target(message.topic, role):
            content = _read(path, message)
            targets.append(RecordedTarget(t, message.topic, message.kind, content))
        elif message.kind == JOINTS_KIND and message.topic.endswith(joints_name):
            joints.add(t, _read(path, message))
        elif message.kind == TEXT_KIND and message.topic.endswith(f"/{DESCRIPTION_TOPIC}"):
            urdf = _read(path, message).data
    return Recording(path, info, tuple(targets), *joints.content(), urdf, tuple(notes))


def _is_target(topic: str, role: str) -> bool:
    """Return whether a topic has targets: by its role, or without a role by ``/target_``."""
    return role == "target" if role else "/target_" in f"/{topic.lstrip('/')}"


def _check_definitions(path: Path, messages: Sequence[RecordedMessage]) -> None:
    """Check that messages which are read have the installed definitions.

    Raises:
        RecordingError: If a definition differs.
    """
    kinds = {message.kind: message.definition for message in messages}
    for kind in (*TARGET_KINDS, JOINTS_KIND):
        try:
            difference = definition_difference(kind, kinds.get(kind, ""))
            message_class(kind) if kind in kinds else None
        except ImportError as error:
            raise RecordingError(
                f"{path} has messages of {kind}, and this type is not installed: {error}"
            ) from error
        if difference:
            raise RecordingError(f"{path} has another definition of its messages: {difference}")


def _find_info(messages: Sequence[RecordedMessage]) -> RecordingInfo:
    """Return the last stored information about the recorded node, or empty information."""
    texts = [m.data for m in messages if m.kind == TEXT_KIND and m.topic.endswith(f"/{INFO_TOPIC}")]
    if not texts:
        return RecordingInfo()
    return RecordingInfo.from_text(deserialize_message(texts[-1], message_class(TEXT_KIND)).data)


def _read(path: Path, message: RecordedMessage) -> Any:
    """Return the content of a message.

    Raises:
        RecordingError: If its bytes are not a message of its type.
    """
    try:
        return deserialize_message(message.data, message_class(message.kind))
    except Exception as error:  # the type of the exception depends on the middleware
        raise RecordingError(
            f"{path}: a message of {message.topic} is not a {message.kind}: {error}"
        ) from error


class _JointTable:
    """Joint positions that arrive in several messages.

    Args:
        names: Names of the joints in messages; empty: all that occur in the first message.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self._known: dict[str, float] = {}
        self._offset: float | None = None  # [s] arrival minus stamp of the first message
        self._times: list[float] = []
        self._rows: list[list[float]] = []

    def add(self, t: float, message: Any) -> None:
        """Add a JointState; ignore it if a position is not finite or has no name."""
        if len(message.name) != len(message.position) or not np.isfinite(message.position).all():
            return
        self._names = self._names or tuple(message.name)
        t = self._measured_at(t, 1e-9 * nanoseconds(message.header.stamp))
        self._known |= dict(zip(message.name, message.position, strict=True))
        if self._known.keys() >= set(self._names) and (not self._times or t > self._times[-1]):
            self._times.append(t)
            self._rows.append([self._known[name] for name in self._names])

    def _measured_at(self, arrival: float, stamp: float) -> float:
        """Return the time of a measurement [s], computed from its stamp.

        The stamp is shifted to the time of arrival of the first message; after a jump of the
        stamps, to the time of arrival of the current message.
        """
        if self._offset is None or abs(stamp + self._offset - arrival) > MAX_STAMP_DRIFT:
            self._offset = arrival - stamp
        return stamp + self._offset

    def content(self) -> tuple[tuple[str, ...], Array, Array]:
        """Return names (n,), times (k,) and positions (k, n)."""
        q = np.array(self._rows).reshape(len(self._rows), len(self._names))
        return self._names, np.array(self._times), q


def steady_times(stamps: Sequence[int]) -> tuple[Array, list[str]]:
    """Return times that start at 0 and never jump, and notes about jumps of the clock.

    If the clock jumps back, the message has the time of the previous message; a gap longer than
    MAX_GAP is shortened to MAX_GAP.

    Args:
        stamps: (k,) times of arrival [ns].
    """
    first = stamps[0] if stamps else 0  # differences of large integers are exact
    steps = np.diff(np.array([1e-9 * (stamp - first) for stamp in stamps], np.float64))
    back, ahead = steps < 0.0, steps > MAX_GAP
    notes = []
    if back.any():
        notes.append(
            f"the clock jumped back {np.count_nonzero(back)} times, by up to {-steps.min():.3g} s; "
            "messages after a jump follow at once"
        )
    if ahead.any():
        notes.append(
            f"{np.count_nonzero(ahead)} gaps of up to {steps.max():.3g} s are shortened to "
            f"{MAX_GAP:g} s"
        )
    return np.concatenate([[0.0], np.cumsum(np.clip(steps, 0.0, MAX_GAP))])[: len(stamps)], notes


def _read_csv(path: Path) -> Recording:
    """Read a CSV table; each line with a target pose becomes a recorded target."""
    lines, names, damage = read_table(path)
    stamps = [round(1e9 * float(line["t"])) for line in lines]
    times, jumps = steady_times(stamps)
    targets = []
    for t, line in zip(times.tolist(), lines, strict=True):
        if line["target_x"]:
            numbers = [float(line[f"target_{name}"]) for name in POSE_FIELDS]
            targets.append(RecordedTarget(t, TABLE_TARGET, POSE_KIND, _pose_message(numbers)))
    q = np.array([[float(line[name] or "nan") for name in names] for line in lines])
    q = q.reshape(len(lines), len(names))
    complete = np.isfinite(q).all(axis=1) if names else np.zeros(0, bool)
    notes = tuple([damage] if damage else []) + tuple(jumps)
    return Recording(
        path, RecordingInfo(), tuple(targets), tuple(names), times[complete], q[complete], "", notes
    )


def _pose_message(numbers: Sequence[float]) -> Any:
    """Return a PoseStamped for position and quaternion."""
    message = PoseStamped()
    fill_pose(message.pose, transform(rotation_from_quaternion(numbers[3:]), np.array(numbers[:3])))
    return message
