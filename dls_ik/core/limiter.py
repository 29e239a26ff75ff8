# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""One cycle of a command that follows a reference within all limits of the joints.

During a cycle each joint has a constant acceleration, so that its velocity is continuous: a
position and a velocity at the end of each cycle describe the whole motion. A joint with the
velocity v must be able to stop before its position limit, d away: v^2 / (2 A) <= d. If that holds
after a cycle, it can hold after every later cycle, whatever the times between them, because braking
with the acceleration A leaves v^2 / (2 A) - d unchanged. So each cycle has a non-empty interval of
velocities for each joint.

Without any limit of acceleration the velocity is constant during a cycle instead, and changes at
once between two cycles.
"""

import math

import numpy as np

from dls_ik.core.jit import allocating, force_inline, kernel
from dls_ik.core.types import Array, Chain


@allocating
def advance(
    chain: Chain, acceleration: Array, q_r: Array, v_r: Array, dt: float, q: Array, v: Array
) -> None:
    """Move `q` (n,) by one cycle of `dt` [s] toward a reference, in place, with its velocity `v`.

    The joints approach the reference at the same time, so that the path to a reference at rest is
    straight; the change of the velocity is scaled as a whole to the limits of acceleration.

    The point q + v dt / 2 moves by v' dt to the next one, where v' is the velocity at the end of
    the cycle. That point follows the reference (moved likewise), as it obeys a first-order law.

    Args:
        acceleration: (n,) limits [rad/s^2 or m/s^2]: all finite, or all infinite (no limit).
        q_r: (n,) reference at the end of the cycle [rad or m].
        v_r: (n,) its velocity [rad/s or m/s].
        v: (n,) velocity at the start of the cycle, overwritten by the velocity at its end.
    """
    n = q.shape[0]
    lag = _lag(acceleration, dt)
    desired = np.empty(n)
    share = 1.0
    for j in range(n):
        d = abs(q_r[j] - q[j] - lag * v[j] - (dt - lag) * v_r[j])
        closing = _closing_speed(d, acceleration[j], dt)
        if d * share > closing * dt:
            share = closing * dt / d
    scale = 1.0
    for j in range(n):
        mean = (q_r[j] - q[j] + lag * (v_r[j] - v[j])) / dt
        desired[j] = v_r[j] + share * (mean - v_r[j])
        if abs(desired[j]) * scale > chain.velocity[j]:
            scale = chain.velocity[j] / abs(desired[j])
    for j in range(n):
        desired[j] *= scale
    _accelerate(chain, acceleration, desired, dt, q, v)


@allocating
def brake(chain: Chain, acceleration: Array, dt: float, q: Array, v: Array) -> None:
    """Move `q` by one cycle of slowing down on a straight path, until the velocity `v` is zero."""
    _accelerate(chain, acceleration, np.zeros(q.shape[0]), dt, q, v)


@kernel
def stopping_point(chain: Chain, acceleration: Array, q: Array, v: Array, q_s: Array) -> None:
    """Write the joint values (n,) at which each joint stops if it brakes as fast as it may."""
    for j in range(q.shape[0]):
        way = 0.5 * v[j] * abs(v[j]) / acceleration[j]
        lower, upper = min(chain.lower[j], q[j]), max(chain.upper[j], q[j])
        q_s[j] = min(max(q[j] + way, lower), upper)


@kernel
def even_stop(
    chain: Chain,
    acceleration: Array,
    q: Array,
    v: Array,
    times: tuple[float, float],
    duration: Array,
    slope: Array,
) -> None:
    """Write the stop on which all joints slow down evenly and together, in whole cycles.

    A joint that is nearer to its position limit takes the distance that is left.

    Args:
        times: of a cycle, and of the longest stop [s].
        duration: (1, n) out [s]; slope: (1, n) out, the acceleration [rad/s^2 or m/s^2].
    """
    period, together = times[0], 0.0
    for j in range(q.shape[0]):
        together = max(together, abs(v[j]) / acceleration[j])
    cycles = math.ceil(min(together, times[1]) / period * (1.0 - 1e-12))
    together = period * max(1, cycles)
    for j in range(q.shape[0]):
        duration[0, j], slope[0, j] = 0.0, 0.0
        speed = abs(v[j])
        if speed > 0.0:
            left = chain.upper[j] - q[j] if v[j] > 0.0 else q[j] - chain.lower[j]
            T = min(together, 2.0 * max(left, 0.0) / speed)
            duration[0, j] = T
            if T > 0.0:
                slope[0, j] = -v[j] / T


@kernel
def stop_phases(
    v: Array, a: Array, A: Array, J: Array, room: Array, phases: Array, overshoot: Array
) -> None:
    """Write the fastest stop of each joint within limits of acceleration and jerk.

    The acceleration goes to a peak against the motion, stays there if that is the limit, and goes
    back to zero: three phases of constant jerk. The direction of motion is that of the velocity
    which would remain if the acceleration went to zero at once. An acceleration beyond its limit
    at the beginning, against the motion, is brought back to it.

    Args:
        v, a: (n,) velocity and acceleration at the beginning [rad/s or m/s, rad/s^2 or m/s^2].
        A, J: (n,) limits of acceleration and jerk, finite [the same, rad/s^3 or m/s^3].
        room: (2, n) distance to the lower and the upper position limit, negative beyond it.
        phases: (3, 3, n) out: durations, accelerations at the beginning, and jerks of the phases.
        overshoot: (n,) out: how far the stop leads beyond a limit, or outward from beyond one.
    """
    for j in range(v.shape[0]):
        # In the direction of the motion, in which the stop ends: u >= 0, or w leads it there.
        left = v[j] + a[j] * abs(a[j]) / (2.0 * J[j])
        s = 1.0 if left > 0.0 or (left == 0.0 and a[j] < 0.0) else -1.0
        u, w = s * v[j], s * a[j]
        # The peak -p of the acceleration, and the way there.
        peak = math.sqrt(max(J[j] * u + 0.5 * w * w, 0.0))
        is_hard = w < -A[j]
        p = A[j] if is_hard else min(max(peak, -w), A[j])
        slope = J[j] if is_hard else -J[j]
        first = abs(w + p) / J[j]
        u_p = u + first * (w + 0.5 * slope * first)
        # Time at the limit: for the velocity that the way back does not remove.
        second = 0.0
        if is_hard or peak > A[j]:
            second = max(u_p - p * p / (2.0 * J[j]), 0.0) / p
        third = p / J[j]
        phases[0, 0, j], phases[0, 1, j], phases[0, 2, j] = first, second, third
        phases[1, 0, j], phases[1, 1, j], phases[1, 2, j] = a[j], -s * p, -s * p
        phases[2, 0, j], phases[2, 1, j], phases[2, 2, j] = s * slope, 0.0, s * J[j]
        # The displacement: where it ends, and where the joint turned round, at most once, at first.
        x = first * (u + first * (0.5 * w + slope * first / 6.0))
        x += second * (u_p - 0.5 * p * second)
        x += third * (u_p - p * second + third * (-0.5 * p + J[j] * third / 6.0))
        turn = 0.0
        if u < 0.0 and w > 0.0:
            t = -2.0 * u / (w + math.sqrt(max(w * w - 2.0 * u * slope, 0.0)))
            turn = t * (u + t * (0.5 * w + slope * t / 6.0))
        # Outward motion may lead to the limit only; beyond the limit there may be none.
        ahead, behind = (room[1, j], room[0, j]) if s > 0.0 else (room[0, j], room[1, j])
        overshoot[j] = max(x - max(ahead, turn), -turn - max(behind, 0.0))


@force_inline
def _lag(acceleration: Array, dt: float) -> float:
    """Return half a cycle [s], or zero without any limit of acceleration."""
    for j in range(acceleration.shape[0]):
        if not math.isinf(acceleration[j]):
            return 0.5 * dt
    return 0.0


@force_inline
def _accelerate(
    chain: Chain, acceleration: Array, desired: Array, dt: float, q: Array, v: Array
) -> None:
    """Change `v` toward the desired velocity, as far as the limits allow, and move `q`."""
    n = q.shape[0]
    lag = _lag(acceleration, dt)
    share = 1.0
    for j in range(n):
        change = abs(desired[j] - v[j])
        if change * share > acceleration[j] * dt:
            share = acceleration[j] * dt / change
    for j in range(n):
        A, rate = acceleration[j], v[j]
        up = _fastest(chain.upper[j] - q[j], rate, A, dt, lag)
        down = _fastest(q[j] - chain.lower[j], -rate, A, dt, lag)
        speed = rate + share * (desired[j] - rate)
        speed = min(max(speed, -chain.velocity[j], -down), chain.velocity[j], up)
        speed = min(max(speed, rate - A * dt), rate + A * dt)
        after = q[j] + lag * rate + (dt - lag) * speed
        low, high = max(-down, -chain.velocity[j]), min(up, chain.velocity[j])
        if high < low and abs(rate) <= A * dt:  # no velocity suits the whole cycle: stop during it
            after, speed = q[j] + 0.5 * rate * abs(rate) / A, 0.0
        lower, upper = min(chain.lower[j], q[j]), max(chain.upper[j], q[j])
        if after < lower or after > upper:
            after = min(max(after, lower), upper)
            speed = 0.0 if lag > 0.0 else (after - q[j]) / dt
        q[j], v[j] = after, speed


@force_inline
def _fastest(d: float, v: float, A: float, dt: float, lag: float) -> float:
    """Return the largest velocity at the end of a cycle from which a limit at distance d is kept.

    Args:
        v: velocity toward the limit at the start of the cycle [rad/s or m/s].
        lag: from :func:`_lag` [s].
    """
    if lag == 0.0:
        return _stopping_speed(d, A, dt)
    left = d - lag * v
    if left >= 0.0:
        return _stopping_speed(left, A, lag)
    if d > 0.0:  # turn back before the limit, during the cycle
        return v - v * v * lag / d
    return 0.0


@force_inline
def _stopping_speed(d: float, A: float, dt: float) -> float:
    """Return the largest v with v dt + v^2 / (2 A) <= d; zero beyond the limit."""
    if d <= 0.0:
        return 0.0
    if math.isinf(A) or math.isinf(d):
        return d / dt
    a = A * dt
    return 2.0 * A * d / (math.sqrt(a * a + 2.0 * A * d) + a)


@force_inline
def _closing_speed(d: float, A: float, dt: float) -> float:
    """Return the largest speed relative to a reference at distance d that does not overshoot it.

    Such a speed leaves room to slow down, or ends at the reference and vanishes in the next cycle.
    """
    return max(_stopping_speed(d, A, dt), min(d / dt, A * dt))
