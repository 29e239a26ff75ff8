# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Adaptation of a reference whose path turns faster than a joint command can follow.

The acceleration limits of the command may be too low for the turns of the reference. A command that
has the velocity of the reference, and in addition closes the distance to the reference as fast as
possible, then overshoots at every turn. If the command lags behind such a reference, the reference
is therefore adapted: the command takes over only a share of the velocity of the reference, and
closes the distance with a lower acceleration. The share and the acceleration decrease as the lag
grows. The command then cuts the corners of the path.
"""

import math
from typing import NamedTuple

import numpy as np

from dls_ik.core.boxes import Boxed
from dls_ik.core.jit import allocating, kernel
from dls_ik.core.limiter import CommandLimits, advance_command, is_outside
from dls_ik.core.linalg import copy
from dls_ik.core.types import Array

AVERAGING_TIME = 0.15  # [s] time constant of the average of the reference velocity
# The demand is the acceleration of the reference divided by the acceleration limit. The reference
# is not adapted up to the first value, and fully adapted above the second value.
FEASIBLE_DEMAND, EXCESSIVE_DEMAND = 0.6, 0.8
DEMAND_DECAY = 2.5  # [s] time constant with which `demand` decreases after a change of direction
TOO_FAST, RESTING, MOVING = range(3)  # results of :func:`target_velocity`
MIN_CLOSING_SHARE = 0.25  # minimum share of the acceleration limits used to close the distance


class PursuitState(NamedTuple):
    """Acceleration limits of a command, and the recent motion of the reference of the command."""

    acceleration: Array  # (n,) limits of the command [rad/s^2 or m/s^2], infinite without a limit
    max_lag: float  # time by which the command may lag before the reference is adapted [s]
    # (2, n) average of the velocity of the reference, and average of this average [rad/s or m/s];
    # read and written
    means: Array
    # (1,) recent maximum acceleration of the reference divided by the limit; read and written
    demand: Array


@allocating
def pursue(
    limits: Boxed[CommandLimits],
    pursuit: Boxed[PursuitState],
    q_r: Array,
    v_r: Array,
    dt: float,
    q: Array,
    v: Array,
    out: Array,
) -> None:
    """Move a command by one cycle toward a reference, adapted so that the command can follow it.

    Args:
        limits: Limits of the command.
        pursuit: Limits of the command, and recent motion of the reference, read and written.
        q_r: (n,) position of the reference at the end of the cycle [rad or m].
        v_r: (n,) velocity of the reference [rad/s or m/s].
        dt: Duration of the cycle [s].
        q: (n,) commanded positions at the start of the cycle [rad or m].
        v: (n,) commanded velocities at the start of the cycle [rad/s or m/s].
        out: (3, n) written: commanded positions at the end of the cycle, mean velocities in the
            cycle, and commanded velocities at its end.
    """
    pursue_reference(limits.record, pursuit.record, q_r, v_r, dt, q, v, out)


@allocating
def pursue_reference(
    limits: CommandLimits,
    pursuit: PursuitState,
    q_r: Array,
    v_r: Array,
    dt: float,
    q: Array,
    v: Array,
    out: Array,
) -> None:
    """Run :func:`pursue` with the records of its boxes."""
    reference = np.empty((2, q.shape[0]))
    _adapt_reference(limits, pursuit, q, q_r, v_r, dt, reference)
    copy(q, out[0])
    copy(v, out[2])
    advance_command(limits, reference[0], reference[1], dt, out[0], out[2])
    for j in range(q.shape[0]):
        out[1, j] = (out[0, j] - q[j]) / dt


@allocating
def target_velocity(
    limits: Boxed[CommandLimits],
    pursuit: Boxed[PursuitState],
    q_r: Array,
    v_r: Array,
    dt: float,
    q: Array,
    v: Array,
    out: Array,
) -> int:
    """Write the velocity at which a command with jerk limits approaches an adapted reference.

    The velocity is that of the reference, plus a velocity toward the reference from which the
    command can brake. A joint beyond a position limit approaches the reference faster: if it brakes
    too late, it stops inside the limits.

    Args:
        limits: Limits of the command; position limits are not enforced here.
        pursuit: Limits of the command, and recent motion of the reference, read and written.
        q_r: (n,) position of the reference at the end of the cycle [rad or m].
        v_r: (n,) velocity of the reference [rad/s or m/s].
        dt: Duration of the cycle [s].
        q: (n,) commanded positions at the start of the cycle [rad or m].
        v: (n,) commanded velocities at the start of the cycle [rad/s or m/s].
        out: (2, n) written: position of the adapted reference, and target velocity.

    Returns:
        TOO_FAST: the command exceeds a velocity limit, nothing was written; RESTING: the reference
        rests, so that the command should stop at its position; MOVING: otherwise.
    """
    _, _, velocity, acceleration, jerk = limits.record
    for j in range(q.shape[0]):
        if abs(v[j]) > velocity[j] * (1.0 + 1e-9):
            return TOO_FAST
    _adapt_reference(limits.record, pursuit.record, q, q_r, v_r, dt, out)
    moves = False
    for j in range(q.shape[0]):
        moves = moves or out[1, j] != 0.0
    if not moves:
        return RESTING
    for j in range(q.shape[0]):
        A, ahead = acceleration[j], out[0, j] - out[1, j] * dt - q[j]
        closing = math.sqrt(A * abs(ahead))
        if not is_outside(limits.record, j, q[j]):
            closing = min(abs(ahead) * jerk[j] / (2.0 * A), closing)
        wanted = out[1, j] + math.copysign(closing, ahead)
        out[1, j] = min(max(wanted, -velocity[j]), velocity[j])
    return MOVING


@kernel
def _adapt_reference(
    limits: CommandLimits,
    pursuit: PursuitState,
    q: Array,
    q_r: Array,
    v_r: Array,
    dt: float,
    out: Array,
) -> None:
    """Write a reference that the command can follow; see the module docstring.

    The result is the given reference, `q_r` and `v_r`, if the command can follow it, and always for
    joints beyond a position limit.

    Args:
        limits: Position limits of the joints.
        pursuit: Limits of the command, and recent motion of the reference, read and written.
        q: (n,) commanded joint positions at the start of the cycle [rad or m].
        q_r: (n,) position of the reference at the end of the cycle [rad or m].
        v_r: (n,) velocity of the reference [rad/s or m/s].
        dt: Duration of the cycle [s].
        out: (2, n) position [rad or m] and velocity [rad/s or m/s] of the adapted reference,
            written.
    """
    acceleration = pursuit.acceleration
    share = _velocity_share(limits, pursuit, q, q_r, v_r, dt)
    for j in range(q.shape[0]):
        out[0, j], out[1, j] = q_r[j], v_r[j]
    if share >= 1.0:
        return
    closing, closed = MIN_CLOSING_SHARE + (1.0 - MIN_CLOSING_SHARE) * share, 1.0
    for j in range(q.shape[0]):
        if is_outside(limits, j, q[j]):
            continue
        gap = abs(q_r[j] - q[j] - share * v_r[j] * dt)
        step = closing * acceleration[j] * dt  # [rad/s or m/s]
        if gap > 0.0:
            speed = 0.0
            if not math.isinf(step):
                root = math.sqrt(step * (step * dt + 2.0 * gap) / dt)
                speed = 2.0 * step * gap / (root + step) / dt
            closed = min(closed, max(speed, min(gap / dt, step)) * dt / gap)
    for j in range(q.shape[0]):
        if is_outside(limits, j, q[j]):
            continue
        speed = share * v_r[j]
        speed += closed * ((q_r[j] - q[j]) / dt - speed)
        out[0, j], out[1, j] = q[j] + speed * dt, speed


@kernel
def _velocity_share(
    limits: CommandLimits, pursuit: PursuitState, q: Array, q_r: Array, v_r: Array, dt: float
) -> float:
    """Return the share, 0 to 1, of the reference velocity that the command takes over.

    The share is 1 if the command can follow the reference. This depends on the acceleration of the
    reference, which is estimated as follows. The velocity of the reference is averaged over time,
    because targets may arrive in bursts. This average is averaged again. The difference of the two
    averages, divided by the time constant, is the estimate. Joints beyond a position limit are
    ignored, because they return inside the limits as fast as possible.

    Args:
        limits: Position limits of the joints.
        pursuit: Limits of the command, and recent motion of the reference, read and written.
        q: (n,) commanded joint positions at the start of the cycle [rad or m].
        q_r: (n,) position of the reference at the end of the cycle [rad or m].
        v_r: (n,) velocity of the reference [rad/s or m/s].
        dt: Duration of the cycle [s].
    """
    acceleration, max_lag, means, last_demand = pursuit
    new, lag, demand, moves = min(1.0, dt / AVERAGING_TIME), 0.0, 0.0, False
    for j in range(q.shape[0]):
        moves = moves or v_r[j] != 0.0
        if is_outside(limits, j, q[j]):
            means[0, j] = means[1, j] = v_r[j]
            continue
        means[0, j] += new * (v_r[j] - means[0, j])
        means[1, j] += new * (means[0, j] - means[1, j])
        allowed = acceleration[j] * dt * dt + max_lag * abs(means[0, j])
        lag = max(lag, abs(q_r[j] - v_r[j] * dt - q[j]) / allowed)
        demand = max(demand, abs(means[0, j] - means[1, j]) / acceleration[j])
    last_demand[0] = max(demand / AVERAGING_TIME, last_demand[0] * math.exp(-dt / DEMAND_DECAY))
    if lag <= 1.0 or last_demand[0] <= FEASIBLE_DEMAND or not moves:
        return 1.0
    demand_range = EXCESSIVE_DEMAND - FEASIBLE_DEMAND
    return max(0.0, 2.0 - lag, (EXCESSIVE_DEMAND - last_demand[0]) / demand_range)
