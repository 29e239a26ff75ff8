"""An arm that is not there: joints that go where they are told, as drives do. Without ROS."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.ros.sim_arm.history import History
from dls_ik.ros.sim_arm.path import Path

LONGEST_STEP = 1e-3  # [s] of the integration


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
