"""A twist: resolved motion rate, as a pose that moves with it."""

import numpy as np

from dls_ik.core.se3 import difference, moved
from dls_ik.core.types import Array
from dls_ik.servo.targets.target import Tip

K_P = 10.0  # [1/s]
BLOCKED = 0.1  # share of the twist: a slower tip is blocked
LONGEST = 1.0  # [m and rad] that a pose is moved by in one cycle; half a turn would lead back


class TwistTarget:
    """Resolved motion rate: x' = x'_d + K_p (x_d - x_a) (Deo & Walker 1993).

    x_d is where the twist would have led the tip, at most `lookahead` ahead of the tip: jogging
    asks for a velocity, so motion that was blocked is not made up for.

    Args:
        timeout: [s] a twist is in force without another one.
        lookahead: [m].
        rotation_weight: [m/rad] length that 1 rad of lookahead counts as.
        length_unit: units of the twist's lengths in a metre.
    """

    is_velocity = True
    waits_for_command = True

    def __init__(
        self, timeout: float, lookahead: float, rotation_weight: float, length_unit: float = 1.0
    ) -> None:
        self.timeout = timeout
        self.lookahead = lookahead
        self._weights = np.array([1.0 / length_unit] * 3 + [rotation_weight] * 3)  # to metres
        self._units = np.array([length_unit] * 3 + [1.0] * 3)
        self._V: Array = np.zeros(6)
        self._in_tool = False
        self._x_d: Array | None = None
        self._x_a: Array | None = None  # of the last cycle
        self._arrived = self.sampled = -np.inf

    def take(self, V: Array, in_tool: bool, sampled: float, now: float) -> None:
        """The next twist (6,) [m/s, rad/s], linear first, of the tip.

        Args:
            in_tool: along the axes of the tip as it turns; else along those of the base.
        """
        self._V, self._in_tool, self._arrived, self.sampled = V, in_tool, now, sampled

    def pose(self, now: float, dt: float, tip: Tip) -> Array:
        """The pose at the end of the cycle (4, 4)."""
        x_a = tip()
        ahead = self._ahead(x_a)
        way = self._short(self._twist(x_a) * dt)
        share = 1.0 if self._is_blocked(x_a, way) else min(K_P * dt, 1.0)
        self._x_d, self._x_a = moved(moved(x_a, ahead), way), x_a
        return moved(x_a, way + share * ahead)

    def _twist(self, x_a: Array) -> Array:
        """(6,) along the axes of the base."""
        if not self._in_tool:
            return self._V
        return turned(x_a[:3, :3], self._V)

    def _is_blocked(self, x_a: Array, way: Array) -> bool:
        """Whether the tip hardly goes the way; then x_d stands too, for it to settle there."""
        if self._x_a is None:
            return False
        made, wanted = self._weights * difference(self._x_a, x_a), self._weights * way
        return float(made @ wanted) < BLOCKED * float(wanted @ wanted)

    def _short(self, way: Array) -> Array:
        longest = float(np.abs(way / self._units).max())
        return way * (LONGEST / longest) if longest > LONGEST else way

    def _length(self, V: Array) -> float:
        return float(np.linalg.norm(self._weights * V))

    def _ahead(self, x_a: Array) -> Array:
        """x_d - x_a (6,), no longer than the lookahead."""
        if self._x_d is None:
            return np.zeros(6)
        ahead = difference(x_a, self._x_d)
        length = self._length(ahead)
        return ahead * (self.lookahead / length) if length > self.lookahead else ahead

    def is_stale(self, now: float) -> bool:
        """Whether there was none for too long."""
        return now - self._arrived > self.timeout

    def stands(self, now: float) -> bool:
        """Never: the arm is to move as it is told, or not at all."""
        return False


def turned(R: Array, V: Array) -> Array:
    """A twist (6,) that is given along other axes, whose rotation is R (3, 3)."""
    return np.concatenate([R @ V[:3], R @ V[3:]])
