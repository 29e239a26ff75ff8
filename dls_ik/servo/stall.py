# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Monitors that detect local motion without progress, and a command that limits hold in place.

Local motion is the stepwise motion of an IK method toward a target.
"""

import math
from typing import NamedTuple

import numpy as np

from dls_ik.core.se3 import difference
from dls_ik.core.types import Array

STALL_WINDOW = 0.25  # [s] shortest time over which progress is measured
MIN_STALL_CYCLES = 5  # minimum number of cycles over which progress is measured
MIN_LASTING_STALL = 2.0  # [s] duration of a stall after which local motion is given up
MAX_REMAINING_ERROR = 0.8  # no progress if a larger share of the error remains after a window
MIN_REST_TIME = 0.1  # [s] time without any motion toward a target at rest that counts as a stall
MAX_STALL_SPEED = 0.1  # share of the velocity limits; faster net motion is not a stall

BLOCKED_TIME = 0.5  # [s] time without motion after which a command counts as blocked
MIN_GAP = 1e-6  # [rad or m] a resting command closer to its reference is not blocked
MIN_MOTION = 1e-3  # share of the distance to the reference; a larger change counts as motion
TICK = 1e-6  # [s] tolerance for comparing times


class StallWindow(NamedTuple):
    """State at the start of a window in which progress is measured."""

    since: float  # [s] time at which the window started
    error: float  # [m] error at that time
    q: Array  # (n,) joint positions at the start [rad or m]
    T: Array  # (4, 4) or (s, 4, 4) poses of the target at the start


class StallMonitor:
    """Detects a stall: the error hardly decreases, and the joints hardly move, during a window.

    A window is at least `STALL_WINDOW` [s] long. Slow motion that follows a moving target is not a
    stall; it is recognised because the error is smaller than the motion of the target during the
    window. Complete rest of the joints and the target for `MIN_REST_TIME` is also a stall, because
    the steps of the next cycles would be zero again.

    Args:
        velocity: (n,) velocity limits [rad/s or m/s].
        weight: Factor that converts rotations to lengths in errors [m/rad].
    """

    def __init__(self, velocity: Array, weight: float) -> None:
        self._velocity, self._weight = velocity, weight
        self.reset()

    def reset(self) -> None:
        """Forget the current window, for example because the target has changed."""
        self._window: StallWindow | None = None
        self._cycles = 0  # number of cycles in the window
        # Time [s] and error [m] of the last cycle with a motion, and cycles since then
        self._rest_since, self._rest_error, self._rest_cycles = math.inf, math.nan, 0

    def update(self, now: float, error: float, q: Array, T_d: Array, motion: float) -> bool:
        """Return whether local motion has stalled; call once per cycle.

        Args:
            now: Current time [s].
            error: Norm of the vector (position error, `weight` times rotation error) [m].
            q: (n,) joint positions [rad or m].
            T_d: (4, 4) T_base_tip of the target, or (s, 4, 4) of s frames.
            motion: Largest motion of a joint in the last step [rad or m].
        """
        if self._rests(now, error, motion):
            if self._window is None:
                self._start_window(now, error, q, T_d)
            return True
        window = self._window
        bound = MAX_REMAINING_ERROR
        if window is None or not bound * window.error <= error <= window.error / bound:
            self._start_window(now, error, q, T_d)
            return False
        self._cycles += 1
        if now - window.since < STALL_WINDOW - TICK or self._cycles <= MIN_STALL_CYCLES:
            return False
        # [s] shortest time for the net motion at the velocity limits
        moved = float(np.max(np.abs(q - window.q) / self._velocity))
        target_moved = self._distance(window.T, T_d)
        if moved <= MAX_STALL_SPEED * (now - window.since) and error >= target_moved:
            return True
        self._start_window(now, error, q, T_d)
        return False

    def _rests(self, now: float, error: float, motion: float) -> bool:
        """Return whether neither the joints nor the target have moved for `MIN_REST_TIME`.

        While the joints rest, a motion of the target is recognised by a change of the error.
        """
        if motion > 0.0 or error != self._rest_error:
            self._rest_since, self._rest_error, self._rest_cycles = now, error, 0
            return False
        self._rest_cycles += 1
        is_long = now - self._rest_since >= MIN_REST_TIME - TICK
        return is_long and self._rest_cycles > MIN_STALL_CYCLES

    def _distance(self, T_a: Array, T_b: Array) -> float:
        """Return the distance between two targets [m]; the largest one if there are several."""
        if T_a.ndim > 2:
            return max(self._distance(a, b) for a, b in zip(T_a, T_b, strict=True))
        V = difference(T_a, T_b)
        return math.hypot(*V[:3], *(self._weight * V[3:]))

    def _start_window(self, now: float, error: float, q: Array, T_d: Array) -> None:
        self._window, self._cycles = StallWindow(now, error, q.copy(), T_d.copy()), 1

    def has_lasted(self, now: float) -> bool:
        """Return whether the detected stall has lasted for at least `MIN_LASTING_STALL`.

        Call this only after :meth:`update` has detected a stall.
        """
        return self._window is not None and now - self._window.since >= MIN_LASTING_STALL - TICK


class BlockedMonitor:
    """Detects that limits hold a command in place although it differs from its reference."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget the last motion, for example because the target has changed."""
        self._last_motion: tuple[float, Array] | None = None  # time [s] and command (n,)

    def update(self, now: float, q_r: Array, q: Array, gap: float | None = None) -> bool:
        """Return whether the command has rested for `BLOCKED_TIME`, away from its reference.

        Args:
            now: Current time [s].
            q_r: (n,) joint positions of the reference [rad or m].
            q: (n,) joint positions of the command [rad or m]; the array must not change afterwards.
            gap: Largest distance of a joint from its reference [rad or m]; None: computed here.
        """
        if gap is None:
            gap = max(map(abs, (q_r - q).tolist()))
        if (
            gap < MIN_GAP
            or self._last_motion is None
            or max(map(abs, (q - self._last_motion[1]).tolist())) > MIN_MOTION * gap
        ):
            self._last_motion = now, q
        return now - self._last_motion[0] >= BLOCKED_TIME - TICK
