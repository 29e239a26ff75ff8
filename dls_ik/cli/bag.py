"""A joint trajectory as a rosbag2, which ``ros2 bag`` plays and shows; written without ROS."""

from __future__ import annotations

import errno
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dls_ik.cli.trajectory import Trajectory
from dls_ik.core.types import Array

if TYPE_CHECKING:
    from rosbags.rosbag2 import Writer

STATES, PLAN = "/joint_states", "/joint_trajectory"
STATE, TRAJECTORY = "sensor_msgs/msg/JointState", "trajectory_msgs/msg/JointTrajectory"
VERSION: Final = 8  # of the format, which Humble reads too
BILLION = 1_000_000_000


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
