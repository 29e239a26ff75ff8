"""Monitors of motion toward a target: a stall, and a command that its limits keep in place."""

import math
from typing import NamedTuple

import numpy as np

from dls_ik.core.se3 import difference
from dls_ik.core.types import Array

WINDOW = 0.25  # [s]
PATIENCE = 2.0  # [s]
CYCLES = 5  # at least, in a window
PROGRESS = 0.8  # share of the error that a window may leave
CREEP = 0.1  # share of the velocity limits: slower motion is a stall, so is going to and fro

REFUSED = 0.5  # [s] in which a command that may move does
LEAST_GAP = 1e-6  # [rad or m] to the reference
LEAST_SHARE = 1e-3  # of the gap
TICK = 1e-6  # [s] by which times that are the same may differ


class StallWindow(NamedTuple):
    """Begin of the cycles that a stall is judged by."""

    since: float  # [s]
    error: float  # [m]
    q: Array  # (n,)
    T: Array  # (4, 4) target
    cycles: int = 1


class StallMonitor:
    """Detects a stall: a while has left most of the error, and the arm in place.

    Motion that keeps up with a moving target is no stall, however slow: then the error is less than
    the way of the target meanwhile.

    Args:
        velocity: (n,) limits [rad/s or m/s].
        weight: length that a rotation of the target counts as [m/rad].
    """

    def __init__(self, velocity: Array, weight: float) -> None:
        self._velocity, self._weight = velocity, weight
        self.reset()

    def reset(self) -> None:
        """Begin anew, such as for another target."""
        self._window: StallWindow | None = None

    def update(self, now: float, error: float, q: Array, T_d: Array) -> bool:
        """Return whether motion has stalled.

        Args:
            error: that is left [m], rotation weighted.
            q: (n,) joint values.
            T_d: (4, 4) pose of the target.
        """
        window = self._window
        if window is None or not PROGRESS * window.error <= error <= window.error / PROGRESS:
            self._window = StallWindow(now, error, q.copy(), T_d.copy())
            return False
        self._window = window = window._replace(cycles=window.cycles + 1)
        if now - window.since < WINDOW - TICK or window.cycles <= CYCLES:
            return False
        way = float(np.max(np.abs(q - window.q) / self._velocity))
        V = difference(window.T, T_d)
        moved = math.hypot(*V[:3], *(self._weight * V[3:]))  # [m]
        if way <= CREEP * (now - window.since) and error >= moved:
            return True
        self._window = StallWindow(now, error, q.copy(), T_d.copy())
        return False

    def has_lasted(self, now: float) -> bool:
        """Return whether a stall just detected is so old that the arm need not creep on."""
        return self._window is not None and now - self._window.since >= PATIENCE - TICK


class RefusalMonitor:
    """Detects a command that stays where it is although its reference is elsewhere."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin anew, such as for another target."""
        self._still: tuple[float, Array] | None = None  # since when [s], and where (n,)

    def update(self, now: float, q_r: Array, q: Array) -> bool:
        """Return whether the command (n,) has not moved toward its reference (n,) for a while."""
        gap = max(map(abs, (q_r - q).tolist()))
        if (
            gap < LEAST_GAP
            or self._still is None
            or max(map(abs, (q - self._still[1]).tolist())) > LEAST_SHARE * gap
        ):
            self._still = now, q.copy()
        return now - self._still[0] >= REFUSED - TICK
