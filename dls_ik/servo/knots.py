# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Knots (trajectory points) on the path to a command and on the stop that starts at the command.

A joint_trajectory_controller joins trajectory points with positions and velocities by cubics. A
cubic is exact while the jerk of every joint is constant. Knots are therefore placed at the times at
which the acceleration of a joint jumps or its jerk changes. On the path of a cycle with a jerk
limit there are fewer knots, but enough that the accelerations of the cubics exceed the limits by at
most 0.4 %.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.types import Array
from dls_ik.servo.motion import AnyPath, CyclePath, Motion, StopPath

MAX_EXCESS = 0.004  # share by which the acceleration of a cubic may exceed the limit
MAX_HALVINGS = 6  # maximum number of halvings of an interval between two knots
SAME = 1e-8  # [rad or m] largest rounding difference between positions that count as equal
CLOSEST = 1e-6  # [s] smallest time between two knots
EARLIEST = 1e-3  # [periods] smallest time of a knot after the command is sent


class Knots(NamedTuple):
    """Trajectory points: times, positions and velocities of k knots that cubics join."""

    times: Array  # (k,) [s] increasing
    q: Array  # (k, n) [rad or m]
    v: Array  # (k, n) [rad/s or m/s]
    is_linear: bool = False  # whether straight lines, not cubics, join the knots

    def joined(self, other: "Knots") -> "Knots":
        """Return these knots, followed by the knots of a motion that starts at the last knot.

        The times of the other knots are shifted, so that the motion starts at the last time.
        """
        since = other.times[1:] - other.times[0]
        times = np.concatenate([self.times, self.times[-1] + since])
        return Knots(times, np.vstack([self.q, other.q[1:]]), np.vstack([self.v, other.v[1:]]))

    def delayed(self, duration: float) -> "Knots":
        """Return the knots with `duration` [s] added to their times."""
        return self._replace(times=self.times + duration)

    def reordered(self, order: NDArray[np.intp]) -> "Knots":
        """Return the knots with reordered joints.

        Args:
            order: (n,) old index of each joint, in the new order.
        """
        return self._replace(q=self.q[:, order], v=self.v[:, order])

    def accelerations(self) -> tuple[Array, Array]:
        """Return the accelerations at the start, and at the end, of each cubic, each (k - 1, n)."""
        h = np.diff(self.times)[:, None]
        mean, first, second = np.diff(self.q, axis=0) / h, self.v[:-1], self.v[1:]
        return (6.0 * mean - 4.0 * first - 2.0 * second) / h, (
            -6.0 * mean + 2.0 * first + 4.0 * second
        ) / h

    def knot_accelerations(self) -> Array:
        """Return the accelerations at the knots (k, n) [rad/s^2 or m/s^2]; 0 at the last knot.

        With jerk limits, the cubics before and after a knot have nearly the same acceleration
        there; the result is their mean. The last knot is at rest.
        """
        if len(self.times) == 1:
            return np.zeros_like(self.v)
        first, second = self.accelerations()
        inner = 0.5 * (second[:-1] + first[1:])
        return np.vstack([first[:1], inner, np.zeros_like(first[:1])])

    def pieces(self) -> tuple[Array, Array]:
        """Return the durations (k - 1,) [s] and the initial states (k - 1, 4, n) of the cubics.

        A state consists of positions, velocities, accelerations and jerks of the joints.
        """
        h, (first, second) = np.diff(self.times), self.accelerations()
        jerks = (second - first) / h[:, None]
        return h, np.stack([self.q[:-1], self.v[:-1], first, jerks], axis=1)


def stop_knots(stop: StopPath, extra: Array | None = None) -> Knots:
    """Return the knots of a stop, from its start to rest; one knot if the arm is at rest already.

    Args:
        stop: Path of the stop.
        extra: (k,) times of additional knots, measured from the start of the stop [s].
    """
    end = stop.duration
    given = stop.breaks() if extra is None else np.concatenate([stop.breaks(), extra])
    times = _knot_times(given, end)
    if len(times) == 1:
        return Knots(times, stop.q[None], np.zeros_like(stop.q)[None])
    q, v, _ = stop.at(np.append(times[:-1], np.inf))
    return Knots(times, q, v)


def cycle_knots(path: CyclePath, q: Array, rate: Array, acceleration: Array) -> Knots:
    """Return the knots of the path of the joints during a cycle, from its start to its end.

    Args:
        path: Path of the joints during the cycle.
        q: (n,) positions at the end of the cycle [rad or m].
        rate: (n,) velocities at the end of the cycle [rad/s or m/s].
        acceleration: (n,) limits [rad/s^2 or m/s^2].
    """
    ends = Knots(np.array([0.0, path.duration]), np.array([path.q, q]), np.array([path.v, rate]))
    if path.inner is None:
        return ends
    knots = _inserted(ends, path.inner, _knot_times(path.inner.breaks(), path.duration)[1:-1])
    most = np.maximum(acceleration, _largest_acceleration(path.inner, knots.times))
    most *= 1.0 + MAX_EXCESS
    for _ in range(MAX_HALVINGS):
        excess = [(np.abs(a) > most).any(axis=1) for a in knots.accelerations()]
        bad = np.flatnonzero(excess[0] | excess[1])
        if not len(bad):
            break
        middles = 0.5 * (knots.times[bad] + knots.times[bad + 1])
        knots = _inserted(knots, path.inner, middles)
    return knots


def trajectory_knots(
    motion: Motion,
    stop: StopPath,
    acceleration: Array,
    period: float,
    count: int = 0,
    before: Knots | None = None,
) -> Knots:
    """Return the knots of the path to a command and of the stop that starts at the command.

    Times are measured from the moment at which the command is sent; the arm reaches the command one
    period later. If the arm has not reached the previous command at this moment, the first knots
    describe its remaining path to the previous command. Without acceleration limits, straight lines
    join the knots.

    Args:
        motion: State of motion at the command.
        stop: Stop that starts at the command.
        acceleration: (n,) limits [rad/s^2 or m/s^2].
        period: Period of the cycles [s].
        count: Minimum number of knots; missing knots are added on the stop, one period apart. 0: as
            many knots as the path needs. 1: only the command, which the arm reaches on a straight
            line.
        before: Knots that the previous cycle returned; None if there was no previous cycle.
    """
    path = motion.path
    due = period if path is None or count != 1 else max(period, path.duration)
    cycle = Knots(np.array([due]), motion.q[None], motion.rate[None], count == 1)
    if count == 1:
        return cycle
    if path is not None and 0.0 < path.duration <= period * (1.0 + EARLIEST):
        cycle = cycle_knots(path, motion.q, motion.rate, acceleration)
        cycle = cycle.delayed(period - float(cycle.times[-1]))
        first = int(cycle.times[0] < EARLIEST * period)
        if first == 0 and before is not None:
            cycle = _remaining_knots(before, cycle, period).joined(cycle)
        cycle = Knots(cycle.times[first:], cycle.q[first:], cycle.v[first:])
    behind = stop_knots(stop)
    missing = count - len(cycle.times) - len(behind.times) + 1
    if missing > 0:
        behind = stop_knots(stop, period * np.arange(1.0, missing + 1.0))
    if len(behind.times) == 1:
        cycle.v[-1] = 0.0
    return _rounded(cycle.joined(behind), not np.isfinite(acceleration).any())


def _remaining_knots(before: Knots, cycle: Knots, period: float) -> Knots:
    """Return the knots of the remaining path to the previous command.

    Args:
        before: Knots sent in the previous cycle.
        cycle: Knots from the previous command to the current command, with times measured from the
            moment at which the current command is sent.
        period: Period of the cycles [s].

    Returns:
        Knots with times measured as those of `cycle`; the last knot is the first knot of `cycle`.
    """
    due = float(cycle.times[0])
    first = Knots(cycle.times[:1], cycle.q[:1], cycle.v[:1])
    k = int(np.argmin(np.abs(before.times - period)))
    if np.abs(before.q[k] - cycle.q[0]).max() > SAME:  # the previous command was not published
        return first
    times = before.times[:k] - period + due
    ahead = (times > EARLIEST * period) & (times < due - CLOSEST)
    return Knots(
        np.concatenate([times[ahead], first.times]),
        np.vstack([before.q[:k][ahead], first.q]),
        np.vstack([before.v[:k][ahead], first.v]),
    )


def _rounded(knots: Knots, is_linear: bool) -> Knots:
    """Return knots with times rounded to whole nanoseconds, as in ROS messages.

    Each position is changed by its velocity times the change of its time.

    Args:
        knots: Knots to round.
        is_linear: Whether straight lines, not cubics, join the returned knots.
    """
    times = np.round(knots.times * 1e9) * 1e-9
    q = knots.q + knots.v * (times - knots.times)[:, None]
    return Knots(times, q, knots.v, is_linear)


def _largest_acceleration(path: AnyPath, times: Array) -> Array:
    """Return the largest absolute acceleration of each joint (n,) on a path at times (k,) [s]."""
    largest: Array = np.abs(path.at(times)[2]).max(axis=0)
    return largest


def _inserted(knots: Knots, path: AnyPath, times: Array) -> Knots:
    """Return the given knots with additional knots inserted.

    Args:
        knots: Given knots.
        path: Path on which the additional knots are.
        times: (k,) times of the additional knots [s].
    """
    if not len(times):
        return knots
    q, v, _ = path.at(times)
    at = np.searchsorted(knots.times, times)
    return Knots(
        np.insert(knots.times, at, times),
        np.insert(knots.q, at, q, axis=0),
        np.insert(knots.v, at, v, axis=0),
    )


def _knot_times(times: Array, end: float) -> Array:
    """Return increasing times [s]: 0, the given times between 0 and `end`, and `end`.

    Given times are left out if they are less than 1 us after another returned time, or before
    `end`. If `end` is at most 1 us, only 0 is returned.
    """
    if end <= CLOSEST:
        return np.zeros(1)
    inside = np.unique(times[(times > CLOSEST) & (times < end - CLOSEST)])
    kept = inside[np.diff(inside, prepend=-1.0) > CLOSEST]
    return np.concatenate([[0.0], kept, [end]])
