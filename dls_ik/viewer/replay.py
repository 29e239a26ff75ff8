# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Recorded joint paths for the replay, from arrays or from files written by ``dls-ik path``."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dls_ik.core.types import Array
from dls_ik.errors import DlsIkError
from dls_ik.model.robot import RobotModel
from dls_ik.text import listing, quoted

MAX_RECORDING_BYTES = 64 * 1024 * 1024
MAX_POINTS = 1_000_000
MAX_SHOWN_BREAKS = 3  # maximum number of reconfigurations of which the page shows the text
RECORDING_FORMS = (
    "a CSV file with the header t,JOINT,..., or JSON with joint_names, t and positions"
)


class PathFileError(DlsIkError):
    """A recorded path that cannot be read, or does not fit the robot."""


class Break(NamedTuple):
    """Reconfiguration of a replayed path."""

    t: float  # time at which it ends [s], from the start of the path
    explanation: str


class ReplayPath(NamedTuple):
    """Joint path that the page replays."""

    name: str
    t: Array  # (b,) increasing times [s]; the first time is 0
    q: Array  # (b, n) [rad or m]
    velocity: Array  # (b, n) [rad/s or m/s]
    breaks: tuple[Break, ...] = ()  # reconfigurations, in the order of their times

    @property
    def duration(self) -> float:
        """Time between the first and the last point [s]."""
        return float(self.t[-1])

    @property
    def message(self) -> str:
        """Text about the path for the page: number of points, duration, and reconfigurations."""
        text = f"{len(self.t)} points in {self.duration:.4g} s"
        shown = [f"{each.t:.4g} s ({each.explanation})" for each in self.breaks[:MAX_SHOWN_BREAKS]]
        if not shown:
            return text
        more = len(self.breaks) - len(shown)
        listed = ", ".join(shown) + (f" and {more} more" if more else "")
        return f"{text}; reconfiguration at {listed}"

    def at(self, seconds: float) -> tuple[Array, Array]:
        """Return joint positions (n,) and velocities (n,) at a time since the start [s].

        Positions are interpolated linearly.
        """
        i = int(np.clip(np.searchsorted(self.t, seconds, "right") - 1, 0, len(self.t) - 2))
        share = np.clip((seconds - self.t[i]) / (self.t[i + 1] - self.t[i]), 0.0, 1.0)
        return self.q[i] + share * (self.q[i + 1] - self.q[i]), self.velocity[i]


def joint_path(
    robot: RobotModel, times: ArrayLike, qs: ArrayLike, name: str = "path"
) -> ReplayPath:
    """Make a path for the replay from times and joint positions.

    Args:
        robot: Robot of the path.
        times: (b,) increasing times [s]; at least two.
        qs: (b, n) joint positions [rad or m].
        name: Name to show.

    Raises:
        PathFileError: If times do not increase, or there is not one time for each row of `qs`.
        JointValueError: If a row is not n finite numbers.
    """
    q = robot.validated(np.asarray(qs, dtype=float))
    try:
        t = np.asarray(times, dtype=float)
    except (TypeError, ValueError) as error:
        raise PathFileError(f"times must be numbers [s]; got {quoted(times)}") from error
    if q.ndim != 2 or t.shape != q.shape[:1]:
        raise PathFileError(
            f"a path must have one time for each row of joint positions (b, {robot.n}); got times "
            f"of shape {t.shape} and positions of shape {q.shape}"
        )
    if len(t) < 2 or not np.isfinite(t).all() or (np.diff(t) <= 0.0).any():
        raise PathFileError("a path must have at least two points at finite, increasing times")
    if len(t) > MAX_POINTS:
        raise PathFileError(f"a path must have at most {MAX_POINTS} points; got {len(t)}")
    steps = np.diff(q, axis=0) / np.diff(t)[:, None]
    return ReplayPath(name, t - t[0], q, np.concatenate([steps, steps[-1:]]))


def read_path(robot: RobotModel, name: str, content: bytes) -> ReplayPath:
    """Read a path from a file of ``dls-ik path`` (CSV or JSON) or from a recording of the page.

    Joints in the file that the robot does not have are ignored.

    Args:
        robot: Robot of the path.
        name: Name of the file.
        content: Content of the file.

    Raises:
        PathFileError: If the file has another format, lacks joints, or is too large.
    """
    if len(content) > MAX_RECORDING_BYTES:
        raise PathFileError(f"{quoted(name)} is larger than {MAX_RECORDING_BYTES >> 20} MB")
    breaks: tuple[Break, ...] = ()
    try:
        text = content.decode("utf-8-sig")
        if text.lstrip().startswith("{"):
            document = json.loads(text)
            columns, breaks = _json_columns(document), _json_breaks(document)
        else:
            columns = _csv_columns(text)
    except (ValueError, TypeError, KeyError, IndexError, csv.Error, RecursionError) as error:
        raise PathFileError(f"{quoted(name)} is not {RECORDING_FORMS}") from error
    missing = [joint for joint in robot.joint_names if joint not in columns]
    if missing:
        raise PathFileError(
            f"{quoted(name)} has no joint {listing(missing)}; it has "
            f"{listing([joint for joint in columns if joint != TIME_KEY])}"
        )
    q = np.stack([columns[joint] for joint in robot.joint_names], axis=1)
    path = joint_path(robot, columns[TIME_KEY], q, name)
    start = float(columns[TIME_KEY][0])
    return path._replace(breaks=tuple(each._replace(t=each.t - start) for each in breaks))


def stored_scenes(file: Path) -> list[Path]:
    """Return the scene files that a JSON file of ``dls-ik path`` names; [] for other files."""
    try:
        if file.suffix.lower() != ".json" or file.stat().st_size > MAX_RECORDING_BYTES:
            return []
        named = json.loads(file.read_text(encoding="utf-8-sig")).get(SCENE_KEY, [])
        return [file.parent / str(name) for name in named]
    except (OSError, ValueError, AttributeError, TypeError, RecursionError):
        return []  # the reader of the path reports the error


TIME_KEY, SCENE_KEY, BREAKS_KEY = "t", "scene", "reconfigurations"
ARM, PAGE_TIME = "arm", "time [s]"  # columns of a recording of the page


def _json_columns(document: dict[str, Any]) -> dict[str, Array]:
    positions = np.array(document["positions"], dtype=float)
    names = [str(name) for name in document["joint_names"]]
    columns = dict(zip(names, positions.T, strict=True))
    return {**columns, TIME_KEY: np.array(document["t"], dtype=float)}


def _json_breaks(document: dict[str, Any]) -> tuple[Break, ...]:
    """Return the reconfigurations in a JSON document, sorted by their times."""
    given = document.get(BREAKS_KEY, [])
    found = [Break(float(each["t"]), str(each["explanation"])) for each in given]
    if not all(np.isfinite(each.t) for each in found):
        raise ValueError("the time of a reconfiguration is not finite")
    return tuple(sorted(found))


def _csv_columns(text: str) -> dict[str, Array]:
    """Return the columns of a CSV file by name; of a recording, those of the first arm.

    The columns are named as in a file of ``dls-ik path``: ``t`` and the names of the joints.
    """
    reader = csv.DictReader(io.StringIO(text, newline=""))
    rows = list(reader)
    header = reader.fieldnames or []
    if PAGE_TIME in header:
        rows = [row for row in rows if row[ARM] == rows[0][ARM]]
        names = {name: name[2:].rsplit(" ", 1)[0] for name in header if name.startswith("q ")}
        names[PAGE_TIME] = TIME_KEY
    else:
        names = {name: name for name in header}
    table = {ours: np.array([float(row[name]) for row in rows]) for name, ours in names.items()}
    if TIME_KEY not in table:
        raise KeyError(TIME_KEY)
    return table
