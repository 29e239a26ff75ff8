"""A simulated arm without ROS: joints follow a commanded path with a delay and a lag."""

from collections import deque
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from dls_ik.core.types import Array

MAX_STEP = 1e-3  # [s] of the integration


class Path(NamedTuple):
    """A path through k knots, at rest before the first and after the last.

    Segments are straight, or cubic where both knots have velocities.
    """

    times: Array  # (k,) [s] increasing
    positions: Array  # (k, n) [rad or m]
    velocities: Array  # (k, n) [rad/s or m/s], rows of NaN: no velocity

    def at(self, t: float) -> tuple[Array, Array]:
        """Return positions (n,) and velocities (n,) at a time [s]."""
        i = int(np.searchsorted(self.times, t, side="right"))
        if i == 0 or i == len(self.times):
            return self.positions[max(i - 1, 0)], np.zeros(self.positions.shape[1])
        h = float(self.times[i] - self.times[i - 1])
        s = (t - float(self.times[i - 1])) / h
        ends = (self.positions[i - 1], self.positions[i])
        slopes = (self.velocities[i - 1], self.velocities[i])
        if np.isnan(slopes).any():
            return ends[0] + s * (ends[1] - ends[0]), (ends[1] - ends[0]) / h
        return _cubic(s, h, ends, slopes)

    def from_here(self, t: float, positions: Array, velocities: Array) -> "Path":
        """Return the path that leads from a state (n,) at a time [s] to the first knot."""
        if t >= self.times[0]:
            return self
        return Path(
            np.concatenate([[t], self.times]),
            np.vstack([positions, self.positions]),
            np.vstack([velocities, self.velocities]),
        )


def standstill(positions: Array, t: float) -> Path:
    """Return a path that is at positions (n,) from a time [s] on."""
    return Path(np.array([t]), positions[None], np.full((1, len(positions)), np.nan))


def _cubic(
    s: float, h: float, ends: tuple[Array, Array], slopes: tuple[Array, Array]
) -> tuple[Array, Array]:
    """Evaluate a cubic Hermite segment of duration h [s] at s in [0, 1]: positions, velocities."""
    rise = ends[1] - ends[0]
    first, second = h * slopes[0] - rise, rise - h * slopes[1]
    bend = (1.0 - s) * first + s * second
    position = ends[0] + s * rise + s * (1.0 - s) * bend
    velocity = (rise + (1.0 - 2.0 * s) * bend + s * (1.0 - s) * (second - first)) / h
    return position, velocity


class Dynamics(NamedTuple):
    """Response of the joints to commands."""

    velocity: Array  # (n,) [rad/s or m/s] limits; infinite: none
    delay: float = 0.0  # [s] from a command to the drives
    time_constant: float = 0.0  # [s] of the first-order lag between drives and joints
    noise: float = 0.0  # [rad or m] standard deviation of measured positions


class SimulatedArm:
    """Joints with a delay, a first-order lag and velocity limits; time only runs forward.

    The lag is integrated exactly for straight motion between the breaks of the commanded path, so
    the motion does not depend on how often :meth:`advance` is called.

    Args:
        start: (n,) [rad or m] initial position and command.
        seed: of the noise.
        now: [s] initial time.
    """

    def __init__(self, start: Array, dynamics: Dynamics, seed: int, now: float) -> None:
        self.dynamics = dynamics
        self.frozen = False  # the drives are stuck
        self._random = np.random.default_rng(seed)
        self._time = now
        self.reset(start)

    @property
    def q(self) -> Array:
        """True joint positions (n,) [rad or m]."""
        return self._q.copy()

    def reset(self, start: Array) -> None:
        """Move to a start (n,) at once and drop all commands."""
        self._q = start.copy()
        self.velocity = np.zeros(len(start))  # (n,) [rad/s or m/s] mean since the last time
        # Each path with the time of its command; it replaces the rest of the one before.
        self._commands = deque([(-np.inf, standstill(start, 0.0))])

    def command(self, path: Path, now: float) -> None:
        """Follow a path from a time [s] on; it replaces the rest of the one before."""
        state = self._commands[-1][1].at(now)
        self._commands.append((now, path.from_here(now, *state)))

    def advance(self, now: float) -> None:
        """Advance to a time [s]."""
        if now <= self._time:
            return
        before, elapsed = self._q, now - self._time
        end = now - self.dynamics.delay
        self._time = now
        if not self.frozen:
            self._follow(end - elapsed, end)
        self.velocity = (self._q - before) / elapsed
        while len(self._commands) > 1 and self._commands[1][0] <= end:
            self._commands.popleft()

    def measured(self) -> Array:
        """Return measured positions (n,) [rad or m], with new noise at each call."""
        return self._q + self.dynamics.noise * self._random.standard_normal(len(self._q))

    def _follow(self, begin: float, end: float) -> None:
        """Follow the commands from one time to another [s]."""
        for first, last in pairwise([begin, *self._breaks(begin, end), end]):
            times = np.linspace(first, last, 2 + int((last - first) / MAX_STEP)).tolist()
            for t0, t1 in pairwise(times):
                path = self._path(t0)
                self._step(path.at(t0)[0], path.at(t1)[0], t1 - t0)

    def _breaks(self, begin: float, end: float) -> list[float]:
        """Return the times between two others at which the command is not smooth, in order."""
        times = {t for since, path in self._commands for t in (since, *path.times.tolist())}
        return sorted(t for t in times if begin < t < end)

    def _path(self, t: float) -> Path:
        """Return the path that is valid at a time [s], or the oldest that is known."""
        oldest = self._commands[0][1]
        return next((path for since, path in reversed(self._commands) if since <= t), oldest)

    def _step(self, r0: Array, r1: Array, h: float) -> None:
        """Follow a reference that goes straight from r0 (n,) to r1 (n,) in a time h > 0 [s].

        The lag is q' = (r - q) / T; for a ramp r its solution is r - T r' + C exp(-t / T).
        """
        dynamics, q = self.dynamics, self._q
        goal = r1
        if dynamics.time_constant > 0.0:
            trail = dynamics.time_constant * (r1 - r0) / h
            goal = r1 - trail + (q - r0 + trail) * np.exp(-h / dynamics.time_constant)
        bound = dynamics.velocity * h
        self._q = q + np.clip(goal - q, -bound, bound)
