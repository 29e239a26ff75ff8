# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Poses on the command line: options that give a pose, files of poses, and printing of poses."""

from __future__ import annotations

import csv
import json
import os
import select
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import numpy as np

from dls_ik.cli import output
from dls_ik.cli.options import Command, Vector, parse_number, parse_numbers, warn_large_angles
from dls_ik.cli.terminal import figure
from dls_ik.core.types import Array
from dls_ik.errors import PoseError
from dls_ik.model.rotations import (
    quaternion_from_rotation,
    rotation_from_quaternion,
    rotation_from_rpy,
    rpy_from_rotation,
    transform,
)

if TYPE_CHECKING:
    from dls_ik.model.robot import RobotModel

MILLI = 1e-3
MAX_REACH = 20.0  # [m] larger than the reach of any arm
MAX_LENGTHS = 10.0  # maximum plausible distance of a pose from the base, in lengths of the arm

Entry = tuple[str, Array, float | None]  # place in the file, pose (4, 4), time [s]
POSITION = ("x", "y", "z")
RPY_COLUMNS, QUATERNION_COLUMNS = ("roll", "pitch", "yaw"), ("qx", "qy", "qz", "qw")
TIME_COLUMN = "t"
POSE_HEADERS = (
    f"{','.join(POSITION + QUATERNION_COLUMNS)} or {','.join(POSITION + RPY_COLUMNS)}, and t for "
    "times"
)
PIPE_TIMEOUT = 10.0  # maximum time until the first byte of a pipe [s]
MAX_POSE_FILE_BYTES = 2**29  # maximum size of a file, sufficient for millions of poses
MAX_ROS_TIME = 2.0**31  # [s] upper bound of a ROS time


# Options


def unit_options(command: Command) -> Command:
    """Add the flags --deg and --mm, which select the units of given values, to a command."""
    for name, words in (
        ("--mm", "Positions are in millimetres."),
        ("--deg", "Angles, also of joints, are in degrees."),
    ):
        command = click.option(name, is_flag=True, help=words)(command)
    return command


class ChosenPose(NamedTuple):
    """Pose given on the command line, and the values of the flags --deg and --mm."""

    T: Array | None  # (4, 4) pose [m]; None: no pose given
    deg: bool
    mm: bool


def pose_options(command: Command) -> Command:
    """Add --xyz, --rpy, --quat, --matrix, --deg and --mm to a command.

    The command receives them as one argument `pose` of type ChosenPose.
    """

    @_numbers_option("--xyz", 3, "X Y Z", "Position of the pose [m].")
    @_numbers_option("--rpy", 3, "R P Y", "Roll, pitch, yaw as in URDF [rad]. Default: 0.")
    @_numbers_option("--quat", 4, "X Y Z W", "Rotation as a quaternion instead of --rpy.")
    @click.option(
        "--matrix",
        callback=lambda _, __, given: None if given is None else parse_numbers(given, 12, 16),
        metavar="NUMBERS",
        help="The whole pose as 12 or 16 numbers, row by row, in quotes.",
    )
    @unit_options
    @wraps(command)
    def run(
        xyz: Vector, rpy: Vector, quat: Vector, matrix: Vector, deg: bool, mm: bool, **rest: Any
    ) -> Any:
        T = given_pose(xyz, rpy, quat, matrix, deg, mm)
        return command(pose=ChosenPose(T, deg, mm), **rest)

    return run


def _numbers_option(
    name: str, count: int, metavar: str, words: str
) -> Callable[[Command], Command]:
    """Return a decorator that adds an option with `count` numbers and the help text `words`."""
    return click.option(name, type=float, nargs=count, metavar=metavar, help=words)


def given_pose(
    xyz: Vector, rpy: Vector, quat: Vector, matrix: Vector, deg: bool = False, mm: bool = False
) -> Array | None:
    """Return the pose (4, 4) [m] given by the options, or None if no pose is given.

    Args:
        xyz: (3,) value of --xyz.
        rpy: (3,) value of --rpy.
        quat: (4,) value of --quat, x y z w.
        matrix: (12,) or (16,) value of --matrix, row by row.
        deg: Whether `rpy` is in degrees.
        mm: Whether positions are in millimetres.

    Raises:
        click.UsageError: If options exclude each other, or the position is missing.
        PoseError: If the pose is not a finite rigid transform.
    """
    if matrix is not None:
        if any(given is not None for given in (xyz, rpy, quat)):
            raise click.UsageError("give either --matrix, or --xyz with --rpy or --quat")
        T = np.array([*matrix, 0.0, 0.0, 0.0, 1.0][:16]).reshape(4, 4)
        T[:3, 3] *= MILLI if mm else 1.0
        return _checked(T)
    if rpy is not None and quat is not None:
        raise click.UsageError("give either --rpy or --quat")
    if xyz is None:
        if rpy is not None or quat is not None:
            raise click.UsageError(f"{'--rpy' if quat is None else '--quat'} needs --xyz")
        return None
    if deg and rpy is not None:
        rpy = tuple(np.radians(rpy).tolist())
    elif rpy is not None:
        warn_large_angles("--rpy", rpy)
    try:
        return pose_of(tuple(MILLI * x for x in xyz) if mm else xyz, rpy, quat)
    except PoseError as error:
        raise click.UsageError(str(error)) from error


def pose_of(xyz: tuple[float, ...], rpy: Vector = None, quat: Vector = None) -> Array:
    """Return the pose (4, 4) with a given position and rotation.

    Args:
        xyz: (3,) position [m].
        rpy: (3,) roll, pitch, yaw [rad]; None for no rotation.
        quat: (4,) quaternion x y z w, used instead of `rpy` if given.

    Raises:
        PoseError: If a number is not finite, or the quaternion has zero length.
    """
    if not np.isfinite([*xyz, *(rpy or ()), *(quat or ())]).all():
        raise PoseError("a pose must consist of finite numbers")
    R = rotation_from_quaternion(quat) if quat else rotation_from_rpy(*(rpy or (0.0, 0.0, 0.0)))
    return _checked(transform(R, np.array(xyz)))


def _checked(T: Array) -> Array:
    """Check that T (4, 4) is a pose, and return it as an array for the kernels.

    Raises:
        PoseError: If the pose is not valid.
    """
    from dls_ik.solver.poses import checked_pose

    return checked_pose(T)


def warn_far_poses(subject: str, T: Array, robot: RobotModel | None = None) -> None:
    """Warn if a pose is far out of reach, because it may be meant in millimetres.

    Args:
        subject: Subject of the message, such as "the pose".
        T: (..., 4, 4) poses [m].
        robot: Robot whose length bounds the reach; None bounds it by MAX_REACH.
    """
    distance = float(np.linalg.norm(T[..., :3, 3], axis=-1).max())
    if robot is None:
        is_far, than = distance > MAX_REACH, "beyond the reach of any arm"
    else:
        from dls_ik.model.pose_functionals import path_elements

        paths = (path_elements(robot.chain, tip) for tip in range(len(robot.tips)))
        length = max(path.length for path in paths)
        lengths = distance / length if length > 0.0 else 0.0
        is_far, than = lengths > MAX_LENGTHS, f"{lengths:.0f} times the length of {robot.name}"
    if is_far:
        place = f"{distance:.3g} m away, {than}"
        output.warn(f"{subject} is {place}; use --mm for positions in millimetres")


# Printing


def pose_facts(T: Array) -> dict[str, Any]:
    """Return a pose (4, 4) as a dict with position, roll, pitch, yaw, quaternion and matrix."""
    return {
        "xyz": T[:3, 3].tolist(),
        "rpy": rpy_from_rotation(T[:3, :3]),
        "quat": quaternion_from_rotation(T[:3, :3]),
        "matrix": T.tolist(),
    }


def pose_pairs(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """Return names of options and rounded values for a pose, which the options accept as input."""
    pairs = [(name, columns(facts[name])) for name in ("xyz", "rpy", "quat")]
    return [*pairs, *zip(("matrix", "", ""), map(columns, facts["matrix"]), strict=False)]


def columns(numbers: Iterable[float]) -> str:
    """Return numbers as text in columns of equal width."""
    return " ".join(f"{figure(x, 6):>10}" for x in numbers)


# Files


class PoseFile(NamedTuple):
    """Content of a file of b poses."""

    poses: Array  # (b, 4, 4) [m]
    times: Array | None  # (b,) [s]
    places: tuple[str, ...]  # (b,) place of each pose in the file, such as "line 3"


def read_poses(path: str, deg: bool = False, mm: bool = False) -> PoseFile:
    """Read a CSV or JSON file of poses; the path ``-`` stands for standard input.

    Args:
        path: Path of the file.
        deg: Whether roll, pitch and yaw are in degrees.
        mm: Whether positions are in millimetres.

    Raises:
        PoseError: If the file cannot be read or does not contain poses; the message contains the
            line and the valid forms.
    """
    text = _read_text(path)
    shown = "standard input" if path == output.STDOUT else path
    try:
        is_json = text.lstrip().startswith(("[", "{"))
        entries = list(_json_entries(text) if is_json else _csv_entries(text, deg))
        times = _times(entries)
    except csv.Error as error:
        raise PoseError(f"{shown} is not a CSV file: {error}") from error
    except PoseError as error:
        raise PoseError(f"{shown}, {error}") from error
    if not entries:
        raise PoseError(
            f"{shown} has no poses; expected a header {POSE_HEADERS}, and a pose per line"
        )
    places, poses, _ = zip(*entries, strict=True)
    Ts = np.stack(poses)
    Ts[:, :3, 3] *= MILLI if mm else 1.0
    return PoseFile(Ts, times, places)


def _read_text(path: str) -> str:
    """Return the text of a file, or of standard input if the path is ``-``.

    Raises:
        PoseError: If the file cannot be read, or is not text.
    """
    try:
        data = _read_bounded(sys.stdin.buffer) if path == output.STDOUT else _read_file(path)
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PoseError(f"{path} is not text; expected a CSV or JSON file of poses") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise PoseError(f"cannot read {path}: {reason}") from error


def _read_file(path: str) -> bytes:
    """Return the content of a regular file, or of a pipe such as ``<(command)`` in a shell.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If the file is a device or too large, or no data arrives in the pipe in time.
    """
    # A blocking open would wait until another process opens the pipe for writing.
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        kind = os.fstat(file.fileno()).st_mode
        if stat.S_ISFIFO(kind):
            if not select.select([file], [], [], PIPE_TIMEOUT)[0]:
                raise ValueError(f"nothing is written to this pipe within {PIPE_TIMEOUT:g} s")
        elif not stat.S_ISREG(kind) and not file.isatty():
            raise ValueError("it is a device; expected a file")
        os.set_blocking(file.fileno(), True)
        return _read_bounded(file)


def _read_bounded(file: Any) -> bytes:
    """Return the content of an open file of at most MAX_POSE_FILE_BYTES.

    Raises:
        ValueError: If the file is larger than MAX_POSE_FILE_BYTES.
    """
    data = bytes(file.read(MAX_POSE_FILE_BYTES + 1))
    if len(data) > MAX_POSE_FILE_BYTES:
        raise ValueError(f"it is larger than {MAX_POSE_FILE_BYTES // 2**20} MiB")
    return data


def _csv_entries(text: str, deg: bool) -> Iterator[Entry]:
    """Yield place, pose and time of each line of a CSV text with a header.

    Args:
        text: CSV text.
        deg: Whether roll, pitch and yaw are in degrees.

    Raises:
        PoseError: If a line is not valid.
    """
    reader = csv.reader(text.splitlines(), skipinitialspace=True)
    rows = (
        (reader.line_num, row)
        for row in reader
        if any(word.strip() for word in row) and not row[0].lstrip().startswith("#")
    )
    number, header = next(rows, (1, []))
    names = [name.strip().lower() for name in header]
    rotation, largest = _rotation_columns(names, number), 0.0
    for number, row in rows:
        place = f"line {number}"
        if len(row) != len(names):
            raise PoseError(f"{place}: {len(row)} values, but the header has {len(names)} columns")
        values = {n: _finite(w, n, place) for n, w in zip(names, row, strict=True)}
        xyz, angles = (tuple(values[name] for name in part) for part in (POSITION, rotation))
        if rotation == RPY_COLUMNS:
            angles = tuple(np.radians(angles).tolist()) if deg else angles
            largest = max(largest, *map(abs, angles))
        try:
            T = pose_of(xyz, **{"quat" if rotation == QUATERNION_COLUMNS else "rpy": angles})
        except PoseError as error:
            raise PoseError(f"{place}: {error}") from error
        yield place, T, values.get(TIME_COLUMN)
    warn_large_angles("the file", [largest])


def _rotation_columns(names: list[str], number: int) -> tuple[str, ...]:
    """Return the names of the rotation columns in a header: RPY or QUATERNION_COLUMNS.

    Args:
        names: Names of all columns.
        number: Line number of the header, for the message.

    Raises:
        PoseError: If the header is not valid.
    """
    for rotation in (QUATERNION_COLUMNS, RPY_COLUMNS):
        expected = {*POSITION, *rotation}
        if len(set(names)) == len(names) and expected <= set(names) <= expected | {TIME_COLUMN}:
            return rotation
    given = ",".join(names) or "nothing"
    raise PoseError(f"line {number}: the header must be {POSE_HEADERS}; got {given}")


def _finite(word: str, name: str, place: str) -> float:
    """Convert a word to a finite number.

    Args:
        word: Text of the number.
        name: Name of the column, for the message.
        place: Place in the file, for the message.

    Raises:
        PoseError: If the word is not a finite number.
    """
    value = parse_number(word)
    if not np.isfinite(value):
        raise PoseError(f"{place}: {name} must be a finite number; got {word.strip()!r}")
    return value


def _json_entries(text: str) -> Iterator[Entry]:
    """Yield place, pose and time of each entry of a JSON text.

    Raises:
        PoseError: If a pose is not valid.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PoseError(f"not JSON: {error}") from error
    if not isinstance(document, list):
        raise PoseError("expected a list of 4x4 matrices, each row by row")
    for number, given in enumerate(document, start=1):
        yield _json_entry(given, f"pose {number}")


def _json_entry(given: Any, place: str) -> Entry:
    """Return place, pose and time of one entry of a JSON document.

    Args:
        given: Matrix (4, 4), or a dict with the matrix and possibly the time.
        place: Place of the entry in the file, for messages.

    Raises:
        PoseError: If the pose is not valid.
    """
    from dls_ik.model.pose import validated_pose

    t, matrix = None, given
    if isinstance(given, dict):
        if not {"matrix"} <= set(given) <= {"matrix", TIME_COLUMN}:
            raise PoseError(f"{place}: an object must have 'matrix', and may have 't'")
        t, matrix = given.get(TIME_COLUMN), given["matrix"]
        if t is not None and (isinstance(t, bool) or not isinstance(t, (int, float))):
            raise PoseError(f"{place}: t must be a number; got {t!r}")
    try:
        return place, validated_pose(matrix), t
    except PoseError as error:
        raise PoseError(f"{place}: {error}") from error


def _times(entries: list[Entry]) -> Array | None:
    """Check the times of all poses, and return them (b,) [s]; return None if no pose has a time.

    Raises:
        PoseError: If only some poses have times, or times are out of range or do not increase.
    """
    times: list[float] = []
    for i, (place, _, t) in enumerate(entries):
        if i > 0 and (t is None) != (not times):
            raise PoseError(f"{place}: t must be given for all poses or for none")
        if t is None:
            continue
        if not 0.0 <= t < MAX_ROS_TIME:
            raise PoseError(f"{place}: t must be at least 0 [s], and below 2^31; got {t}")
        if times and t <= times[-1]:
            raise PoseError(f"{place}: t must increase; got {t} after {times[-1]}")
        times.append(float(t))
    return np.array(times) if times else None
