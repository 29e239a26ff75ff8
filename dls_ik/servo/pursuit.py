# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Adaptation of a reference that turns too fast for a command: the command cuts its corners."""

import math

import numpy as np

from dls_ik.core.types import Array

AVERAGING_TIME = 0.15  # [s] time constant of the averaged reference velocity
MAX_TRACKING_LAG = 0.08  # [s] largest lag of the command at which the reference is not adapted
# Accelerations of the reference, as shares of the limits: the reference is not adapted below the
# first value, and fully adapted above the second value.
FEASIBLE_DEMAND, EXCESSIVE_DEMAND = 0.6, 0.8
DEMAND_DECAY = 2.5  # [s] time constant with which the demand decreases between turns
MIN_CLOSING_SHARE = 0.25  # smallest share of the acceleration limits used to catch up


class Pursuit:
    """Adapts a reference so that the command that follows it does not overshoot.

    The reference may turn faster than the acceleration limits of the command allow. A command that
    takes over the full velocity of the reference, and closes the gap to it as fast as possible,
    then overshoots at every turn. A command that lags therefore takes over only a share of the
    reference's velocity, and closes the gap with a lower acceleration. The share and the
    acceleration decrease with the lag.

    Args:
        acceleration: (n,) acceleration limits [rad/s^2 or m/s^2], infinite without a limit.
        slack: Lag, in addition to `MAX_TRACKING_LAG`, at which the reference is not adapted yet
            [s]; for example the lag due to a jerk limit.
    """

    def __init__(self, acceleration: Array, slack: float = 0.0) -> None:
        self._max_lag = MAX_TRACKING_LAG + slack
        self._acceleration, self._limits = acceleration, acceleration.tolist()
        self._is_limited = bool(np.isfinite(acceleration).any())
        self.reset(np.zeros(len(acceleration)))

    def reset(self, v: Array) -> None:
        """Assume that the reference has moved at a constant velocity `v` (n,) [rad/s or m/s]."""
        # For each joint, the averaged velocity of the reference, and the average of the average.
        self._means = [(speed, speed) for speed in v.tolist()]
        self._demand = 0.0  # recent acceleration of the reference, as a share of the limits

    def follow(self, q: Array, q_r: Array, v_r: Array, dt: float) -> tuple[Array, Array]:
        """Return the adapted position and velocity of the reference, both (n,).

        They are equal to `q_r` and `v_r` if the command can follow the reference.

        Args:
            q: (n,) command at the start of the cycle [rad or m].
            q_r: (n,) position of the reference at the end of the cycle [rad or m].
            v_r: (n,) velocity of the reference [rad/s or m/s].
            dt: Duration of the cycle [s].
        """
        share = self._share(q, q_r, v_r, dt)
        if share >= 1.0:
            return q_r, v_r
        v_r = share * v_r
        gap = np.abs(q_r - q - v_r * dt)
        closing = MIN_CLOSING_SHARE + (1.0 - MIN_CLOSING_SHARE) * share
        step = closing * self._acceleration * dt  # [rad/s or m/s]
        with np.errstate(divide="ignore", invalid="ignore"):
            speed = 2.0 * step * gap / (np.sqrt(step * (step * dt + 2.0 * gap) / dt) + step) / dt
            speed = np.fmax(speed, np.minimum(gap / dt, step))
            closed = np.where(gap > 0.0, speed * dt / gap, 1.0)
        v_r = v_r + min(1.0, float(closed.min())) * ((q_r - q) / dt - v_r)
        return q + v_r * dt, v_r

    def _share(self, q: Array, q_r: Array, v_r: Array, dt: float) -> float:
        """Return the share of the reference's velocity that the command takes over, 0 to 1.

        The share is 1 if the command can follow the reference. To estimate the acceleration of the
        reference, its velocity is averaged, because targets may arrive in bursts, and the average
        is averaged again: the difference of the two averages is proportional to the acceleration.
        The arguments are those of :meth:`follow`.
        """
        if not self._is_limited:
            return 1.0
        new, lag, demand = min(1.0, dt / AVERAGING_TIME), 0.0, 0.0
        rates, means = v_r.tolist(), []
        values = zip(q_r.tolist(), rates, q.tolist(), self._limits, self._means, strict=True)
        for q_j, v_j, command, limit, (once, twice) in values:
            once += new * (v_j - once)
            twice += new * (once - twice)
            means.append((once, twice))
            lag = max(
                lag, abs(q_j - v_j * dt - command) / (limit * dt * dt + self._max_lag * abs(once))
            )
            demand = max(demand, abs(once - twice) / limit)
        self._means = means
        self._demand = max(demand / AVERAGING_TIME, self._demand * math.exp(-dt / DEMAND_DECAY))
        if lag <= 1.0 or self._demand <= FEASIBLE_DEMAND or not any(rates):
            return 1.0
        demand_range = EXCESSIVE_DEMAND - FEASIBLE_DEMAND
        return max(0.0, 2.0 - lag, (EXCESSIVE_DEMAND - self._demand) / demand_range)
