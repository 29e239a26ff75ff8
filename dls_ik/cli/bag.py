# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Writing of ROS 2 bags (rosbag2) by the package rosbags, without a ROS installation."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from dls_ik.cli import output
from dls_ik.core.types import Array
from dls_ik.solver.trajectory import NANOSECONDS_PER_SECOND

STORAGES = ("sqlite3", "mcap")
STATES_TOPIC, PLAN_TOPIC, URDF_TOPIC = "/joint_states", "/joint_trajectory", "/robot_description"
STATE_TYPE = "sensor_msgs/msg/JointState"
TRAJECTORY_TYPE, TEXT_TYPE = "trajectory_msgs/msg/JointTrajectory", "std_msgs/msg/String"
BAG_VERSION: Final = 8  # version of the rosbag2 format, which ROS 2 Humble can read too
NO_STAMP = (0, 0)

Stamp = tuple[int, int]  # seconds and nanoseconds


class BagTopic(NamedTuple):
    """Topic to write to a bag, with all its messages."""

    name: str
    kind: str  # type of the messages
    messages: Sequence[tuple[float, Any]]  # time in the bag [s] and message
    is_latched: bool = False  # whether late subscribers receive the message during playback


def require_rosbags() -> None:
    """Check that the package rosbags, which writes bags, is installed.

    Raises:
        MissingPartError: If rosbags is not installed.
    """
    try:
        import rosbags.rosbag2  # noqa: F401
    except ImportError as error:
        raise output.MissingPartError(
            "a rosbag2 needs the package rosbags: pip install 'dls-ik[bag]'"
        ) from error


def write_bag(path: Path, storage: str, topics: Sequence[BagTopic]) -> None:
    """Write topics to a new rosbag2 folder; topics without messages are omitted.

    Args:
        path: Folder to create.
        storage: Storage format, one of `STORAGES`.
        topics: Topics with their messages.

    Raises:
        OSError: If the bag cannot be written.
    """
    from rosbags.rosbag2 import StoragePlugin, Writer

    store, plugin = _store(), StoragePlugin[storage.upper()]
    try:
        with Writer(path, version=BAG_VERSION, storage_plugin=plugin) as bag:
            for topic in topics:
                if topic.messages:
                    qos = [_latched()] if topic.is_latched else []
                    connection = bag.add_connection(
                        topic.name, topic.kind, typestore=store, offered_qos_profiles=qos
                    )
                    for stamp, message in topic.messages:
                        raw = store.serialize_cdr(message, topic.kind)
                        bag.write(connection, _nanoseconds(stamp), raw)
    except sqlite3.Error as error:
        raise OSError(errno.EIO, str(error)) from error


def _store() -> Any:
    """Return the rosbags type store with the message types of ROS 2 Humble."""
    from rosbags.typesys import Stores, get_typestore

    return get_typestore(Stores.ROS2_HUMBLE)


def _latched() -> Any:
    """Return the QoS profile of a latched topic: reliable, transient local, depth 1."""
    from rosbags.interfaces import (
        Qos,
        QosDurability,
        QosHistory,
        QosLiveliness,
        QosReliability,
        QosTime,
    )

    unlimited = QosTime(9223372036, 854775807)
    return Qos(
        QosHistory.KEEP_LAST,
        1,
        QosReliability.RELIABLE,
        QosDurability.TRANSIENT_LOCAL,
        unlimited,
        unlimited,
        QosLiveliness.AUTOMATIC,
        unlimited,
        False,
    )


# Topics


def description_topic(urdf: Path | str | None, start: float) -> BagTopic:
    """Return the latched topic /robot_description with the URDF of a robot.

    Args:
        urdf: File or text of the URDF; None gives a topic without messages.
        start: Start time of the bag [s], which is the time of the message.
    """
    if urdf is None:
        return BagTopic(URDF_TOPIC, TEXT_TYPE, ())
    text = urdf.read_text(encoding="utf-8") if isinstance(urdf, Path) else urdf
    return BagTopic(
        URDF_TOPIC, TEXT_TYPE, [(start, _store().types[TEXT_TYPE](text))], is_latched=True
    )


def states_topic(names: Sequence[str], times: Sequence[float], q: Array) -> BagTopic:
    """Return the topic /joint_states with k JointState messages, which contain positions only.

    Args:
        names: Names of the n joints.
        times: Times (k,) of the messages [s].
        q: (k, n) joint positions [rad or m].
    """
    types, empty, names = _store().types, np.empty(0), list(names)
    messages = [
        (t, types[STATE_TYPE](_header(types, _stamp(t)), names, values, empty, empty))
        for t, values in zip(times, np.ascontiguousarray(q), strict=True)
    ]
    return BagTopic(STATES_TOPIC, STATE_TYPE, messages)


def plan_topic(names: Sequence[str], times: Sequence[float], q: Array) -> BagTopic:
    """Return the topic /joint_trajectory with one JointTrajectory message of k points.

    The header stamp is 0, so that a controller starts the trajectory when it receives the message.

    Args:
        names: Names of the n joints.
        times: Times (k,) of the points [s]; the message is recorded at the first time.
        q: (k, n) joint positions [rad or m].
    """
    types, empty = _store().types, np.empty(0)
    point = types["trajectory_msgs/msg/JointTrajectoryPoint"]
    points = [
        point(values, empty, empty, empty, _duration(types, t - times[0]))
        for t, values in zip(times, np.ascontiguousarray(q), strict=True)
    ]
    plan = types[TRAJECTORY_TYPE](_header(types, NO_STAMP), list(names), points)
    return BagTopic(PLAN_TOPIC, TRAJECTORY_TYPE, [(times[0], plan)])


def _header(types: Any, stamp: Stamp) -> Any:
    """Return a std_msgs/Header with a stamp and without a frame."""
    return types["std_msgs/msg/Header"](types["builtin_interfaces/msg/Time"](*stamp), "")


def _duration(types: Any, t: float) -> Any:
    """Return a builtin_interfaces/Duration message for a duration t [s]."""
    return types["builtin_interfaces/msg/Duration"](*_stamp(t))


def _stamp(t: float) -> Stamp:
    """Convert a time t [s] to integer seconds and nanoseconds."""
    return divmod(_nanoseconds(t), NANOSECONDS_PER_SECOND)


def _nanoseconds(t: float) -> int:
    """Convert a time t [s] to integer nanoseconds."""
    return round(float(t) * NANOSECONDS_PER_SECOND)
