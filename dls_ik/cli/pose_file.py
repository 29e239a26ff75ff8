"""Files of poses: x, y, z and a rotation in each line, with times or without."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dls_ik.cli.pose import pose_of
from dls_ik.core.types import Array
from dls_ik.exceptions import PoseError

PLACE, QUATERNION, ANGLES = ("x", "y", "z"), ("qx", "qy", "qz", "qw"), ("roll", "pitch", "yaw")
FORMS = "x,y,z,qx,qy,qz,qw or x,y,z,roll,pitch,yaw, with t before or after it if there are times"


class TimedPoses(NamedTuple):
    """The poses of a file."""

    times: Array | None  # (k,) [s] from the first; None: the file has no times
    poses: Array  # (k, 4, 4) [m]


def read_poses(path: str) -> TimedPoses:
    """Read a CSV file of poses; without a line of names the columns are told by their number.

    Raises:
        PoseError: a file that cannot be read, or a line of it that is no pose.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise PoseError(
            f"cannot read {path}: {getattr(error, 'strerror', None) or error}"
        ) from error
    lines = [
        (number, [word.strip() for word in words])
        for number, words in enumerate(csv.reader(text.splitlines()), 1)
        if words and any(word.strip() for word in words) and not words[0].lstrip().startswith("#")
    ]
    if lines and not _is_number(lines[0][1][0]):
        names, lines = tuple(word.lower() for word in lines[0][1]), lines[1:]
    else:
        names = _names(len(lines[0][1])) if lines else ()
    if not lines:
        raise PoseError(f"{path} has no poses; its columns are {FORMS}")
    _check_names(path, names)
    rows = [_row(path, number, words, names) for number, words in lines]
    poses = np.array(
        [_pose(path, number, row) for (number, _), row in zip(lines, rows, strict=True)]
    )
    return TimedPoses(_times(path, rows), poses)


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _names(count: int) -> tuple[str, ...]:
    rotation = {6: ANGLES, 7: QUATERNION, 8: QUATERNION}.get(count, ())
    return (*(("t",) if count == 8 else ()), *PLACE, *rotation)


def _check_names(path: str, names: tuple[str, ...]) -> None:
    rotations = [all(name in names for name in form) for form in (QUATERNION, ANGLES)]
    if not all(name in names for name in PLACE) or rotations.count(True) != 1:
        shown = ",".join(names) or "another number of them"
        raise PoseError(f"{path}: columns are {FORMS}, not {shown[:80]}")


def _row(path: str, number: int, words: list[str], names: tuple[str, ...]) -> dict[str, float]:
    if len(words) != len(names):
        raise PoseError(f"{path}, line {number}: {len(names)} columns, not {len(words)}")
    row = {}
    for name, word in zip(names, words, strict=True):
        if name not in (*PLACE, *QUATERNION, *ANGLES, "t"):
            continue
        if not _is_number(word) or not np.isfinite(float(word)):
            raise PoseError(f"{path}, line {number}: {name} is a finite number, not {word[:40]!r}")
        row[name] = float(word)
    return row


def _pose(path: str, number: int, row: dict[str, float]) -> Array:
    xyz = tuple(row[name] for name in PLACE)
    try:
        if "qw" in row:
            return pose_of(xyz, quat=tuple(row[name] for name in QUATERNION))
        return pose_of(xyz, rpy=tuple(row[name] for name in ANGLES))
    except PoseError as error:
        raise PoseError(f"{path}, line {number}: {error}") from error


def _times(path: str, rows: list[dict[str, float]]) -> Array | None:
    if "t" not in rows[0]:
        return None
    times = np.array([row["t"] for row in rows])
    if (np.diff(times) <= 0.0).any():
        first = int(np.argmax(np.diff(times) <= 0.0)) + 1
        raise PoseError(f"{path}: times increase; that of pose {first + 1} is {times[first]:g}")
    since: Array = times - times[0]
    return since
