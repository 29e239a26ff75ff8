"""Whether local motion gets anywhere."""

import math

import numpy as np

from dls_ik.core.types import Array

WINDOW = 0.25  # [s]
TICK = 1e-6  # [s] that times may differ by, and be the same
PATIENCE = 2.0  # [s]
CYCLES = 5  # at least, in a window
PROGRESS = 0.8  # share of the error that a window may leave
CREEP = 0.1  # share of the velocity limits: slower motion gets nowhere, nor does going to and fro


class StallWatch:
    """Says that motion has stalled when a while has left most of the error, and the arm in place.

    Args:
        velocity: (n,) limits [rad/s or m/s].
    """

    def __init__(self, velocity: Array) -> None:
        self._velocity = velocity
        self.reset()

    def reset(self) -> None:
        """Begin anew, such as for another target."""
        self._since, self._error, self._cycles = -math.inf, math.inf, 0
        self._q = np.zeros_like(self._velocity)
        self._is_stalled = False

    def update(self, now: float, error: float, q: Array) -> bool:
        """Look at a cycle.

        Args:
            error: that is left, of any unit.
            q: (n,) where the arm is.
        """
        self._cycles += 1
        if self._is_getting_on(error):
            self._begin(now, error, q)
        elif now - self._since >= WINDOW - TICK and self._cycles > CYCLES:
            way = float(np.max(np.abs(q - self._q) / self._velocity))
            self._is_stalled = way <= CREEP * (now - self._since)
            if not self._is_stalled:
                self._begin(now, error, q)
        return self._is_stalled

    def has_lasted(self, now: float) -> bool:
        """Whether a stall is such an old one that there is no use in creeping on."""
        return self._is_stalled and now - self._since >= PATIENCE - TICK

    def _is_getting_on(self, error: float) -> bool:
        """Whether the error has changed much; also on the first cycle, which has none before."""
        return not PROGRESS * self._error <= error <= self._error / PROGRESS

    def _begin(self, now: float, error: float, q: Array) -> None:
        self._since, self._error, self._q, self._cycles = now, error, q.copy(), 1
        self._is_stalled = False
