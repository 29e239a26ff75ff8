"""Whether local motion gets anywhere, and whether the command may go after it."""

import math

import numpy as np

from dls_ik.core.se3 import difference
from dls_ik.core.types import Array

WINDOW = 0.25  # [s]
TICK = 1e-6  # [s] that times may differ by, and be the same
PATIENCE = 2.0  # [s]
CYCLES = 5  # at least, in a window
PROGRESS = 0.8  # share of the error that a window may leave
CREEP = 0.1  # share of the velocity limits: slower motion gets nowhere, nor does going to and fro
REFUSED = 0.5  # [s] in which a command that may move does
LEAST_GAP = 1e-6  # [rad or m] to the reference
LEAST_SHARE = 1e-3  # of the gap


class StallWatch:
    """Says that motion has stalled when a while has left most of the error, and the arm in place.

    Motion that keeps up with a target that moves has not, however slow: what it is behind is less
    than what the target moved by meanwhile.

    Args:
        velocity: (n,) limits [rad/s or m/s].
        weight: what a rotation of the target counts as [m/rad].
    """

    def __init__(self, velocity: Array, weight: float) -> None:
        self._velocity, self._weight = velocity, weight
        self.reset()

    def reset(self) -> None:
        """Begin anew, such as for another target."""
        self._since, self._error, self._cycles = -math.inf, math.inf, 0
        self._q, self._T = np.zeros_like(self._velocity), np.eye(4)
        self._is_stalled = False

    def update(self, now: float, error: float, q: Array, T_d: Array) -> bool:
        """Look at a cycle.

        Args:
            error: that is left [m], rotation weighted.
            q: (n,) where the arm is.
            T_d: (4, 4) where the target is.
        """
        self._cycles += 1
        if self._is_getting_on(error):
            self._begin(now, error, q, T_d)
        elif now - self._since >= WINDOW - TICK and self._cycles > CYCLES:
            way = float(np.max(np.abs(q - self._q) / self._velocity))
            is_slow = way <= CREEP * (now - self._since)
            self._is_stalled = is_slow and error >= self._moved(T_d)
            if not self._is_stalled:
                self._begin(now, error, q, T_d)
        return self._is_stalled

    def has_lasted(self, now: float) -> bool:
        """Whether a stall is such an old one that there is no use in creeping on."""
        return self._is_stalled and now - self._since >= PATIENCE - TICK

    def _is_getting_on(self, error: float) -> bool:
        """Whether the error has changed much; also on the first cycle, which has none before."""
        return not PROGRESS * self._error <= error <= self._error / PROGRESS

    def _moved(self, T_d: Array) -> float:
        """How far the target has moved since the while began [m]."""
        V = difference(self._T, T_d)
        return math.hypot(*V[:3], *(self._weight * V[3:]))

    def _begin(self, now: float, error: float, q: Array, T_d: Array) -> None:
        self._since, self._error, self._cycles = now, error, 1
        self._q, self._T = q.copy(), T_d.copy()
        self._is_stalled = False


class RefusalMonitor:
    """Says that a command stays where it is although its reference is elsewhere."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin anew, such as for another target."""
        self._since, self._q = math.inf, np.zeros(0)

    def update(self, now: float, q_r: Array, q: Array) -> bool:
        """Look at a cycle with its reference and its command (n,)."""
        gap = float(np.abs(q_r - q).max())
        if (
            gap < LEAST_GAP
            or not len(self._q)
            or float(np.abs(q - self._q).max()) > LEAST_SHARE * gap
        ):
            self._since, self._q = now, q.copy()
        return now - self._since >= REFUSED - TICK
