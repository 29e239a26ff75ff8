# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Adaptation of a reference whose path turns faster than a joint command can follow.

The method is described in :mod:`dls_ik.core.pursuit`.
"""

import numpy as np

from dls_ik import compat
from dls_ik.core.boxes import boxed
from dls_ik.core.pursuit import PursuitState, adapt_reference
from dls_ik.core.types import Array

MAX_TRACKING_LAG = 0.08  # [s] the reference is adapted only if the command lags by more


class Pursuit:
    """Adapts a reference so that the command that follows it does not overshoot.

    Args:
        acceleration: (n,) acceleration limits [rad/s^2 or m/s^2], infinite without a limit.
        slack: Time that is added to `MAX_TRACKING_LAG` [s], for example the lag due to a jerk
            limit.
    """

    def __init__(self, acceleration: Array, slack: float = 0.0) -> None:
        n, max_lag = len(acceleration), MAX_TRACKING_LAG + slack
        self._state = PursuitState(acceleration.copy(), max_lag, np.zeros((2, n)), np.zeros(1))
        self._box = boxed(self._state)
        self._adapt = compat.EntryPoint(adapt_reference)
        self._is_limited = bool(np.isfinite(acceleration).any())

    def reset(self, v: Array) -> None:
        """Assume that the reference has moved at a constant velocity `v` (n,) [rad/s or m/s]."""
        self._state.means[:] = v
        self._state.demand[0] = 0.0

    def follow(self, q: Array, q_r: Array, v_r: Array, dt: float) -> tuple[Array, Array]:
        """Return position and velocity (n,) of a reference that the command can follow.

        The result is the given reference, `q_r` and `v_r`, if the command can follow it.

        Args:
            q: (n,) commanded joint positions at the start of the cycle [rad or m].
            q_r: (n,) position of the reference at the end of the cycle [rad or m].
            v_r: (n,) velocity of the reference [rad/s or m/s].
            dt: Duration of the cycle [s].
        """
        q_r, v_r = np.ascontiguousarray(q_r, dtype=float), np.ascontiguousarray(v_r, dtype=float)
        if not self._is_limited:
            return q_r, v_r
        q_a, v_a = out = np.empty((2, len(q)))
        self._adapt(self._box, q, q_r, v_r, dt, out)
        return q_a, v_a
