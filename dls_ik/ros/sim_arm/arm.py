"""A simulated arm: joints that follow a commanded path behind a delay and a lag, without ROS."""

from collections import deque
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from dls_ik.core.types import Array

LONGEST_STEP = 1e-3  # [s] of the integration


class Path(NamedTuple):
    """k knots; before the first and after the last it stands still.

    Between two knots it is straight, or a cubic where both of them have velocities.
    """

    times: Array  # (k,) [s] increasing
    positions: Array  # (k, n) [rad or m]
    velocities: Array  # (k, n) [rad/s or m/s], rows of NaN where there are none

    def at(self, t: float) -> tuple[Array, Array]:
        """Positions (n,) and velocities (n,) at a time [s]."""
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
        """The same path, and before its first knot on the way there from a state (n,) at a time."""
        if t >= self.times[0]:
            return self
        return Path(
            np.concatenate([[t], self.times]),
            np.vstack([positions, self.positions]),
            np.vstack([velocities, self.velocities]),
        )


def standstill(positions: Array, t: float) -> Path:
    """A path that is at these positions (n,), from a time on."""
    return Path(np.array([t]), positions[None], np.full((1, len(positions)), np.nan))


def _cubic(
    s: float, h: float, ends: tuple[Array, Array], slopes: tuple[Array, Array]
) -> tuple[Array, Array]:
    """Hermite's cubic over h [s] at a share s of it: positions (n,) and velocities (n,)."""
    rise = ends[1] - ends[0]
    first, second = h * slopes[0] - rise, rise - h * slopes[1]
    bend = (1.0 - s) * first + s * second
    position = ends[0] + s * rise + s * (1.0 - s) * bend
    velocity = (rise + (1.0 - 2.0 * s) * bend + s * (1.0 - s) * (second - first)) / h
    return position, velocity


class History:
    """Paths by the time when each was commanded; each replaces what follows of the one before."""

    def __init__(self, start: Array) -> None:
        self._commands = deque([(-np.inf, standstill(start, 0.0))])

    def add(self, path: Path, now: float) -> None:
        """Follow a path from now on [s], and until its first knot go there from the last one."""
        self._commands.append((now, path.from_here(now, *self._commands[-1][1].at(now))))

    def at(self, t: float) -> Array:
        """The positions (n,) commanded for a time [s]; where they jump, those after it."""
        return self._path(t).at(t)[0]

    def piece(self, begin: float, end: float) -> tuple[Array, Array]:
        """The positions (n,) at two times, the second as the path of the first has them."""
        path = self._path(begin)
        return path.at(begin)[0], path.at(end)[0]

    def breaks(self, begin: float, end: float) -> list[float]:
        """The times between two others when the path is not smooth, in order."""
        times = {t for t in self._times() if begin < t < end}
        return sorted(times)

    def forget(self, t: float) -> None:
        """Drop what was replaced before a time [s]."""
        while len(self._commands) > 1 and self._commands[1][0] <= t:
            self._commands.popleft()

    def _path(self, t: float) -> Path:
        oldest = self._commands[0][1]  # for a time before all that is kept
        return next((path for since, path in reversed(self._commands) if since <= t), oldest)

    def _times(self) -> Iterator[float]:
        for since, path in self._commands:
            yield since
            yield from path.times.tolist()


class Dynamics(NamedTuple):
    """How the joints answer."""

    velocity: Array  # (n,) [rad/s or m/s] greatest; infinite: no bound
    delay: float = 0.0  # [s] from a command to the drives
    time_constant: float = 0.0  # [s] of the first-order lag between the drives and the joints
    noise: float = 0.0  # [rad or m] standard deviation of what is measured


class SimulatedArm:
    """Joints behind a delay, a first-order lag and a bound on their velocities.

    Between the breaks of the commanded path the lag is integrated exactly for straight motion, so
    that what comes out does not depend on how often it is asked for.

    Args:
        start: (n,) [rad or m] where it stands, and is told to.
        seed: of the noise.
        now: [s] the time at the start; it only has to run forward.
    """

    def __init__(self, start: Array, dynamics: Dynamics, seed: int, now: float) -> None:
        self.dynamics = dynamics
        self.frozen = False  # the drives are stuck
        self.velocity = np.zeros(len(start))  # (n,) [rad/s or m/s] mean, between the last two times
        self._random = np.random.default_rng(seed)
        self._time = now
        self.reset(start)

    @property
    def q(self) -> Array:
        """Where the joints really are (n,) [rad or m]."""
        return self._q.copy()

    def reset(self, start: Array) -> None:
        """Stand somewhere else at once, and forget all commands."""
        self._q = start.copy()
        self._history = History(start)
        self.velocity = np.zeros(len(start))

    def command(self, path: Path, now: float) -> None:
        """Take a path that arrives at a time [s]; it replaces what follows of the one before."""
        self._history.add(path, now)

    def advance(self, now: float) -> None:
        """Let the time run on to now [s]."""
        if now <= self._time:
            return
        before, elapsed = self._q, now - self._time
        self._time = now
        if not self.frozen:
            self._follow(now - elapsed - self.dynamics.delay, now - self.dynamics.delay)
        self.velocity = (self._q - before) / elapsed
        self._history.forget(now - self.dynamics.delay)

    def measured(self) -> Array:
        """The positions as sensors tell them (n,) [rad or m]; the noise is new each time."""
        return self._q + self.dynamics.noise * self._random.standard_normal(len(self._q))

    def _follow(self, begin: float, end: float) -> None:
        """Follow what was commanded from one time to another [s]."""
        times = [begin, *self._history.breaks(begin, end), end]
        for first, last in pairwise(times):
            steps = np.linspace(first, last, 2 + int((last - first) / LONGEST_STEP)).tolist()
            for t0, t1 in pairwise(steps):
                self._step(*self._history.piece(t0, t1), t1 - t0)

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
