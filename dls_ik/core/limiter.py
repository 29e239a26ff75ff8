# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""One control cycle in which the joint command follows a reference within all joint limits.

During a cycle each joint has a constant acceleration, so that its velocity is continuous. The
positions and velocities at the ends of the cycles therefore describe the whole motion. A joint with
velocity v at a distance d from its position limit must be able to stop with its acceleration limit
A: v^2 / (2 A) <= d. If this condition holds at the end of one cycle, it can be satisfied in the
next cycle of any duration, because v^2 / (2 A) - d does not change while the joint brakes with the
acceleration A. In every cycle, each joint therefore has a non-empty interval of valid velocities.

Without acceleration limits, the velocity is constant during a cycle and jumps between cycles.
"""

import math
from typing import NamedTuple

import numpy as np

from dls_ik.core.boxes import Boxed
from dls_ik.core.jit import allocating, force_inline, kernel
from dls_ik.core.types import Array

POSITION_ROUNDING = 1e-11  # [rad or m] tolerance for rounding errors


class CommandLimits(NamedTuple):
    """Limits of the joint command."""

    lower: Array  # (n,) lower position limits [rad or m], -inf without a limit
    upper: Array  # (n,) upper position limits [rad or m], +inf without a limit
    velocity: Array  # (n,) velocity limits [rad/s or m/s], +inf without a limit
    acceleration: Array  # (n,) limits [rad/s^2 or m/s^2]: all finite, or all infinite (no limits)
    jerk: Array  # (n,) limits [rad/s^3 or m/s^3], +inf without a limit


@allocating
def advance(
    limits: Boxed[CommandLimits], q_r: Array, v_r: Array, dt: float, q: Array, v: Array
) -> None:
    """Move the command toward a reference by one cycle, within all joint limits.

    All joints reduce their distance to the reference by the same factor, so that the path to a
    resting reference is straight. If the change of velocity exceeds an acceleration limit, one
    factor scales the changes of all joints. A joint beyond a position limit moves independently of
    the other joints, as fast as its own limits allow, so that it returns soon.

    With constant acceleration from velocity v to v' during a cycle, the position q moves by
    (v + v') dt / 2, but the point q + v dt / 2 moves by v' dt, which does not depend on v. The law
    for v' therefore makes this point follow the point q_r + v_r dt / 2; q then follows q_r.

    Args:
        limits: Limits of the command.
        q_r: (n,) reference at the end of the cycle [rad or m].
        v_r: (n,) velocity of the reference [rad/s or m/s].
        dt: Duration of the cycle [s].
        q: (n,) commanded positions, read and written [rad or m].
        v: (n,) commanded velocities, read and written [rad/s or m/s].
    """
    advance_command(limits.record, q_r, v_r, dt, q, v)


@allocating
def advance_command(
    limits: CommandLimits, q_r: Array, v_r: Array, dt: float, q: Array, v: Array
) -> None:
    """Run :func:`advance` with the record of its box."""
    n, velocity, acceleration = q.shape[0], limits.velocity, limits.acceleration
    lag = _lag(acceleration, dt)
    desired = np.empty(n)
    share = 1.0
    for j in range(n):
        if is_outside(limits, j, q[j]):
            continue
        d = abs(q_r[j] - q[j] - lag * v[j] - (dt - lag) * v_r[j])
        closing = _closing_speed(d, acceleration[j], dt)
        if d * share > closing * dt:
            share = closing * dt / d
    scale = 1.0
    for j in range(n):
        mean, part = (q_r[j] - q[j] + lag * (v_r[j] - v[j])) / dt, share
        returns = is_outside(limits, j, q[j])
        if returns:
            d = abs(mean - v_r[j]) * dt
            part = min(1.0, _closing_speed(d, acceleration[j], dt) * dt / d) if d > 0.0 else 1.0
        desired[j] = v_r[j] + part * (mean - v_r[j])
        if returns:
            desired[j] = min(max(desired[j], -velocity[j]), velocity[j])
        elif abs(desired[j]) * scale > velocity[j]:
            scale = velocity[j] / abs(desired[j])
    for j in range(n):
        if not is_outside(limits, j, q[j]):
            desired[j] *= scale
    _accelerate(limits, desired, dt, q, v)


@force_inline
def is_outside(limits: CommandLimits, j: int, q: float) -> bool:
    """Return whether the position q [rad or m] of joint j is beyond a position limit."""
    return q < limits.lower[j] or q > limits.upper[j]


@force_inline
def _returns(limits: CommandLimits, j: int, q: float, v: float) -> bool:
    """Return whether joint j is beyond a position limit, and the velocity v leads back inside."""
    return (q < limits.lower[j] and v > 0.0) or (q > limits.upper[j] and v < 0.0)


@allocating
def brake(limits: Boxed[CommandLimits], dt: float, q: Array, v: Array) -> None:
    """Reduce the velocity of the command for one cycle, as fast as the acceleration limits allow.

    One factor scales the velocities of all joints, so that the path is straight.

    Args:
        limits: Limits of the command.
        dt: Duration of the cycle [s].
        q: (n,) commanded positions, read and written [rad or m].
        v: (n,) commanded velocities, read and written [rad/s or m/s].
    """
    _accelerate(limits.record, np.zeros(q.shape[0]), dt, q, v)


@allocating
def stopping_point(limits: Boxed[CommandLimits], q: Array, v: Array, q_s: Array) -> None:
    """Write the positions at which the joints stop if each joint brakes as hard as allowed.

    Args:
        limits: Acceleration limits of the joints, and position limits, to which the result is
            clipped; a joint already beyond a position limit does not move farther out.
        q: (n,) positions [rad or m].
        v: (n,) velocities [rad/s or m/s].
        q_s: (n,) positions after the stop, written [rad or m].
    """
    lower_limit, upper_limit, _, acceleration, _ = limits.record
    for j in range(q.shape[0]):
        path = 0.5 * v[j] * abs(v[j]) / acceleration[j]
        lower, upper = min(lower_limit[j], q[j]), max(upper_limit[j], q[j])
        q_s[j] = min(max(q[j] + path, lower), upper)


@allocating
def even_stop(
    limits: Boxed[CommandLimits], q: Array, v: Array, times: tuple[float, float], stop: Array
) -> None:
    """Compute a braking motion in which all joints stop at the same time.

    Each joint brakes with a constant acceleration, and the braking time is a whole number of
    cycles. A joint that would pass its position limit within this time brakes faster and stops at
    the limit.

    Args:
        limits: Position and acceleration limits.
        q: (n,) initial positions [rad or m].
        v: (n,) initial velocities [rad/s or m/s].
        times: Duration of a cycle, and maximum duration of the braking motion [s].
        stop: (4, n) written: braking time of each joint [s], its acceleration while it brakes
            [rad/s^2 or m/s^2], and its lower and upper position limit, or its initial position if
            that is beyond the limit [rad or m].
    """
    lower, upper, _, acceleration, _ = limits.record
    period, together = times[0], 0.0
    for j in range(q.shape[0]):
        together = max(together, abs(v[j]) / acceleration[j])
    cycles = math.ceil(min(together, times[1]) / period * (1.0 - 1e-12))
    together = period * max(1, cycles)
    for j in range(q.shape[0]):
        stop[0, j], stop[1, j] = 0.0, 0.0
        stop[2, j], stop[3, j] = min(lower[j], q[j]), max(upper[j], q[j])
        speed = abs(v[j])
        if speed > 0.0:
            left = upper[j] - q[j] if v[j] > 0.0 else q[j] - lower[j]
            T = min(together, 2.0 * max(left, 0.0) / speed)
            stop[0, j] = T
            if T > 0.0:
                stop[1, j] = -v[j] / T


@kernel
def stop_phases(
    v: Array, a: Array, A: Array, J: Array, distances: Array, phases: Array, overshoot: Array
) -> None:
    """Write the fastest stop of each joint within limits of acceleration and jerk.

    A stop has three phases of constant jerk: the acceleration changes to a peak that decelerates
    the joint, stays at the peak (only if the peak is the acceleration limit), and returns to zero.
    The direction of motion is the sign of the velocity that would remain if the acceleration
    returned to zero as fast as possible. If the initial acceleration decelerates the joint by more
    than the limit, the first phase returns it to the limit.

    Args:
        v: (n,) initial velocity [rad/s or m/s].
        a: (n,) initial acceleration [rad/s^2 or m/s^2].
        A: (n,) acceleration limits, finite [rad/s^2 or m/s^2].
        J: (n,) jerk limits, finite [rad/s^3 or m/s^3].
        distances: (2, n) distances to the lower and the upper position limit, negative beyond a
            limit [rad or m].
        phases: (3, 3, n) written: durations [s], initial accelerations, and jerks, each for the
            three phases.
        overshoot: (n,) maximum distance by which each joint moves beyond a position limit, or, if
            the joint is initially beyond a limit, farther outward; written [rad or m].
    """
    for j in range(v.shape[0]):
        # u and w are the velocity and the acceleration in the direction of motion. If u is
        # negative, w is positive and reverses the motion.
        left = v[j] + a[j] * abs(a[j]) / (2.0 * J[j])
        s = 1.0 if left > 0.0 or (left == 0.0 and a[j] < 0.0) else -1.0
        u, w = s * v[j], s * a[j]
        # Compute the peak -p of the acceleration, and the phase up to the peak.
        peak = math.sqrt(max(J[j] * u + 0.5 * w * w, 0.0))
        is_hard = w < -A[j]
        p = A[j] if is_hard else min(max(peak, -w), A[j])
        slope = J[j] if is_hard else -J[j]
        first = abs(w + p) / J[j]
        u_p = u + first * (w + 0.5 * slope * first)
        # Stay at the acceleration limit until the last phase can remove the remaining velocity.
        second = 0.0
        if is_hard or peak > A[j]:
            second = max(u_p - p * p / (2.0 * J[j]), 0.0) / p
        third = p / J[j]
        phases[0, 0, j], phases[0, 1, j], phases[0, 2, j] = first, second, third
        phases[1, 0, j], phases[1, 1, j], phases[1, 2, j] = a[j], -s * p, -s * p
        phases[2, 0, j], phases[2, 1, j], phases[2, 2, j] = s * slope, 0.0, s * J[j]
        # Compute the displacement x at the end of the stop, and the displacement `turn` at which
        # the motion may reverse in the first phase.
        x = first * (u + first * (0.5 * w + slope * first / 6.0))
        x += second * (u_p - 0.5 * p * second)
        x += third * (u_p - p * second + third * (-0.5 * p + J[j] * third / 6.0))
        turn = 0.0
        if u < 0.0 and w > 0.0:
            t = -2.0 * u / (w + math.sqrt(max(w * w - 2.0 * u * slope, 0.0)))
            turn = t * (u + t * (0.5 * w + slope * t / 6.0))
        # Outward motion is allowed up to the position limit, and not at all beyond the limit.
        ahead, behind = (
            (distances[1, j], distances[0, j]) if s > 0.0 else (distances[0, j], distances[1, j])
        )
        overshoot[j] = max(x - max(ahead, turn), -turn - max(behind, 0.0))


@allocating
def stop_after_cycle(
    limits: Boxed[CommandLimits], q: Array, state: Array, dt: float, phases: Array, bounds: Array
) -> bool:
    """Plan the fastest stop after a cycle with jerk limits, see :func:`stop_phases`.

    Args:
        limits: Limits of the stop.
        q: (n,) commanded positions at the start of the cycle [rad or m].
        state: (4, n) positions, velocities and accelerations at the end of the cycle; the positions
            are clipped to the position limits, and the mean velocities in the cycle are written.
        dt: Duration of the cycle [s].
        phases: (3, 3, n) written, as in :func:`stop_phases`.
        bounds: (2, n) written: the position limits, or the positions after the cycle of joints that
            are beyond a limit [rad or m].

    Returns:
        Whether the stop keeps the position limits up to `POSITION_ROUNDING`.
    """
    n, (lower, upper, _, acceleration, jerk) = q.shape[0], limits.record
    distances, overshoot, fits = np.empty((2, n)), np.empty(n), True
    for j in range(n):
        after = min(max(state[0, j], min(lower[j], q[j])), max(upper[j], q[j]))
        state[0, j], state[3, j] = after, (after - q[j]) / dt
        distances[0, j], distances[1, j] = after - lower[j], upper[j] - after
        bounds[0, j], bounds[1, j] = min(lower[j], after), max(upper[j], after)
    stop_phases(state[1], state[2], acceleration, jerk, distances, phases, overshoot)
    for j in range(n):
        fits = fits and overshoot[j] <= POSITION_ROUNDING
    return fits


@force_inline
def _lag(acceleration: Array, dt: float) -> float:
    """Return dt / 2 [s] with acceleration limits, 0 without.

    A cycle from velocity v to v' moves a joint by lag * v + (dt - lag) * v', lag being the result.
    """
    for j in range(acceleration.shape[0]):
        if not math.isinf(acceleration[j]):
            return 0.5 * dt
    return 0.0


@force_inline
def _accelerate(limits: CommandLimits, desired: Array, dt: float, q: Array, v: Array) -> None:
    """Move the command for one cycle, with velocities as close to `desired` as all limits allow.

    One factor scales the changes of velocity of all joints, except those of joints that return into
    their position limits.

    Args:
        limits: Limits of the command.
        desired: (n,) desired velocities at the end of the cycle [rad/s or m/s].
        dt: Duration of the cycle [s].
        q: (n,) commanded positions, read and written [rad or m].
        v: (n,) commanded velocities, read and written [rad/s or m/s].
    """
    n, acceleration = q.shape[0], limits.acceleration
    lag = _lag(acceleration, dt)
    share = 1.0
    for j in range(n):
        change = abs(desired[j] - v[j])
        if _returns(limits, j, q[j], desired[j]):
            continue
        if change * share > acceleration[j] * dt:
            share = acceleration[j] * dt / change
    for j in range(n):
        A, rate = acceleration[j], v[j]
        up = _fastest(limits.upper[j] - q[j], rate, A, dt, lag)
        down = _fastest(q[j] - limits.lower[j], -rate, A, dt, lag)
        part = 1.0 if _returns(limits, j, q[j], desired[j]) else share
        speed = rate + part * (desired[j] - rate)
        speed = min(max(speed, -limits.velocity[j], -down), limits.velocity[j], up)
        speed = min(max(speed, rate - A * dt), rate + A * dt)
        after = q[j] + lag * rate + (dt - lag) * speed
        low, high = max(-down, -limits.velocity[j]), min(up, limits.velocity[j])
        if high < low and abs(rate) <= A * dt:  # no velocity is valid: stop in this cycle
            after, speed = q[j] + 0.5 * rate * abs(rate) / A, 0.0
        lower, upper = min(limits.lower[j], q[j]), max(limits.upper[j], q[j])
        if after < lower or after > upper:
            after = min(max(after, lower), upper)
            speed = 0.0 if lag > 0.0 else (after - q[j]) / dt
        q[j], v[j] = after, speed


@force_inline
def _fastest(d: float, v: float, A: float, dt: float, lag: float) -> float:
    """Return the maximum velocity at the end of a cycle from which a joint can stop before a limit.

    The result is the velocity toward the position limit [rad/s or m/s]; it is negative if the joint
    must reverse.

    Args:
        d: Distance to the limit at the start of the cycle [rad or m].
        v: Velocity toward the limit at the start of the cycle [rad/s or m/s].
        A: Acceleration limit [rad/s^2 or m/s^2].
        dt: Duration of the cycle [s].
        lag: Result of :func:`_lag` for the joint limits and `dt` [s].
    """
    if lag == 0.0:
        return _stopping_speed(d, A, dt)
    left = d - lag * v
    if left >= 0.0:
        return _stopping_speed(left, A, lag)
    if d > 0.0:  # the motion must reverse during the cycle, before the limit
        return v - v * v * lag / d
    return 0.0


@force_inline
def _stopping_speed(d: float, A: float, dt: float) -> float:
    """Return the maximum velocity v from which a joint can stop within the distance d.

    The joint moves with v during one cycle, and then brakes with the acceleration A. v is the
    largest value with v dt + v^2 / (2 A) <= d; it is zero if d is not positive.

    Args:
        d: Distance [rad or m].
        A: Acceleration limit [rad/s^2 or m/s^2].
        dt: Duration of the cycle [s].
    """
    if d <= 0.0:
        return 0.0
    if math.isinf(A) or math.isinf(d):
        return d / dt
    a = A * dt
    return 2.0 * A * d / (math.sqrt(a * a + 2.0 * A * d) + a)


@force_inline
def _closing_speed(d: float, A: float, dt: float) -> float:
    """Return the maximum speed toward a reference with which a joint does not overshoot.

    After a cycle at this speed, the joint can brake before the reference, or the joint is at the
    reference and can stop within the next cycle.

    Args:
        d: Distance of the joint from the reference [rad or m].
        A: Acceleration limit [rad/s^2 or m/s^2].
        dt: Duration of a cycle [s].
    """
    return max(_stopping_speed(d, A, dt), min(d / dt, A * dt))
