# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""State of motion of a command: its path during a cycle, and the stop that starts at its end."""

import math
from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from dls_ik.core.types import Array


class StopPath(NamedTuple):
    """Path of the joints from a command to rest, with m phases of constant jerk for each joint.

    Different joints may have phases of different durations. A joint is at rest after its last
    phase.
    """

    q: Array  # (n,) joint positions at the start [rad or m]
    v: Array  # (n,) velocities at the start [rad/s or m/s]
    durations: Array  # (m, n) duration of each phase [s]
    accelerations: Array  # (m, n) acceleration at the start of each phase [rad/s^2 or m/s^2]
    jerks: Array  # (m, n) jerk in each phase [rad/s^3 or m/s^3]
    # (n,) bounds [rad or m] to which positions are clipped, because rounding may exceed limits
    lower: Array
    upper: Array

    @property
    def duration(self) -> float:
        """Time until all joints are at rest [s]."""
        return float(self.durations.sum(axis=0).max(initial=0.0))

    @property
    def is_over(self) -> bool:
        """Return whether all joints are at rest."""
        return not self.durations.any()

    @property
    def end(self) -> Array:
        """Joint positions at rest (n,) [rad or m]; a copy."""
        return self.q.copy() if self.is_over else self.at(np.array([math.inf]))[0][0].copy()

    def at(self, times: Array) -> tuple[Array, Array, Array]:
        """Return positions, velocities and accelerations, each (k, n).

        Args:
            times: (k,) times since the start of the path [s].
        """
        left = np.repeat(times[:, None], len(self.q), axis=1)
        q, v, a = self.q, self.v, np.zeros_like(left)
        phases = zip(self.durations, self.accelerations, self.jerks, strict=True)
        for duration, acceleration, jerk in phases:
            t = np.clip(left, 0.0, duration)
            a = np.where(left >= 0.0, acceleration + t * jerk, a)
            q = q + t * (v + t * (0.5 * acceleration + t * jerk / 6.0))
            v = v + t * (acceleration + 0.5 * t * jerk)
            left = left - duration
        rests = left >= 0.0
        return np.clip(q, self.lower, self.upper), np.where(rests, 0.0, v), np.where(rests, 0.0, a)

    def after(self, elapsed: float) -> "StopPath":
        """Return the path that remains after the first `elapsed` seconds."""
        q, v, _ = self.at(np.array([elapsed]))
        gone = np.clip(elapsed - np.cumsum(self.durations, axis=0) + self.durations, 0.0, None)
        gone = np.minimum(gone, self.durations)
        accelerations = self.accelerations + gone * self.jerks
        return self._replace(
            q=q[0], v=v[0], durations=self.durations - gone, accelerations=accelerations
        )

    def breaks(self) -> Array:
        """Return the times (m * n,) at which the phases of the joints end [s], not sorted."""
        return np.cumsum(self.durations, axis=0).ravel()


class RuckigPath(NamedTuple):
    """Path of the joints along a Ruckig trajectory."""

    trajectory: Any

    def at(self, times: Array) -> tuple[Array, Array, Array]:
        """Return positions, velocities and accelerations, each (k, n).

        Args:
            times: (k,) times since the start of the path [s].
        """
        states = np.array([self.trajectory.at_time(t) for t in times.tolist()])
        return states[:, 0], states[:, 1], states[:, 2]

    def breaks(self) -> Array:
        """Return an empty array of times: the acceleration of a Ruckig path never jumps."""
        return np.empty(0)


class BlendedPath(NamedTuple):
    """Weighted mean of two paths with the same start."""

    first: "AnyPath"
    second: "AnyPath"
    share: float  # weight of the second path, 0 to 1

    def at(self, times: Array) -> tuple[Array, Array, Array]:
        """Return positions, velocities and accelerations, each (k, n).

        Args:
            times: (k,) times since the start of the path [s].
        """
        pairs = zip(self.first.at(times), self.second.at(times), strict=True)
        q, v, a = (x + self.share * (y - x) for x, y in pairs)
        return q, v, a

    def breaks(self) -> Array:
        """Return the times at which the acceleration of a joint may jump [s], not sorted."""
        return np.concatenate([self.first.breaks(), self.second.breaks()])


AnyPath: TypeAlias = StopPath | RuckigPath | BlendedPath


class CyclePath(NamedTuple):
    """Path of the joints during the last cycle."""

    q: Array  # (n,) start [rad or m]
    v: Array  # (n,) velocity at the start [rad/s or m/s]
    duration: float  # [s]
    inner: AnyPath | None = None  # exact path; None: constant acceleration

    def explicit(self, rate: Array) -> AnyPath:
        """Return the exact path `inner`; if None, a path with one phase of constant acceleration.

        Args:
            rate: (n,) velocities at the end of the cycle [rad/s or m/s].
        """
        if self.inner is not None:
            return self.inner
        times = np.full((1, len(rate)), self.duration)
        slope, wide = (rate - self.v)[None] / self.duration, np.full(len(rate), np.inf)
        return StopPath(self.q, self.v, times, slope, np.zeros_like(times), -wide, wide)


class Motion(NamedTuple):
    """State of motion of a limiter between two cycles; immutable."""

    q: Array  # (n,) command [rad or m]
    v: Array  # (n,) mean velocity in the last cycle [rad/s or m/s]
    rate: Array  # (n,) current velocity [rad/s or m/s]
    a: Array  # (n,) current acceleration [rad/s^2 or m/s^2]
    stop: StopPath | None  # stop that starts at the command; None: not planned yet
    path: CyclePath | None = None  # path of the joints in the last cycle; None: no cycle yet


class Handover(NamedTuple):
    """Complete state of motion of a command, for a new limiter or guard that continues the motion.

    The command follows the stop of the old limiter or guard until the new one has accepted another
    stop. Therefore a change of the limiter or guard never makes the path to rest longer.
    """

    motion: Motion
    stop: StopPath  # stop that starts at the command
    promises: Mapping[Hashable, float] = {}  # certified distances [m] along the stop, by pair key


def at_start_of(stop: StopPath) -> Handover:
    """Return the state of motion of a command that starts to follow a stop."""
    q, v, a = (each[0] for each in stop.at(np.zeros(1)))
    return Handover(Motion(q, v, v, a, stop), stop)


def blended_path(a: Motion, b: Motion, share: float) -> CyclePath | None:
    """Return the weighted mean of the paths of two motions in the last cycle.

    Args:
        a: State of the first motion.
        b: State of the second motion.
        share: Weight of the second motion, 0 to 1.

    Returns:
        None if one of the motions has no path, because there was no cycle yet.
    """
    if a.path is None or b.path is None:
        return None
    paths = a.path.explicit(a.rate), b.path.explicit(b.rate)
    return a.path._replace(inner=BlendedPath(*paths, share))
