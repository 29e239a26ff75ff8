# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The policy `optimal`: the smallest damping factor for which the step is at most Delta long.

The method is that of Deo & Walker 1993, sections 3.1 and 4.1, whose equation numbers and symbols
are used in this module: lambda of the paper is lambda^2 in the other modules. J+ is the
pseudoinverse and J* the damped inverse of J = U diag(s) V^T. The squared 2-norm phi^2 of the step
J* e, or of the step with the null-space motion v / lambda of gradient projection, is

phi^2 = sum_i (s_i gamma_i)^2 / (s_i^2 + lambda)^2                    (15), U^T e = gamma
phi^2 = sum_i (s_i gamma_i + beta_i)^2 / (s_i^2 + a + T)^2            (29), V^T v = beta
        + sum_{i>r} beta_i^2 / (a + T)^2,  lambda = a + T

Both formulas have the form sum_i c_i^2 / (d_i + a)^2 (with a = lambda in (15)), which decreases
with a, so that phi(a) = Delta has one root. The root is found by Newton's method for phi, (17), or
for 1 / phi, which is almost linear, (18). Bounds on the root that converge, as in More 1978,
safeguard both iterations.
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
from dls_ik.core.types import Array, Grouping, Memory, MethodParams, StepMethod

SEARCH_NEWTON, SEARCH_RECIPROCAL = 17, 18
T = 1e-4  # minimum lambda in (28); without a minimum, (27) has a pole at 0
MOST_ITERATIONS = 50
MOST_BISECTIONS = 300
LEAST_SQUARE = 1e-300  # replaces squares of singular values that would underflow


@allocating
def search_plain(params: MethodParams, s: Array, gamma: Array, start: float) -> tuple[float, int]:
    """Find the smallest lambda for which the step J* e, (13), is at most Delta long.

    Args:
        params: Delta and parameters of the iteration.
        s: (r,) singular values; zeros contribute nothing.
        gamma: (r,) U^T e.
        start: lambda of the previous step.

    Returns:
        lambda, 0 if the undamped step J+ e is at most Delta long, and the number of iterations.
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
    """Find the smallest lambda >= T for which J* e + (I - J* J) v / lambda, (25), is short enough.

    The step is short enough if its 2-norm is at most Delta. T is the constant of this module.

    Args:
        params: Delta and parameters of the iteration.
        s: (r,) singular values.
        gamma: (r,) U^T e.
        beta: (r,) V^T v.
        rest2: Squared norm of the component of v orthogonal to the rows of V^T.
        start: lambda of the previous step.

    Returns:
        lambda, 0 if the undamped step J+ e + (I - J+ J) v, (20), is short enough, and the number of
        iterations.
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
    """Return the 2-norm of the undamped step J+ e + (I - J+ J) v, (20).

    The arguments are those of :func:`search_total`.
    """
    total = rest2
    for i in range(s.shape[0]):
        part = gamma[i] / s[i] if s[i] > 0.0 else beta[i]
        total += part * part
    return sqrt(total)


@kernel
def _find_root(params: MethodParams, c: Array, d: Array, start: float) -> tuple[float, int]:
    """Find the root a >= 0 of phi(a) = Delta with phi(a)^2 = sum_i c_i^2 / (d_i + a)^2.

    Args:
        params: Delta, its tolerance, and the kind of iteration.
        c, d: Coefficients of phi.
        start: Initial value of a.

    Returns:
        The root, 0 if phi(0) <= Delta, and the number of iterations.
    """
    Delta = params.Delta
    phi, slope = _norm_and_slope(c, d, 0.0)
    if not phi > Delta:  # unlike phi <= Delta, this also returns if phi is NaN
        return 0.0, 0
    tangent, low, high = (Delta - phi) / slope, 0.0, _upper_bound(c, Delta)
    if tangent > low:  # phi is convex, so that a tangent reaches Delta before the root
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
    """Return |c| / Delta, an upper bound on the root of :func:`_find_root`: phi(a) <= |c| / a."""
    total = 0.0
    for i in range(c.shape[0]):
        total += c[i] * c[i]
    return sqrt(total) / Delta


@kernel
def _norm_and_slope(c: Array, d: Array, a: float) -> tuple[float, float]:
    """Return phi(a) = sqrt(sum_i c_i^2 / (d_i + a)^2) and its derivative by a, (16)."""
    square, bend = 0.0, 0.0
    for i in range(c.shape[0]):
        part = c[i] / (d[i] + a)
        square += part * part
        bend += part * part / (d[i] + a)
    phi = sqrt(square)
    return phi, -bend / phi if phi != 0.0 else 0.0


@allocating
def optimal_step(
    step_method: StepMethod,
    J: Array,
    e: Array,
    h: Array,
    v: Array,
    memory: Memory,
    dq: Array,
) -> None:
    """Write the step with the smallest damping for which its 2-norm is at most Delta.

    For the strategy GP (gradient projection) the undamped step is J+ e + (I - J+ J) v, and the
    damped step is J* e + (I - J* J) v / lambda. For other strategies the steps are J+ e and J* e.

    Args:
        step_method: Limit strategy, step bound, Delta and parameters of the iteration.
        J: (r, n) Jacobian of the scaled error.
        e: (r,) scaled error [m].
        h: (n,) activations of the joint limits; joints with h = 0 are free.
        v: (n,) motion of the strategy GP, -mu times the gradient of the objective.
        memory: The damping factor and the iteration counts are read and written.
        dq: (n,) step, written [rad or m].
    """
    method, params, grouping = step_method.method, step_method.params, step_method.grouping
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
        bounded_sum(StepMethod(method, params, of_free), F, Ut, s, Vt, e, part)
        add_unbounded(Ut, s, Vt, e, left, part)
    else:
        apply_singular(Ut, s, Vt, left, part)
    for k in range(count):
        dq[free[k]] = part[k]
    for j in range(dq.shape[0]):
        dq[j] += z[j]
    # Rounding errors of a long z can make even the undamped step too long.
    shorten_to_norm(params.Delta, dq)


@kernel
def _search_total(
    params: MethodParams, s: Array, gamma: Array, beta: Array, v: Array, start: float
) -> tuple[float, int]:
    """Run :func:`search_total`, given v instead of `rest2`.

    Args:
        params: Delta and parameters of the iteration.
        s: (r,) singular values.
        gamma: (r,) U^T e.
        beta: (r,) V^T v.
        v: (n,) motion of the strategy GP.
        start: lambda of the paper, that is lambda^2, of the previous step.
    """
    rest2 = 0.0
    for j in range(v.shape[0]):
        rest2 += v[j] * v[j]
    for i in range(beta.shape[0]):
        rest2 -= beta[i] * beta[i]
    return search_total(params, s, gamma, beta, max(rest2, 0.0), start)
