"""Files of poses: CSV with a header, or JSON with matrices."""

from __future__ import annotations

import csv
import json
import os
import select
import stat
import sys
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from dls_ik.cli.output import STDOUT
from dls_ik.cli.pose import MILLI, doubt_angles, pose_of
from dls_ik.core.types import Array
from dls_ik.errors import PoseError

POSITION = ("x", "y", "z")
RPY, QUATERNION, TIME = ("roll", "pitch", "yaw"), ("qx", "qy", "qz", "qw"), "t"
PATIENCE = 10.0  # [s] for the first byte of a pipe
LARGEST = 2**29  # bytes of a file, some millions of poses
LATEST = 2.0**31  # [s] what a time of ROS holds
HEADERS = f"{','.join(POSITION + QUATERNION)} or {','.join(POSITION + RPY)}, and t for times"


class PoseFile(NamedTuple):
    """Poses as they were given."""

    poses: Array  # (b, 4, 4) [m]
    times: Array | None  # (b,) [s]
    places: tuple[str, ...]  # (b,) where each pose stands, such as "line 3"


class Entry(NamedTuple):
    """One pose of a file."""

    place: str
    T: Array
    t: float | None


def read_poses(path: str, deg: bool = False, mm: bool = False) -> PoseFile:
    """Read a file of poses, or standard input for ``-``; what begins with ``[`` is JSON.

    Args:
        deg: roll, pitch and yaw are in degrees.
        mm: positions are in millimetres.

    Raises:
        PoseError: no such file, or not poses; the message names the line and what is valid.
    """
    text = _text(path)
    shown = "standard input" if path == STDOUT else path
    try:
        is_json = text.lstrip().startswith(("[", "{"))
        entries = list(_json_entries(text) if is_json else _csv_entries(text, deg))
        times = _times(entries)
    except csv.Error as error:
        raise PoseError(f"{shown} is no CSV file: {error}") from error
    except PoseError as error:
        raise PoseError(f"{shown}, {error}") from error
    if not entries:
        raise PoseError(f"{shown} has no poses; a pose a line below the header {HEADERS}")
    poses = np.stack([entry.T for entry in entries])
    poses[:, :3, 3] *= MILLI if mm else 1.0
    return PoseFile(poses, times, tuple(entry.place for entry in entries))


def _text(path: str) -> str:
    try:
        data = _bounded(sys.stdin.buffer) if path == STDOUT else _content(path)
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PoseError(f"{path} is no text, but a CSV or JSON file of poses is wanted") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise PoseError(f"cannot read {path}: {reason}") from error


def _content(path: str) -> bytes:
    """The bytes of a file, or of a pipe that somebody writes to, as ``<(command)`` makes one.

    Raises:
        OSError, ValueError: it cannot be read, or would never end.
    """
    with open(path, "rb", opener=_open_at_once) as file:
        kind = os.fstat(file.fileno()).st_mode
        if stat.S_ISFIFO(kind):
            if not select.select([file], [], [], PATIENCE)[0]:
                raise ValueError(f"it is a pipe, and nobody writes to it within {PATIENCE:g} s")
        elif not stat.S_ISREG(kind) and not file.isatty():
            raise ValueError("it is no file, but a device")
        os.set_blocking(file.fileno(), True)
        return _bounded(file)


def _open_at_once(path: str, flags: int) -> int:
    """Open a file; a pipe without waiting for a writer."""
    return os.open(path, flags | os.O_NONBLOCK)


def _bounded(file: Any) -> bytes:
    data = bytes(file.read(LARGEST + 1))
    if len(data) > LARGEST:
        raise ValueError(f"it is larger than {LARGEST // 2**20} MiB")
    return data


def _csv_entries(text: str, deg: bool) -> Iterator[Entry]:
    reader = csv.reader(text.splitlines(), skipinitialspace=True)
    rows = ((reader.line_num, row) for row in reader if _counts(row))
    number, header = next(rows, (1, []))
    names = [name.strip().lower() for name in header]
    rotation, largest = _rotation_columns(names, number), 0.0
    for number, row in rows:
        place = f"line {number}"
        if len(row) != len(names):
            raise PoseError(f"{place}: {len(row)} values, but the header has {len(names)} columns")
        values = {n: _number(w, n, place) for n, w in zip(names, row, strict=True)}
        xyz = tuple(values[name] for name in POSITION)
        angles = tuple(values[name] for name in rotation)
        if rotation == RPY:
            angles = tuple(np.radians(angles).tolist()) if deg else angles
            largest = max(largest, *map(abs, angles))
        given = {"quat": angles} if rotation == QUATERNION else {"rpy": angles}
        try:
            yield Entry(place, pose_of(xyz, **given), values.get(TIME))
        except PoseError as error:
            raise PoseError(f"{place}: {error}") from error
    doubt_angles("the file", [largest])


def _counts(row: list[str]) -> bool:
    return any(word.strip() for word in row) and not row[0].lstrip().startswith("#")


def _rotation_columns(names: list[str], number: int) -> tuple[str, ...]:
    for rotation in (QUATERNION, RPY):
        wanted = {*POSITION, *rotation}
        if len(set(names)) == len(names) and wanted <= set(names) <= wanted | {TIME}:
            return rotation
    raise PoseError(f"line {number}: the header is {HEADERS}; given {','.join(names) or 'nothing'}")


def _number(word: str, name: str, place: str) -> float:
    try:
        value = float(word)
    except ValueError:
        value = np.nan
    if not np.isfinite(value):
        raise PoseError(f"{place}: {name} is {word.strip()!r}, not a finite number")
    return value


def _json_entries(text: str) -> Iterator[Entry]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PoseError(f"not JSON: {error}") from error
    if not isinstance(document, list):
        raise PoseError("a list of 4x4 matrices is wanted, each row by row")
    for number, given in enumerate(document, start=1):
        yield _json_entry(given, f"pose {number}")


def _json_entry(given: Any, place: str) -> Entry:
    from dls_ik.solver.poses import validated_pose

    t, matrix = None, given
    if isinstance(given, dict):
        if not {"matrix"} <= set(given) <= {"matrix", TIME}:
            raise PoseError(f"{place}: an object has 'matrix', and 't' if times are given")
        t, matrix = given.get(TIME), given["matrix"]
        if t is not None and (isinstance(t, bool) or not isinstance(t, (int, float))):
            raise PoseError(f"{place}: t is {t!r}, not a number")
    try:
        return Entry(place, validated_pose(matrix), t)
    except PoseError as error:
        raise PoseError(f"{place}: {error}") from error


def _times(entries: Iterable[Entry]) -> Array | None:
    """(b,) [s], each later than the one before; None where none is given."""
    times: list[float] = []
    for i, entry in enumerate(entries):
        if (entry.t is None) != (i > 0 and not times) and i > 0:
            raise PoseError(f"{entry.place}: t is given for some poses only")
        if entry.t is None:
            continue
        if not 0.0 <= entry.t < LATEST:
            raise PoseError(f"{entry.place}: t is {entry.t}, not a time from 0 [s]")
        if times and entry.t <= times[-1]:
            raise PoseError(f"{entry.place}: t is {entry.t}, not later than {times[-1]} before it")
        times.append(float(entry.t))
    return np.array(times) if times else None
