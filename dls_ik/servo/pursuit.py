# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Pursuit of a reference whose path may turn faster than a joint command can follow.

The method is described in :mod:`dls_ik.core.pursuit`.
"""

import numpy as np

from dls_ik import compat
from dls_ik.core.boxes import Boxed, boxed
from dls_ik.core.limiter import CommandLimits
from dls_ik.core.pursuit import PursuitState, pursue, target_velocity
from dls_ik.core.types import Array

MAX_TRACKING_LAG = 0.08  # [s] the reference is adapted only if the command lags by more


class Pursuit:
    """Moves a command toward a reference, which is adapted so that the command does not overshoot.

    The reference remains unchanged as long as the command can follow it.

    Args:
        limits: Limits of the command.
        acceleration: (n,) acceleration limits [rad/s^2 or m/s^2], infinite without a limit.
        slack: Time that is added to `MAX_TRACKING_LAG` [s], for example the lag due to a jerk
            limit.

    Attributes:
        state: Limits of the command, and recent motion of the reference.
    """

    def __init__(
        self, limits: Boxed[CommandLimits], acceleration: Array, slack: float = 0.0
    ) -> None:
        n, max_lag = len(acceleration), MAX_TRACKING_LAG + slack
        self.state = PursuitState(acceleration.copy(), max_lag, np.zeros((2, n)), np.zeros(1))
        self._boxes = limits, boxed(self.state)
        self._pursue, self._target_velocity = (
            compat.EntryPoint(pursue),
            compat.EntryPoint(target_velocity),
        )

    def reset(self, v: Array) -> None:
        """Assume that the reference has moved at a constant velocity `v` (n,) [rad/s or m/s]."""
        self.state.means[:] = v
        self.state.demand[0] = 0.0

    def advance(self, q: Array, v: Array, q_r: Array, v_r: Array, dt: float) -> Array:
        """Return the command at the end of a cycle with limited acceleration.

        The result is (3, n): positions [rad or m], mean velocities in the cycle, and velocities at
        its end [rad/s or m/s].

        Args:
            q: (n,) commanded positions at the start of the cycle [rad or m].
            v: (n,) commanded velocities at the start of the cycle [rad/s or m/s].
            q_r: (n,) position of the reference at the end of the cycle [rad or m].
            v_r: (n,) velocity of the reference [rad/s or m/s].
            dt: Duration of the cycle [s].
        """
        q_r, v_r = np.ascontiguousarray(q_r, dtype=float), np.ascontiguousarray(v_r, dtype=float)
        moved = np.empty((3, len(q)))
        self._pursue(*self._boxes, q_r, v_r, dt, q, v, moved)
        return moved

    def aim(self, q: Array, v: Array, q_r: Array, v_r: Array, dt: float) -> tuple[int, Array]:
        """Return the kind and the target of the next motion of a command with limited jerk.

        The arguments are those of :meth:`advance`.

        Returns:
            TOO_FAST, RESTING or MOVING, see :func:`dls_ik.core.pursuit.target_velocity`, and an
            array (2, n): target positions, which are valid for RESTING [rad or m], and target
            velocities, which are valid for MOVING [rad/s or m/s].
        """
        q_r, v_r = np.ascontiguousarray(q_r, dtype=float), np.ascontiguousarray(v_r, dtype=float)
        target = np.empty((2, len(q)))
        kind: int = self._target_velocity(*self._boxes, q_r, v_r, dt, q, v, target)
        return kind, target
