"""Files of a joint trajectory: CSV, JSON, a rosbag2 written without ROS, and pictures."""

from __future__ import annotations

import csv
import errno
import io
import sqlite3
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click
import numpy as np

from dls_ik.cli.exits import MissingPartError
from dls_ik.cli.output import (
    STDOUT,
    check_new_folder,
    check_writable,
    json_text,
    write_folder,
    write_text,
    write_whole,
)

if TYPE_CHECKING:
    from rosbags.rosbag2 import Writer

    from dls_ik.cli.trajectory import Trajectory
    from dls_ik.core.types import Array

KINDS = ("csv", "json", "bag")
STORAGES = ("sqlite3", "mcap")
ENDINGS = {".csv": "csv", ".json": "json", ".bag": "bag", "": "bag"}
STATES, PLAN = "/joint_states", "/joint_trajectory"
STATE, TRAJECTORY = "sensor_msgs/msg/JointState", "trajectory_msgs/msg/JointTrajectory"
VERSION: Final = 8  # of the format, which Humble reads too
BILLION = 1_000_000_000


class Output(NamedTuple):
    """A trajectory's file, and the pictures of it."""

    path: str
    kind: str  # one of KINDS
    storage: str  # one of STORAGES
    plot: str | None

    @property
    def pictures(self) -> tuple[str, ...]:
        """Files of the joints and of the tip."""
        if self.plot is None:
            return ()
        joints = Path(self.plot)
        return self.plot, str(joints.with_name(f"{joints.stem}-tip{joints.suffix}"))


def checked_output(path: str, kind: str | None, storage: str, plot: str | None) -> Output:
    """Refuse before the work begins what could not be written after it.

    Raises:
        click.ClickException, DlsIkError: the reason.
    """
    found = kind or ("csv" if path == STDOUT else ENDINGS.get(Path(path).suffix.lower()))
    if found is None:
        raise click.UsageError(
            f"--out ends in .csv, .json, or in .bag or nothing for a rosbag2, not {path}; "
            f"--format says it otherwise"
        )
    output = Output(path, found, storage, plot)
    if plot is not None:
        _check_pictures(plot)
    check_writable([*output.pictures, *([path] if found != "bag" else [])])
    if found == "bag":
        _require_rosbags()
        check_new_folder(path)
    return output


def written(output: Output, trajectory: Trajectory) -> list[str]:
    """Write all of it; return a line about each file."""
    count = len(trajectory.q)
    if output.kind == "bag":
        write_folder(output.path, lambda part: write_bag(part, trajectory, output.storage))
        about = f"a rosbag2 ({output.storage}): {STATES} {count} messages, {PLAN} 1"
    else:
        write_text(output.path, _text(output.kind, trajectory))
        about = f"{output.kind}, {count} points"
    return [f"{output.path}: {about}", *_drawn(output, trajectory)]


def _text(kind: str, trajectory: Trajectory) -> str:
    return csv_text(trajectory) if kind == "csv" else json_text(document(trajectory)) + "\n"


def _drawn(output: Output, trajectory: Trajectory) -> list[str]:
    """Save the pictures that are asked for; two poses make one, one makes none."""
    if not output.pictures:
        return []
    from dls_ik.plot import joint_bands, save_picture, tip_path

    robot, t, q = trajectory.robot, trajectory.timing.t, trajectory.q
    goals = trajectory.given.poses[:, :3, 3]
    figures = joint_bands(robot, t, q), tip_path(robot, t, q, goals)
    for path, figure in zip(output.pictures, figures, strict=True):
        write_whole(path, partial(save_picture, figure=figure))
    shown = zip(output.pictures, ("joints", "tip"), strict=True)
    return [f"{path}: a picture of the {what}" for path, what in shown]


def _check_pictures(plot: str) -> None:
    from dls_ik.plot import check_picture

    if plot == STDOUT:
        raise click.UsageError("--plot takes a file, not standard output")
    check_picture(Path(plot))


def _require_rosbags() -> None:
    try:
        import rosbags.rosbag2  # noqa: F401
    except ImportError as error:
        raise MissingPartError("a rosbag2 needs rosbags: pip install 'dls-ik[bag]'") from error


def csv_text(trajectory: Trajectory) -> str:
    """One line a pose, below a header of t [s] and the joints [rad or m]; all digits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["t", *trajectory.robot.joint_names])
    for t, q in zip(trajectory.timing.t.tolist(), trajectory.q.tolist(), strict=True):
        writer.writerow([repr(t), *map(repr, q)])
    return text.getvalue()


def document(trajectory: Trajectory) -> dict[str, Any]:
    """What a JSON file of a trajectory says."""
    from dls_ik.solver.result import Status

    robot, result = trajectory.robot, trajectory.result
    return {
        "robot": robot.name,
        "base": robot.base,
        "tip": robot.tip,
        "times": trajectory.timing.source,
        "joint_names": robot.joint_names,
        "t": trajectory.timing.t,
        "positions": result.q,
        "success": result.success,
        "status": [str(Status(int(status))) for status in result.status],
        "position_error": result.position_error,
        "rotation_error": result.rotation_error,
    }


def write_bag(path: Path, trajectory: Trajectory, storage: str) -> None:
    """A JointState for each pose, at its time, and one JointTrajectory with all of them.

    Args:
        path: A directory that is not there yet.
        storage: sqlite3 or mcap.

    Raises:
        OSError: it cannot be written.
    """
    from rosbags.rosbag2 import StoragePlugin, Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_HUMBLE)
    t, q = trajectory.timing.t, trajectory.q
    names = list(trajectory.robot.joint_names)
    plan = _plan(store.types, names, t, q)
    states = (
        (_nanoseconds(at), _state(store.types, names, at, values))
        for at, values in zip(t, q, strict=True)
    )
    try:
        with Writer(path, version=VERSION, storage_plugin=StoragePlugin[storage.upper()]) as bag:
            _write(bag, store, PLAN, TRAJECTORY, [(_nanoseconds(t[0]), plan)])
            _write(bag, store, STATES, STATE, states)
    except sqlite3.Error as error:
        raise OSError(errno.EIO, str(error)) from error


def _write(bag: Writer, store: Any, topic: str, kind: str, messages: Any) -> None:
    connection = bag.add_connection(topic, kind, typestore=store)
    for stamp, message in messages:
        bag.write(connection, stamp, store.serialize_cdr(message, kind))


def _state(types: Any, names: list[str], t: float, q: Array) -> Any:
    none = np.empty(0)
    return types[STATE](_header(types, t), names, np.ascontiguousarray(q), none, none)


def _plan(types: Any, names: list[str], t: Array, q: Array) -> Any:
    """Positions only, which controllers join by straight lines; stamp 0 means to start at once."""
    point, none = types["trajectory_msgs/msg/JointTrajectoryPoint"], np.empty(0)
    points = [
        point(np.ascontiguousarray(values), none, none, none, _time(types, "Duration", at))
        for at, values in zip(t - t[0], q, strict=True)
    ]
    return types[TRAJECTORY](_header(types, 0.0), names, points)


def _header(types: Any, t: float) -> Any:
    return types["std_msgs/msg/Header"](_time(types, "Time", t), "")


def _time(types: Any, kind: str, t: float) -> Any:
    return types[f"builtin_interfaces/msg/{kind}"](*divmod(_nanoseconds(t), BILLION))


def _nanoseconds(t: float) -> int:
    return round(float(t) * BILLION)
