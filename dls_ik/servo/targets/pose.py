"""A pose: the only one, or the newest of a stream."""

import math

import numpy as np

from dls_ik.core.se3 import difference, moved
from dls_ik.core.types import Array
from dls_ik.servo.targets.target import STANDING, Tip, is_same

FARTHEST_AHEAD = 1.5  # intervals between targets, for which their velocity is taken to last


class PoseTarget:
    """A pose that stands, until there is another.

    Poses that follow each other within `timeout` are a stream, which has ceased after it. A single
    one, or one now and then, stays in force.

    Args:
        timeout: [s].
        feed_forward: poses move on between messages with the velocity of the last two.
        length_unit: units of the poses' lengths in a metre.
    """

    is_velocity = False
    waits_for_command = False

    def __init__(self, timeout: float, feed_forward: bool, length_unit: float = 1.0) -> None:
        self.timeout, self.feed_forward = timeout, feed_forward
        self._unit = length_unit
        self._T: Array = np.eye(4)
        self._stood: Array = self._T  # the pose that it has not left since it changed
        self._velocity = np.zeros(6)  # [m/s, rad/s]
        self._interval = math.inf  # [s] between the last two
        self._arrived = self.sampled = self._changed = -math.inf

    def take(self, T: Array, sampled: float, now: float) -> None:
        """The next pose (4, 4), sampled at a time [s] before it arrived now."""
        V = difference(self._T, T)
        interval = now - self._arrived
        if not interval <= self.timeout or not is_same(T, self._stood, self._unit):
            self._changed, self._stood = now, T
        between = sampled - self.sampled
        self._velocity = V / between if 1e-4 < between <= self.timeout else np.zeros(6)
        self._T, self._arrived, self.sampled, self._interval = T, now, sampled, interval

    def pose(self, now: float, dt: float, tip: Tip) -> Array:
        """The pose now (4, 4)."""
        if not self.feed_forward:
            return self._T
        ahead = min(max(now - self.sampled, 0.0), FARTHEST_AHEAD * self._interval)
        return moved(self._T, self._velocity * ahead) if ahead > 0.0 else self._T

    def is_stale(self, now: float) -> bool:
        """Whether it was a stream that has ceased."""
        return self._interval <= self.timeout < now - self._arrived

    def stands(self, now: float) -> bool:
        """Whether it has not changed for a while."""
        return now - self._changed >= STANDING
