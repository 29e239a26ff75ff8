"""Poses at equal times, for scripted motion."""

from itertools import pairwise

import numpy as np

from dls_ik.core.se3 import difference, moved
from dls_ik.core.types import Array
from dls_ik.servo.targets.target import STANDING, Tip

AT_START = 1e-3  # [m and rad] near enough to the first pose


class TrajectoryTarget:
    """Goes to the first pose, by whatever way, and from there through the others on time.

    Between two poses the tip moves straight and turns about one axis, at constant rates. The last
    pose stands.

    Args:
        Ts: (m, 4, 4) poses.
        period: [s] between two of them.
        begin: when the motion may begin.
        length_unit: units of the poses' lengths in a metre.
    """

    is_velocity = False
    waits_for_command = True

    def __init__(self, Ts: Array, period: float, begin: float, length_unit: float = 1.0) -> None:
        self._Ts: list[Array] = list(Ts)
        self._period, self._begin = period, begin
        self._started: float | None = None
        self._legs = np.array([difference(a, b) for a, b in pairwise(Ts)])
        self.sampled = begin
        self._near = AT_START * np.array([length_unit] * 3 + [1.0] * 3)

    def pose(self, now: float, dt: float, tip: Tip) -> Array:
        """The pose now (4, 4)."""
        self.sampled = now
        if self._started is None:
            if now < self._begin or (np.abs(difference(tip(), self._Ts[0])) > self._near).any():
                return self._Ts[0]
            self._started = now
        done = max(0.0, now - self._started) / self._period
        leg = int(done)
        if leg >= len(self._legs):
            return self._Ts[-1]
        return moved(self._Ts[leg], self._legs[leg] * (done - leg))

    def postpone(self, duration: float) -> None:
        """Let the rest of the way be gone later [s]."""
        self._begin += duration
        if self._started is not None:
            self._started += duration

    def is_stale(self, now: float) -> bool:
        """Never: it is complete."""
        return False

    def stands(self, now: float) -> bool:
        """Whether the arm is still to come to its beginning, or to its end."""
        if self._started is None:
            return now - self._begin >= STANDING
        return now - self._started >= len(self._legs) * self._period + STANDING
