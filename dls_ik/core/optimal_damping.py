# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The optimal damping factor: the least that keeps the 2-norm of the step within Delta.

Deo & Walker 1993, 3.1 and 4.1, whose lambda is our lambda^2. The squared norm of the step is

phi^2 = sum_i (s_i gamma_i)^2 / (s_i^2 + lambda)^2                    (15), U^T e = gamma
phi^2 = sum_i (s_i gamma_i + beta_i)^2 / (s_i^2 + a + T)^2            (29), V^T v = beta
        + sum_{i>r} beta_i^2 / (a + T)^2,  lambda = a + T

where v / lambda is the motion in the null space. Both are sum_i c_i^2 / (d_i + a)^2, which falls
with a: phi(a) = Delta has one root. Newton's iteration finds it, (17), or that on 1 / phi, which is
almost straight, (18); within bounds that close in on the root as in More 1978.
"""

from math import sqrt

import numpy as np

from dls_ik.core import limits
from dls_ik.core.inverses import (
    add_unbounded,
    apply_singular,
    damped_gains,
    free_joints,
    gather,
)
from dls_ik.core.jit import allocating, kernel
from dls_ik.core.linalg import svd, times
from dls_ik.core.step_bounds import bounded_sum, goes_by_direction, shorten_to_norm
from dls_ik.core.types import Array, Grouping, Memory, Method, MethodParams

NEWTON, RECIPROCAL = 17, 18
T = 1e-4  # least lambda in (28): without it, (27) has a pole at 0
MOST_ITERATIONS = 50
MOST_BISECTIONS = 300
LEAST_SQUARE = 1e-300  # stands in for the square of a singular value that is too small to have one


@allocating
def search_plain(params: MethodParams, s: Array, gamma: Array, start: float) -> tuple[float, int]:
    """Return lambda for J* e alone, (13), and the iterations; 0 if |J+ e| <= Delta.

    Args:
        s: (r,) singular values; zeros contribute nothing. gamma: (r,) U^T e.
        start: lambda of the step before.
    """
    r = s.shape[0]
    c, d = np.empty(r), np.empty(r)
    for i in range(r):
        c[i] = s[i] * gamma[i]
        d[i] = max(s[i] * s[i], LEAST_SQUARE)
    return _find_root(params, c, d, start)


@allocating
def search_total(
    params: MethodParams, s: Array, gamma: Array, beta: Array, rest2: float, start: float
) -> tuple[float, int]:
    """Return lambda for J* e + (I - J* J) v / lambda, (25), and the iterations.

    0 if J+ e + (I - J+ J) v, (20), is no longer than Delta; else at least T, where the step may be
    shorter than Delta.

    Args:
        s: (r,), gamma: (r,) U^T e, beta: (r,) V^T v.
        rest2: squared norm of the part of v outside those directions.
        start: lambda of the step before.
    """
    if total_norm(s, gamma, beta, rest2) <= params.Delta:
        return 0.0, 0
    r = s.shape[0]
    c, d = np.empty(r + 1), np.empty(r + 1)
    for i in range(r):
        c[i] = s[i] * gamma[i] + beta[i]
        d[i] = s[i] * s[i] + T
    c[r], d[r] = sqrt(rest2), T
    a, iterations = _find_root(params, c, d, start - T)
    return a + T, iterations


@kernel
def total_norm(s: Array, gamma: Array, beta: Array, rest2: float) -> float:
    """Return |J+ e + (I - J+ J) v|, (20); arguments as of :func:`search_total`."""
    total = rest2
    for i in range(s.shape[0]):
        part = gamma[i] / s[i] if s[i] > 0.0 else beta[i]
        total += part * part
    return sqrt(total)


@kernel
def _find_root(params: MethodParams, c: Array, d: Array, start: float) -> tuple[float, int]:
    """Return the a >= 0 with phi(a) = Delta, or 0 if phi(0) <= Delta; and the updates it took."""
    Delta = params.Delta
    phi, slope = _norm_and_slope(c, d, 0.0)
    if not phi > Delta:  # also for NaN, which no factor helps
        return 0.0, 0
    tangent, low, high = (Delta - phi) / slope, 0.0, _upper_bound(c, Delta)
    if tangent > low:  # phi is convex: its tangents end before the root
        low = tangent
    a = start
    for count in range(MOST_ITERATIONS + MOST_BISECTIONS):
        if not low <= a <= high or count > MOST_ITERATIONS:
            a = max(0.001 * high, sqrt(low) * sqrt(high))
        phi, slope = _norm_and_slope(c, d, a)
        if abs(phi - Delta) <= params.Delta_tolerance * Delta:
            return a, count
        newton = a - (phi - Delta) / slope
        if phi < Delta:
            high = a
        elif a > low:
            low = a
        if newton > low:
            low = newton
        a = newton if params.search == NEWTON else a - phi / Delta * (phi - Delta) / slope
    return high, MOST_ITERATIONS + MOST_BISECTIONS


@kernel
def _upper_bound(c: Array, Delta: float) -> float:
    """Return an upper bound of the root: phi(a) <= |c| / a."""
    total = 0.0
    for i in range(c.shape[0]):
        total += c[i] * c[i]
    return sqrt(total) / Delta


@kernel
def _norm_and_slope(c: Array, d: Array, a: float) -> tuple[float, float]:
    """Return phi(a) and its derivative, (16)."""
    square, bend = 0.0, 0.0
    for i in range(c.shape[0]):
        part = c[i] / (d[i] + a)
        square += part * part
        bend += part * part / (d[i] + a)
    phi = sqrt(square)
    return phi, -bend / phi if phi != 0.0 else 0.0


@allocating
def optimal_step(
    method: Method,
    params: MethodParams,
    grouping: Grouping,
    J: Array,
    e: Array,
    h: Array,
    v: Array,
    memory: Memory,
    dq: Array,
) -> None:
    """Write dq = J* e + (I - J* J) v / lambda, or with J+ and v where that is short enough.

    Args:
        J: (r, n), e: (r,), h: (n,) 1 for joints that are held, v: (n,) motion that GP asks for.
        dq: (n,) out.
    """
    free = np.empty(h.shape[0], np.int64)
    count = free_joints(h, free)
    dq.fill(0.0)
    memory.steps[1] = 0
    if count == 0:
        return
    # The least lambda^2 that keeps the step within Delta.
    F = gather(J, free, count)
    r = F.shape[0]
    Ut, s, Vt = np.empty((r, r)), np.empty(r), np.empty(F.shape)
    svd(F, Ut, s, Vt)
    start, z = memory.lambda2[0], np.zeros(v.shape[0])
    if method.limits == limits.GP:
        lambda2, searched = _search_total(params, s, times(Ut, e), times(Vt, v), v, start)
        for j in range(z.shape[0]):
            z[j] = v[j] / lambda2 if lambda2 > 0.0 else v[j]
    else:
        lambda2, searched = search_plain(params, s, times(Ut, e), start)
    memory.lambda2[0] = lambda2
    memory.steps[1] = searched
    memory.steps[2] += searched
    # The step of the free joints with it.
    damped_gains(s, lambda2, s)
    part, left = np.empty(count), e - times(J, z)
    if goes_by_direction(method):
        of_free = Grouping(grouping.group, grouping.translational[free[:count]])
        bounded_sum(method, params, of_free, F, Ut, s, Vt, e, part)
        add_unbounded(Ut, s, Vt, e, left, part)
    else:
        apply_singular(Ut, s, Vt, left, part)
    for k in range(count):
        dq[free[k]] = part[k]
    for j in range(dq.shape[0]):
        dq[j] += z[j]
    shorten_to_norm(params.Delta, dq)  # an undamped one too: a long z may cancel but for rounding


@kernel
def _search_total(
    params: MethodParams, s: Array, gamma: Array, beta: Array, v: Array, start: float
) -> tuple[float, int]:
    """Return lambda^2 for the total motion, and the iterations; 0 where (20) is short enough.

    Args:
        s: (r,), gamma: (r,) U^T e, beta: (r,) V^T v, v: (n,).
    """
    rest2 = 0.0
    for j in range(v.shape[0]):
        rest2 += v[j] * v[j]
    for i in range(beta.shape[0]):
        rest2 -= beta[i] * beta[i]
    return search_total(params, s, gamma, beta, max(rest2, 0.0), start)
