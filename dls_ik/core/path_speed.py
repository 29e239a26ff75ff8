# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Fastest speed along a joint path within limits of velocity, acceleration and jerk.

The parameter z of the path q(z) is divided into m intervals. The squared path speed x(z) is a
quadratic spline with a continuous derivative: a parabola with the Bezier points x_i, c_i, x_i+1 in
each interval i, where the control values c (m,) are the unknowns. With the path acceleration
u = x' / 2, a joint has

    velocity      q' sqrt(x)
    acceleration  q'' x + q' u
    jerk          sqrt(x) (q''' x + 3 q'' u + q' u')

(Verscheure et al. 2009; Debrouwere et al. 2013). The velocity and acceleration limits are convex
in x. The jerk limit, |q''' x + 3 q'' u + q' u'| < limit / sqrt(x), is a difference of convex
functions. The duration, the integral of 1 / sqrt(x), is minimized by Newton steps with logarithmic
barriers; the concave part of the jerk limit is left out of the Hessian, which has five diagonals.
All iterates keep all limits, so that stopping early is safe.

The path must start and end with q' = q'' = 0, so that the arm is at rest there with x > 0.
"""

from math import inf, log, sqrt
from typing import NamedTuple

import numpy as np

from dls_ik.core.jit import allocating, force_inline
from dls_ik.core.types import Array

POINT_SHARES = (0.0, 1.0 / 3.0, 2.0 / 3.0, 1.0)  # points of an interval at which limits are kept
MAX_BARRIER_STEPS = 300
MIN_BARRIER_STEP = 1e-9  # a Newton step that must be shortened further ends the search at a barrier
ARMIJO_SHARE = 0.01  # share of the predicted decrease that a step must achieve
BARRIER_FACTOR = 0.1  # factor of the barrier weight after each centring
CENTRED = 0.3  # Newton decrement per constraint and barrier weight that counts as centred
DURATION_GAP = 1e-4  # relative gap to the minimum duration at which the search stops
MIN_PIVOT = 1e-14  # minimum pivot relative to the diagonal entry


class PathDerivatives(NamedTuple):
    """Derivatives by z of a joint path at `POINT_SHARES` of m intervals, for n joints."""

    h: Array  # (m,) lengths of the intervals
    first: Array  # (m, 4, n) [rad or m]
    second: Array  # (m, 4, n) [rad or m]
    third: Array  # (m, 4, n) [rad or m]


class ProfileLimits(NamedTuple):
    """Limits of the motion along a path; infinite values stand for no limit."""

    squared_speed: Array  # (m, 4) largest squared path speed at each point [1/s^2]
    acceleration: Array  # (n,) [rad/s^2 or m/s^2]
    jerk: Array  # (n,) [rad/s^3 or m/s^3]


@allocating
def fastest_speeds(path: PathDerivatives, limits: ProfileLimits) -> Array:
    """Return the control values c (m,) of the squared path speed of the fastest motion [1/s^2].

    Args:
        path: Derivatives of the path.
        limits: Limits of the motion.
    """
    m, n = path.h.shape[0], path.first.shape[2]
    is_smooth = False
    for i in range(n):
        is_smooth |= limits.jerk[i] < inf
    count = m * (3 * (n + 1) + (2 * n if is_smooth else 0))  # number of constraints
    c = np.full(m, 0.5 * _constant_speed(path, limits))
    gradient, hessian, step = np.empty(m), np.empty((m, 3)), np.empty(m)
    trial, nothing = np.empty(m), np.empty((0, 3))
    weight = _duration(path.h, c) / count
    for _ in range(MAX_BARRIER_STEPS):
        value = _barrier(c, path, limits, weight, gradient, hessian)
        _solve_banded(hessian, gradient, step)
        decrement, share = 0.0, 1.0
        for i in range(m):
            decrement += gradient[i] * step[i]
            if step[i] > 0.0:
                share = min(share, 0.9 * c[i] / step[i])
        while share > MIN_BARRIER_STEP:
            for i in range(m):
                trial[i] = c[i] - share * step[i]
            lower = _barrier(trial, path, limits, weight, gradient, nothing)
            if lower <= value - ARMIJO_SHARE * share * decrement:
                break
            share *= 0.5
        is_stuck = share <= MIN_BARRIER_STEP
        if not is_stuck:
            for i in range(m):
                c[i] = trial[i]
        if is_stuck or decrement < CENTRED * weight * count:
            if weight * count < DURATION_GAP * _duration(path.h, c):
                break
            weight *= BARRIER_FACTOR
    return c


@force_inline
def _duration(h: Array, c: Array) -> float:
    """Return the approximate duration [s] of a motion with control values c (m,)."""
    total = 0.0
    for i in range(h.shape[0]):
        total += h[i] / sqrt(c[i])
    return total


@force_inline
def _constant_speed(path: PathDerivatives, limits: ProfileLimits) -> float:
    """Return the largest constant squared path speed within all limits [1/s^2]."""
    best = inf
    for i in range(path.h.shape[0]):
        for p in range(4):
            best = min(best, limits.squared_speed[i, p])
            for j in range(path.first.shape[2]):
                second, third = abs(path.second[i, p, j]), abs(path.third[i, p, j])
                if second > 0.0:
                    best = min(best, limits.acceleration[j] / second)
                if third > 0.0:
                    best = min(best, (limits.jerk[j] / third) ** (2.0 / 3.0))
    return best


@allocating
def _barrier(
    c: Array, path: PathDerivatives, limits: ProfileLimits, weight: float, gradient: Array,
    hessian: Array,
) -> float:  # fmt: skip
    """Return the duration plus the weighted barriers; infinite if a limit is not kept.

    Args:
        c: (m,) control values of the squared path speed [1/s^2].
        path: Derivatives of the path.
        limits: Limits of the motion.
        weight: Weight of the barriers.
        gradient: (m,) written if `hessian` is not empty.
        hessian: (m, 3) written: entries [i, k] in row i and column i - k; or empty, (0, 3).
    """
    m, h, total = c.shape[0], path.h, 0.0
    derive = hessian.shape[0] > 0
    for i in range(m):
        if not c[i] > 0.0:
            return inf
        rate = 1.0 / sqrt(c[i])
        total += h[i] * rate
        if derive:
            gradient[i] = -0.5 * h[i] * rate / c[i]
            hessian[i, 0] = 0.75 * h[i] * rate / (c[i] * c[i])
            hessian[i, 1] = hessian[i, 2] = 0.0
    work = np.empty((6, 3))
    for point in range(4 * m):
        total += _point_barrier(point, c, path, limits, weight, gradient, hessian, work)
        if total == inf:
            return inf
    return total


@force_inline
def _point_barrier(
    point: int, c: Array, path: PathDerivatives, limits: ProfileLimits, weight: float,
    gradient: Array, hessian: Array, work: Array,
) -> float:  # fmt: skip
    """Return the barriers at a point of an interval, and add their derivatives.

    Args:
        point: 4 i + p for point p of interval i.
        c, path, limits, weight, gradient, hessian: As in :func:`_barrier`.
        work: (6, 3) scratch.
    """
    i, p, m = point // 4, point % 4, c.shape[0]
    _speed_weights(path.h, point, work)
    x, u, slacks = 0.0, 0.0, 1.0
    for k in range(3):
        if 0 <= i - 1 + k < m:
            x += work[0, k] * c[i - 1 + k]
            u += work[1, k] * c[i - 1 + k]
    derive = hessian.shape[0] > 0
    if p > 0 and point < 4 * m - 1:  # the start is the end of the previous interval
        slack = 1.0 - x / limits.squared_speed[i, p]
        if not slack > 0.0:
            return inf
        slacks = slack
        if derive:
            factor = 1.0 / (slack * limits.squared_speed[i, p])
            _add(i, work[0], weight * factor, weight * factor * factor, gradient, hessian)
        for j in range(path.first.shape[2]):
            scale = 1.0 / limits.acceleration[j]
            first, second = scale * path.first[i, p, j], scale * path.second[i, p, j]
            a = second * x + first * u
            slack = 1.0 - a * a
            if not slack > 0.0:
                return inf
            slacks *= slack
            if derive:
                for k in range(3):
                    work[3, k] = second * work[0, k] + first * work[1, k]
                slope = 2.0 * a / slack
                bend = 2.0 / slack + slope * slope
                _add(i, work[3], weight * slope, weight * bend, gradient, hessian)
    if p == 0 or p == 3:  # the jerk is discontinuous between intervals
        rate = 1.0 / sqrt(x)
        for j in range(path.first.shape[2]):
            if limits.jerk[j] == inf:
                continue
            scale, value = 1.0 / limits.jerk[j], 0.0
            first, second = scale * path.first[i, p, j], 3.0 * scale * path.second[i, p, j]
            third = scale * path.third[i, p, j]
            for k in range(3):
                work[3, k] = third * work[0, k] + second * work[1, k] + first * work[2, k]
                if 0 <= i - 1 + k < m:
                    value += work[3, k] * c[i - 1 + k]
            below, above = rate - value, rate + value
            if not (below > 0.0 and above > 0.0):
                return inf
            slacks *= below * above * x  # 1 for a joint without jerk
            if derive:
                for k in range(3):
                    slope = -0.5 * rate / x * work[0, k]
                    work[4, k], work[5, k] = slope - work[3, k], slope + work[3, k]
                _add(i, work[0], -weight / x, 0.0, gradient, hessian)
                _add(i, work[4], -weight / below, weight / (below * below), gradient, hessian)
                _add(i, work[5], -weight / above, weight / (above * above), gradient, hessian)
    return -weight * log(slacks)


@force_inline
def _add(i: int, d: Array, slope: float, bend: float, gradient: Array, hessian: Array) -> None:
    """Add the derivatives of a function of a weighted sum of the control values i - 1, i and i + 1.

    Args:
        i: Number of the interval.
        d: (3,) weights of the control values in the sum.
        slope, bend: First and second derivative of the function by the sum.
        gradient: (m,) changed.
        hessian: (m, 3) changed.
    """
    for k in range(3):
        row = i - 1 + k
        if row < 0 or row >= gradient.shape[0]:
            continue
        gradient[row] += slope * d[k]
        for b in range(k + 1):
            if i - 1 + b >= 0:
                hessian[row, k - b] += bend * d[k] * d[b]


@force_inline
def _speed_weights(h: Array, point: int, out: Array) -> None:
    """Write x, u and u' at a point as weighted sums of the control values i - 1, i and i + 1.

    Args:
        h: (m,) lengths of the intervals.
        point: 4 i + p for point p of interval i.
        out: (6, 3), of which rows 0 to 2 are written: the weights in x, u and u'.
    """
    i, share = point // 4, POINT_SHARES[point % 4]
    rest = 1.0 - share
    out[0, 0], out[0, 1], out[0, 2] = 0.0, 1.0, 0.0
    for row in range(1, 3):
        for k in range(3):
            out[row, k] = 0.0
    if i > 0:
        w = 1.0 / (h[i - 1] + h[i])
        out[0, 0], out[0, 1] = rest * rest * h[i] * w, 1.0 - rest * rest * h[i] * w
        out[1, 0], out[1, 1] = -rest * w, rest * w
        out[2, 0], out[2, 1] = w / h[i], -w / h[i]
    if i < h.shape[0] - 1:
        w = 1.0 / (h[i] + h[i + 1])
        out[0, 1] -= share * share * h[i] * w
        out[0, 2] = share * share * h[i] * w
        out[1, 1] -= share * w
        out[1, 2] = share * w
        out[2, 1] -= w / h[i]
        out[2, 2] = w / h[i]


@force_inline
def _solve_banded(hessian: Array, gradient: Array, step: Array) -> None:
    """Write the solution of a symmetric system with five diagonals, by its factors L D L^T.

    Args:
        hessian: (m, 3) entries [i, k] in row i and column i - k, replaced by D and L.
        gradient: (m,) right-hand side.
        step: (m,) solution, written.
    """
    m = step.shape[0]
    for i in range(m):
        near, far = hessian[i, 1], hessian[i, 2]
        pivot = hessian[i, 0]
        least, value = MIN_PIVOT * pivot, gradient[i]
        if i > 1:
            hessian[i, 2] = far / hessian[i - 2, 0]
            near -= far * hessian[i - 1, 1]
            pivot -= far * hessian[i, 2]
            value -= hessian[i, 2] * step[i - 2]
        if i > 0:
            hessian[i, 1] = near / hessian[i - 1, 0]
            pivot -= near * hessian[i, 1]
            value -= hessian[i, 1] * step[i - 1]
        hessian[i, 0], step[i] = max(pivot, least), value
    for i in range(m - 1, -1, -1):
        step[i] /= hessian[i, 0]
        if i + 1 < m:
            step[i] -= hessian[i + 1, 1] * step[i + 1]
        if i + 2 < m:
            step[i] -= hessian[i + 2, 2] * step[i + 2]
