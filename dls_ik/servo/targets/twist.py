"""A twist: resolved motion rate, as a pose that moves with it."""

import numpy as np

from dls_ik.core.motion import difference, moved
from dls_ik.core.types import Array
from dls_ik.servo.targets.target import Tip


class TwistTarget:
    """A pose that moves with a twist, and goes no farther ahead of the tip than a lead.

    The reference follows the pose: x' = x'_d + K_p (x_d - x_a) with K_p = 1/dt (Deo & Walker 1993).
    So what the joints could not follow in one cycle is made up for in the next, and no more than
    the lead of it when they cannot at all.

    Args:
        timeout: [s] a twist is in force without another one.
        lead: [m].
        rotation_weight: [m/rad] length that a lead of 1 rad counts as.
    """

    waits_for_command = False

    def __init__(self, timeout: float, lead: float, rotation_weight: float) -> None:
        self._timeout = timeout
        self._lead = lead
        self._weights = np.array([1.0] * 3 + [rotation_weight] * 3)
        self._V: Array = np.zeros(6)
        self._in_tool = False
        self._T: Array | None = None
        self._arrived = self.sampled = -np.inf

    def take(self, V: Array, in_tool: bool, sampled: float, now: float) -> None:
        """The next twist (6,) [m/s, rad/s], linear first, of the tip.

        Args:
            in_tool: along the axes of the tip as it turns; else along those of the base.
        """
        self._V, self._in_tool, self._arrived, self.sampled = V, in_tool, now, sampled

    def pose(self, now: float, dt: float, tip: Tip) -> Array:
        """The pose at the end of the cycle (4, 4)."""
        T = self._T if self._T is not None else tip()
        V = self._V
        if self._in_tool:
            V = np.concatenate([T[:3, :3] @ V[:3], T[:3, :3] @ V[3:]])
        length = float(np.linalg.norm(self._weights * V)) * dt
        V = V * (dt if length <= self._lead else dt * self._lead / length)  # never half a turn
        self._T = self._within_lead(moved(T, V), tip())
        return self._T

    def _within_lead(self, T: Array, T_tip: Array) -> Array:
        """The pose T, or one on the way to it that is as far from the tip as it may be."""
        ahead = difference(T_tip, T)
        length = float(np.linalg.norm(self._weights * ahead))
        farthest = self._lead
        return moved(T_tip, ahead * (farthest / length)) if length > farthest else T

    def is_stale(self, now: float) -> bool:
        """Whether there was none for too long."""
        return now - self._arrived > self._timeout

    def stands(self, now: float) -> bool:
        """Never: the arm is to move as it is told, or not at all."""
        return False
