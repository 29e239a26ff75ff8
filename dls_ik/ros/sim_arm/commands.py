"""Commands as messages, checked as the controllers that take them check them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from dls_ik.core.types import Array
from dls_ik.errors import DlsIkError
from dls_ik.model.joint import checked_configuration
from dls_ik.ros.sim_arm.arm import Path, standstill
from dls_ik.text import listing

FARTHEST = 1e6  # [rad or m, or of them in a second] no drive goes there
MOST_POINTS = 10_000  # of a trajectory


class CommandError(DlsIkError):
    """A command that is not followed, and why."""


def path_from_joint_state(message: Any, names: tuple[str, ...], now: float) -> Path:
    """The positions of a ``sensor_msgs/JointState``, from now on [s].

    Raises:
        CommandError: other joints than these, each once, in any order; or as all functions here.
        JointValueError: another number of values, or some that are not finite.
    """
    order = _order(message.name, names)
    given = checked_configuration(message.position, tuple(message.name))
    return standstill(_bounded(given[order]), now)


def path_from_array(message: Any, names: tuple[str, ...], now: float) -> Path:
    """The positions of a ``std_msgs/Float64MultiArray`` in the order of the joints, from now on.

    Raises:
        CommandError, JointValueError: as :func:`path_from_joint_state`.
    """
    return standstill(_bounded(checked_configuration(message.data, names)), now)


def path_from_trajectory(message: Any, names: tuple[str, ...], now: float, stamp: int) -> Path:
    """The points of a ``trajectory_msgs/JointTrajectory``.

    Args:
        now: [s] on the clock of the path.
        stamp: [ns] the same time on the clock of the message; 0: there is no clock yet.

    Raises:
        CommandError: as :func:`path_from_joint_state`; no points, or more than MOST_POINTS; times
            that do not increase, or are all over; a last point with a velocity.
        JointValueError: as :func:`path_from_joint_state`.
    """
    order = _order(message.joint_names, names)
    if not message.points:
        raise CommandError("the trajectory has no points")
    if len(message.points) > MOST_POINTS:
        raise CommandError(
            f"a trajectory has at most {MOST_POINTS} points, this one {len(message.points)}"
        )
    times = _begin(message, now, stamp) + _times(message.points)
    if times[-1] < now:
        raise CommandError(f"the trajectory ended {now - times[-1]:.3g} s ago")
    given = tuple(message.joint_names)
    positions = [checked_configuration(point.positions, given) for point in message.points]
    velocities = [_velocities(point, given) for point in message.points]
    if np.nan_to_num(velocities[-1]).any():
        raise CommandError("the last point of the trajectory has a velocity that is not 0")
    return Path(
        times, _bounded(np.array(positions)[:, order]), _bounded(np.array(velocities)[:, order])
    )


def _order(given: Sequence[str], names: tuple[str, ...]) -> list[int]:
    """Where each of the joints (n,) is in a list of their names."""
    if sorted(given) != sorted(names):
        raise CommandError(f"the joints are {listing(names)}, each once, not {listing(given)}")
    index = {name: i for i, name in enumerate(given)}
    return [index[name] for name in names]


def _begin(message: Any, now: float, stamp: int) -> float:
    """When a trajectory begins [s]: at its stamp, or now where it has none."""
    begin = message.header.stamp.sec * 10**9 + message.header.stamp.nanosec
    if begin and not stamp:
        raise CommandError("it has a stamp, and with use_sim_time there is no clock yet")
    return now + 1e-9 * (begin - stamp) if begin else now


def _times(points: Sequence[Any]) -> Array:
    """The times (k,) [s] of points after the begin."""
    durations = [point.time_from_start for point in points]
    times = np.array([d.sec + 1e-9 * d.nanosec for d in durations])
    if times[0] < 0.0 or (np.diff(times) <= 0.0).any():
        raise CommandError(
            "time_from_start is from 0 and increases from point to point, not "
            f"{listing([f'{t:g}' for t in times])} s"
        )
    return times


def _velocities(point: Any, names: tuple[str, ...]) -> Array:
    """The velocities (n,) of a point; NaN where it has none."""
    if len(point.velocities) == 0:
        return np.full(len(names), np.nan)
    return checked_configuration(point.velocities, names)


def _bounded(values: Array) -> Array:
    if np.abs(np.nan_to_num(values)).max() > FARTHEST:
        raise CommandError(f"a value is beyond {FARTHEST:g}")
    return values
