# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The optimal damping factor: the minimum that limits the 2-norm of the step to Delta.

The method is that of Deo & Walker 1993, 3.1 and 4.1; lambda in the paper is lambda^2 here. The
squared norm of the step is

phi^2 = sum_i (s_i gamma_i)^2 / (s_i^2 + lambda)^2                    (15), U^T e = gamma
phi^2 = sum_i (s_i gamma_i + beta_i)^2 / (s_i^2 + a + T)^2            (29), V^T v = beta
        + sum_{i>r} beta_i^2 / (a + T)^2,  lambda = a + T

where v / lambda is the motion in the null space. Both are sum_i c_i^2 / (d_i + a)^2, which falls
with a, so that phi(a) = Delta has one root. The root is found by the Newton iteration on phi, (17),
or on 1 / phi, which is almost linear, (18); both within converging bounds as in More 1978.
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

SEARCH_NEWTON, SEARCH_RECIPROCAL = 17, 18
T = 1e-4  # minimum lambda in (28); without a minimum, (27) has a pole at 0
MOST_ITERATIONS = 50
MOST_BISECTIONS = 300
LEAST_SQUARE = 1e-300  # replaces squares of singular values that would underflow


@allocating
def search_plain(params: MethodParams, s: Array, gamma: Array, start: float) -> tuple[float, int]:
    """Return lambda for J* e alone, (13), and the number of iterations; 0 if |J+ e| <= Delta.

    Args:
        s: (r,) singular values; zeros contribute nothing.
        gamma: (r,) U^T e.
        start: lambda of the previous step.
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
    """Return lambda for J* e + (I - J* J) v / lambda, (25), and the number of iterations.

    lambda is 0 if the norm of J+ e + (I - J+ J) v, (20), is at most Delta. Otherwise lambda is at
    least T; for lambda = T the step may be shorter than Delta.

    Args:
        s: (r,) singular values.
        gamma: (r,) U^T e.
        beta: (r,) V^T v.
        rest2: Squared norm of the part of v outside the rows of V^T.
        start: lambda of the previous step.
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
    """Return |J+ e + (I - J+ J) v|, (20); the arguments are those of :func:`search_total`."""
    total = rest2
    for i in range(s.shape[0]):
        part = gamma[i] / s[i] if s[i] > 0.0 else beta[i]
        total += part * part
    return sqrt(total)


@kernel
def _find_root(params: MethodParams, c: Array, d: Array, start: float) -> tuple[float, int]:
    """Return the a >= 0 with phi(a) = Delta, or 0 if phi(0) <= Delta, and the update count."""
    Delta = params.Delta
    phi, slope = _norm_and_slope(c, d, 0.0)
    if not phi > Delta:  # also for NaN
        return 0.0, 0
    tangent, low, high = (Delta - phi) / slope, 0.0, _upper_bound(c, Delta)
    if tangent > low:  # phi is convex: tangents reach Delta before the root
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
        a = newton if params.search == SEARCH_NEWTON else a - phi / Delta * (phi - Delta) / slope
    return high, MOST_ITERATIONS + MOST_BISECTIONS


@kernel
def _upper_bound(c: Array, Delta: float) -> float:
    """Return an upper bound on the root, from phi(a) <= |c| / a."""
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
    """Write dq = J* e + (I - J* J) v / lambda, or J+ e + (I - J+ J) v if that is short enough.

    Args:
        J: (r, n) Jacobian.
        e: (r,) scaled error.
        h: (n,) 1 for held joints, else less.
        v: (n,) motion of the strategy GP.
        memory: Holds lambda^2 and the iteration counts; read and written.
        dq: (n,) step, written.
    """
    free = np.empty(h.shape[0], np.int64)
    count = free_joints(h, free)
    dq.fill(0.0)
    memory.steps[1] = 0
    if count == 0:
        return
    # Find the minimum lambda^2 that limits the step to Delta.
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
    # Solve the step of the free joints with this lambda^2.
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
    shorten_to_norm(params.Delta, dq)  # also undamped: a long z may cancel inexactly


@kernel
def _search_total(
    params: MethodParams, s: Array, gamma: Array, beta: Array, v: Array, start: float
) -> tuple[float, int]:
    """Return lambda^2 for the total motion, and the iterations; 0 if (20) is short enough.

    Args:
        s: (r,) singular values.
        gamma: (r,) U^T e.
        beta: (r,) V^T v.
        v: (n,) motion of the strategy GP.
        start: lambda^2 of the previous step.
    """
    rest2 = 0.0
    for j in range(v.shape[0]):
        rest2 += v[j] * v[j]
    for i in range(beta.shape[0]):
        rest2 -= beta[i] * beta[i]
    return search_total(params, s, gamma, beta, max(rest2, 0.0), start)
