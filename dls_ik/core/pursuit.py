# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Adaptation of a reference that turns too fast for a command: the command cuts its corners.

The reference may turn faster than the acceleration limits of the command allow. A command that
takes over the full velocity of the reference, and closes the gap to it as fast as possible, then
overshoots at every turn. A command that lags therefore takes over only a share of the reference's
velocity, and closes the gap with a lower acceleration. The share and the acceleration decrease with
the lag.
"""

import math
from typing import NamedTuple

from dls_ik.core.boxes import Boxed
from dls_ik.core.jit import allocating, kernel
from dls_ik.core.types import Array

AVERAGING_TIME = 0.15  # [s] time constant of the averaged reference velocity
# Accelerations of the reference, as shares of the limits: the reference is not adapted below the
# first value, and fully adapted above the second value.
FEASIBLE_DEMAND, EXCESSIVE_DEMAND = 0.6, 0.8
DEMAND_DECAY = 2.5  # [s] time constant with which the demand decreases between turns
MIN_CLOSING_SHARE = 0.25  # smallest share of the acceleration limits used to catch up


class PursuitState(NamedTuple):
    """Limits of a command, and what is known about the motion of its reference."""

    acceleration: Array  # (n,) limits [rad/s^2 or m/s^2], infinite without a limit
    max_lag: float  # largest lag of the command at which the reference is not adapted [s]
    # (2, n) averaged velocity of the reference, and the average of the average [rad/s or m/s]; read
    # and written
    means: Array
    # (1,) recent acceleration of the reference, as a share of the limits; read and written
    demand: Array


@allocating
def adapt_reference(
    pursuit: Boxed[PursuitState], q: Array, q_r: Array, v_r: Array, dt: float, out: Array
) -> None:
    """Write the position and the velocity of a reference that the command can follow.

    They are equal to `q_r` and `v_r` if the command can follow the reference.

    Args:
        pursuit: Limits of the command and state of the reference.
        q: (n,) command at the start of the cycle [rad or m].
        q_r: (n,) position of the reference at the end of the cycle [rad or m].
        v_r: (n,) velocity of the reference [rad/s or m/s].
        dt: Duration of the cycle [s].
        out: (2, n) adapted position and velocity of the reference, written.
    """
    acceleration = pursuit.record.acceleration
    share = _velocity_share(pursuit.record, q, q_r, v_r, dt)
    for j in range(q.shape[0]):
        out[0, j], out[1, j] = q_r[j], v_r[j]
    if share >= 1.0:
        return
    closing, closed = MIN_CLOSING_SHARE + (1.0 - MIN_CLOSING_SHARE) * share, 1.0
    for j in range(q.shape[0]):
        gap = abs(q_r[j] - q[j] - share * v_r[j] * dt)
        step = closing * acceleration[j] * dt  # [rad/s or m/s]
        if gap > 0.0:
            speed = 0.0
            if not math.isinf(step):
                root = math.sqrt(step * (step * dt + 2.0 * gap) / dt)
                speed = 2.0 * step * gap / (root + step) / dt
            closed = min(closed, max(speed, min(gap / dt, step)) * dt / gap)
    for j in range(q.shape[0]):
        speed = share * v_r[j]
        speed += closed * ((q_r[j] - q[j]) / dt - speed)
        out[0, j], out[1, j] = q[j] + speed * dt, speed


@kernel
def _velocity_share(pursuit: PursuitState, q: Array, q_r: Array, v_r: Array, dt: float) -> float:
    """Return the share of the reference's velocity that the command takes over, 0 to 1.

    The share is 1 if the command can follow the reference. To estimate the acceleration of the
    reference, its velocity is averaged, because targets may arrive in bursts, and the average is
    averaged again: the difference of the two averages is proportional to the acceleration. The
    arguments are those of :func:`adapt_reference`.
    """
    acceleration, max_lag, means, last_demand = pursuit
    new, lag, demand, moves = min(1.0, dt / AVERAGING_TIME), 0.0, 0.0, False
    for j in range(q.shape[0]):
        means[0, j] += new * (v_r[j] - means[0, j])
        means[1, j] += new * (means[0, j] - means[1, j])
        allowed = acceleration[j] * dt * dt + max_lag * abs(means[0, j])
        lag = max(lag, abs(q_r[j] - v_r[j] * dt - q[j]) / allowed)
        demand = max(demand, abs(means[0, j] - means[1, j]) / acceleration[j])
        moves = moves or v_r[j] != 0.0
    last_demand[0] = max(demand / AVERAGING_TIME, last_demand[0] * math.exp(-dt / DEMAND_DECAY))
    if lag <= 1.0 or last_demand[0] <= FEASIBLE_DEMAND or not moves:
        return 1.0
    demand_range = EXCESSIVE_DEMAND - FEASIBLE_DEMAND
    return max(0.0, 2.0 - lag, (EXCESSIVE_DEMAND - last_demand[0]) / demand_range)
