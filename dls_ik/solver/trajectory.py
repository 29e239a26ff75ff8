# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Timed joint paths, as CSV and as ROS trajectory messages."""

from __future__ import annotations

import csv
import io
import logging
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dls_ik.core.types import Array
from dls_ik.errors import DlsIkError, OptionError
from dls_ik.model.joint import real_array
from dls_ik.model.robot import RobotModel
from dls_ik.text import listing, quoted

LOG = logging.getLogger("dls_ik")

MIN_DURATION = 1e-3  # [s] minimum duration of a path segment
NANOSECONDS_PER_SECOND = 1_000_000_000
MAX_SPEED_EXCESS = 1e-6  # maximum relative excess over a velocity limit due to rounding


def path_times(
    robot: RobotModel, q: Array, times: ArrayLike | None = None, rate: float | None = None
) -> Array:
    """Return the times of the configurations of a joint path.

    The times are the given times, or have a constant rate. If neither is given, they are the
    shortest times that the velocity limits allow.

    Args:
        robot: Robot with the velocity limits.
        q: (b, n) joint path [rad or m].
        times: (b,) increasing times [s].
        rate: Number of poses per second [Hz].

    Returns:
        Times (b,) [s].

    Raises:
        OptionError: If the times do not increase or are not b numbers; if the rate is not positive;
            if both times and a rate are given; or if neither times nor a rate is given and a moving
            joint has no velocity limit.
    """
    if times is not None and rate is not None:
        raise OptionError("times and rate exclude each other; give only one of them")
    if times is not None:
        return _checked_times(times, len(q))
    if rate is not None:
        if not 0.0 < rate < np.inf:
            raise OptionError(f"rate must be a number above 0 [Hz]; got {quoted(rate)}")
        return np.arange(len(q)) / rate
    changes = np.abs(np.diff(q, axis=0))  # (b - 1, n)
    unknown = np.isinf(robot.velocity) & (changes > 0.0).any(axis=0)
    if unknown.any():
        name = robot.joint_names[int(np.flatnonzero(unknown)[0])]
        raise OptionError(f"joint {name} has no velocity limit; give times or a rate")
    durations = np.maximum((changes / robot.velocity).max(axis=1, initial=0.0), MIN_DURATION)
    return np.concatenate([[0.0], np.cumsum(durations)])


def _checked_times(given: ArrayLike, b: int) -> Array:
    """Validate the times of b poses, and return them as an array (b,) [s].

    Raises:
        OptionError: If the values are not b increasing, finite numbers.
    """
    try:
        t = real_array(given)
    except (TypeError, ValueError, OverflowError):
        t = np.empty(0)
    if t.shape != (b,) or not np.isfinite(t).all() or not (np.diff(t) > 0.0).all():
        raise OptionError(f"times must be {b} increasing numbers [s]; got {quoted(given)}")
    return t


def warn_of_speed(robot: RobotModel, t: Array, q: Array) -> None:
    """Log a warning that names the joints that a timed path moves faster than their limits.

    Args:
        robot: Robot with the velocity limits.
        t: (b,) times [s].
        q: (b, n) joint path [rad or m].
    """
    share = np.abs(np.diff(q, axis=0)) / np.diff(t)[:, None] / robot.velocity
    fast = np.flatnonzero(share.max(axis=0, initial=0.0) > 1.0 + MAX_SPEED_EXCESS)
    if len(fast):
        names = listing(robot.joint_names[j] for j in fast)
        LOG.warning(f"the path is up to {share.max():.3g} times the velocity limit of {names}")


def csv_text(
    robot: RobotModel, t: Array, q: Array, v: Array | None = None, a: Array | None = None
) -> str:
    """Return a timed joint path as CSV: a header, then one line per pose in full precision.

    Args:
        robot: Robot with the joint names.
        t: (b,) times [s].
        q: (b, n) joint path [rad or m].
        v: (b, n) joint velocities [rad/s or m/s]; None: no columns of velocities.
        a: (b, n) joint accelerations [rad/s^2 or m/s^2]; None: no columns of accelerations.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    given = {"": q, "velocity ": v, "acceleration ": a}
    columns = {kind: values for kind, values in given.items() if values is not None}
    writer.writerow(["t", *(kind + name for kind in columns for name in robot.joint_names)])
    rows = np.hstack(list(columns.values()))
    for at, values in zip(t.tolist(), rows.tolist(), strict=True):
        writer.writerow([repr(at), *map(repr, values)])
    return text.getvalue()


def trajectory_message(
    robot: RobotModel,
    t: Array,
    q: Array,
    frame_id: str = "",
    v: Array | None = None,
    a: Array | None = None,
) -> Any:
    """Return a ``trajectory_msgs/msg/JointTrajectory`` that starts immediately.

    Args:
        robot: Robot with the joint names.
        t: (b,) times [s]; the first point of the message is at time 0.
        q: (b, n) joint path [rad or m].
        frame_id: Frame in the header.
        v: (b, n) joint velocities [rad/s or m/s]; None: points without velocities.
        a: (b, n) joint accelerations [rad/s^2 or m/s^2]; None: points without accelerations.

    Raises:
        DlsIkError: If the ROS message packages are not installed.
    """
    try:
        messages: Any = import_module("trajectory_msgs.msg")
        durations: Any = import_module("builtin_interfaces.msg")
    except ImportError as error:
        raise DlsIkError(
            "a trajectory message needs trajectory_msgs: source ROS 2, or pip install 'dls-ik[ros]'"
        ) from error
    message = messages.JointTrajectory(joint_names=list(robot.joint_names))
    message.header.frame_id = frame_id
    for i, (at, values) in enumerate(zip((t - t[0]).tolist(), q.tolist(), strict=True)):
        seconds, nanoseconds = divmod(round(at * NANOSECONDS_PER_SECOND), NANOSECONDS_PER_SECOND)
        start = durations.Duration(sec=seconds, nanosec=nanoseconds)
        point = messages.JointTrajectoryPoint(positions=values, time_from_start=start)
        if v is not None:
            point.velocities = v[i].tolist()
        if a is not None:
            point.accelerations = a[i].tolist()
        message.points.append(point)
    return message
