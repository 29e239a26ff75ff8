# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""One cycle of a command that follows a reference within all joint limits.

During a cycle each joint has a constant acceleration, so that its velocity is continuous. The
positions and velocities at the ends of the cycles describe the whole motion. A joint with velocity
v at a distance d from its position limit must be able to stop: v^2 / (2 A) <= d. If this condition
holds after a cycle, every later cycle can satisfy it, whatever its duration, because braking with
the acceleration A leaves v^2 / (2 A) - d unchanged. Each cycle therefore has a non-empty interval
of velocities for each joint.

Without acceleration limits, the velocity is constant during a cycle and jumps between cycles.
"""

import math

import numpy as np

from dls_ik.core.jit import allocating, force_inline, kernel
from dls_ik.core.types import Array, Chain


@allocating
def advance(
    chain: Chain, acceleration: Array, q_r: Array, v_r: Array, dt: float, q: Array, v: Array
) -> None:
    """Move `q` (n,) toward a reference by one cycle of `dt` [s], and update the velocity `v` (n,).

    All joints approach the reference together, so that the path to a reference at rest is straight.
    The change of velocity is scaled as a whole to the acceleration limits.

    The point q + v dt / 2 moves by v' dt per cycle, with v' the velocity at the end of the cycle.
    Because this point obeys a first-order law, it follows the reference, shifted in the same way.

    Args:
        acceleration: (n,) limits [rad/s^2 or m/s^2]: all finite, or all infinite (no limit).
        q_r: (n,) reference at the end of the cycle [rad or m].
        v_r: (n,) velocity of the reference [rad/s or m/s].
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
    """Move `q` (n,) by one cycle of braking on a straight path until the velocity `v` is zero."""
    _accelerate(chain, acceleration, np.zeros(q.shape[0]), dt, q, v)


@kernel
def stopping_point(chain: Chain, acceleration: Array, q: Array, v: Array, q_s: Array) -> None:
    """Write the positions at which the joints stop under maximum braking to `q_s` (n,)."""
    for j in range(q.shape[0]):
        path = 0.5 * v[j] * abs(v[j]) / acceleration[j]
        lower, upper = min(chain.lower[j], q[j]), max(chain.upper[j], q[j])
        q_s[j] = min(max(q[j] + path, lower), upper)


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
    """Write a stop of whole cycles on which all joints brake evenly and stop together.

    A joint that would pass its position limit stops earlier, at the limit.

    Args:
        times: Duration of a cycle and maximum duration of a stop [s].
        duration: (1, n) braking time of each joint, written [s].
        slope: (1, n) acceleration of each joint, written [rad/s^2 or m/s^2].
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

    A stop has three phases of constant jerk: the acceleration changes to a peak against the motion,
    stays at the peak if the peak is the limit, and returns to zero. The direction of motion is that
    of the velocity that remains if the acceleration returns to zero as fast as possible. An initial
    acceleration beyond its limit, against the motion, first returns to the limit.

    Args:
        v: (n,) initial velocity [rad/s or m/s].
        a: (n,) initial acceleration [rad/s^2 or m/s^2].
        A: (n,) acceleration limits, finite [rad/s^2 or m/s^2].
        J: (n,) jerk limits, finite [rad/s^3 or m/s^3].
        room: (2, n) distances to the lower and the upper position limit, negative beyond a limit
            [rad or m].
        phases: (3, 3, n) durations [s], initial accelerations and jerks of the phases, written.
        overshoot: (n,) motion beyond a limit, or outward if the joint is beyond a limit; written
            [rad or m].
    """
    for j in range(v.shape[0]):
        # u and w are velocity and acceleration in the direction of motion: u >= 0, or w > 0 makes
        # it positive.
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
        # Stay at the limit until the last phase removes the remaining velocity.
        second = 0.0
        if is_hard or peak > A[j]:
            second = max(u_p - p * p / (2.0 * J[j]), 0.0) / p
        third = p / J[j]
        phases[0, 0, j], phases[0, 1, j], phases[0, 2, j] = first, second, third
        phases[1, 0, j], phases[1, 1, j], phases[1, 2, j] = a[j], -s * p, -s * p
        phases[2, 0, j], phases[2, 1, j], phases[2, 2, j] = s * slope, 0.0, s * J[j]
        # Compute the displacement x at the end, and at the possible reversal in the first phase.
        x = first * (u + first * (0.5 * w + slope * first / 6.0))
        x += second * (u_p - 0.5 * p * second)
        x += third * (u_p - p * second + third * (-0.5 * p + J[j] * third / 6.0))
        turn = 0.0
        if u < 0.0 and w > 0.0:
            t = -2.0 * u / (w + math.sqrt(max(w * w - 2.0 * u * slope, 0.0)))
            turn = t * (u + t * (0.5 * w + slope * t / 6.0))
        # Outward motion must end at the limit; beyond the limit no outward motion is allowed.
        ahead, behind = (room[1, j], room[0, j]) if s > 0.0 else (room[0, j], room[1, j])
        overshoot[j] = max(x - max(ahead, turn), -turn - max(behind, 0.0))


@force_inline
def _lag(acceleration: Array, dt: float) -> float:
    """Return half a cycle [s], or zero without acceleration limits."""
    for j in range(acceleration.shape[0]):
        if not math.isinf(acceleration[j]):
            return 0.5 * dt
    return 0.0


@force_inline
def _accelerate(
    chain: Chain, acceleration: Array, desired: Array, dt: float, q: Array, v: Array
) -> None:
    """Change `v` (n,) toward `desired` (n,) as far as the limits allow, and move `q` (n,)."""
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
        if high < low and abs(rate) <= A * dt:  # no valid velocity: stop in this cycle
            after, speed = q[j] + 0.5 * rate * abs(rate) / A, 0.0
        lower, upper = min(chain.lower[j], q[j]), max(chain.upper[j], q[j])
        if after < lower or after > upper:
            after = min(max(after, lower), upper)
            speed = 0.0 if lag > 0.0 else (after - q[j]) / dt
        q[j], v[j] = after, speed


@force_inline
def _fastest(d: float, v: float, A: float, dt: float, lag: float) -> float:
    """Return the maximum velocity at the end of a cycle that keeps a position limit.

    Args:
        d: Distance to the limit at the start of the cycle [rad or m].
        v: Velocity toward the limit at the start of the cycle [rad/s or m/s].
        A: Acceleration limit [rad/s^2 or m/s^2].
        dt: Duration of the cycle [s].
        lag: Value of :func:`_lag` [s].
    """
    if lag == 0.0:
        return _stopping_speed(d, A, dt)
    left = d - lag * v
    if left >= 0.0:
        return _stopping_speed(left, A, lag)
    if d > 0.0:  # reverse before the limit, during the cycle
        return v - v * v * lag / d
    return 0.0


@force_inline
def _stopping_speed(d: float, A: float, dt: float) -> float:
    """Return the maximum v with v dt + v^2 / (2 A) <= d; zero for negative d."""
    if d <= 0.0:
        return 0.0
    if math.isinf(A) or math.isinf(d):
        return d / dt
    a = A * dt
    return 2.0 * A * d / (math.sqrt(a * a + 2.0 * A * d) + a)


@force_inline
def _closing_speed(d: float, A: float, dt: float) -> float:
    """Return the maximum speed relative to a reference at distance d without overshoot.

    The speed either leaves enough distance for braking, or reaches the reference and vanishes in
    the next cycle.
    """
    return max(_stopping_speed(d, A, dt), min(d / dt, A * dt))
