# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Limit strategies whose step satisfies the bounds of all joints: SNS and HQP.

A step dq satisfies low <= dq <= high. The bounds of a joint are the distances to its two position
limits, but at most the field `largest_step` of the problem. This field is the option
`largest_change` or, while a target is followed, the velocity limit times the duration of a cycle if
that is smaller. A joint beyond a limit may move toward the limit or stay.

The two strategies differ if the bounds do not permit the step of the damping law. SNS scales the
error, so that the tip keeps its direction. HQP minimises the error that remains.
"""

import numpy as np

from dls_ik.core import damping, limits
from dls_ik.core.hierarchy import Bounds, factor_rows, solve_levels
from dls_ik.core.inverses import add_correction, free_joints, gather
from dls_ik.core.jit import allocating, force_inline, kernel
from dls_ik.core.linalg import copy, decompose
from dls_ik.core.types import (
    Array,
    Chain,
    Decomposition,
    GeneralProblem,
    Method,
    MethodParams,
    StepMethod,
    Workspace,
)

DEPENDENT_ROW_SHARE = (
    1e-9  # rows of J below this share of its longest row count as zero for the rank
)
BOUND_ROUNDING = 1e-12  # [rad or m] excess over a bound that counts as rounding


@kernel
def step_limits(chain: Chain, largest: Array, q: Array, low: Array, high: Array) -> None:
    """Write the bounds on the step of each joint; a step of zero satisfies them.

    Args:
        chain: Position limits of the joints.
        largest: (n,) largest step of each joint [rad or m].
        q: (n,) joint positions [rad or m].
        low, high: (n,) bounds, written [rad or m].
    """
    for j in range(q.shape[0]):
        cap = largest[j]
        low[j] = min(max(chain.lower[j] - q[j], -cap), 0.0)
        high[j] = max(min(chain.upper[j] - q[j], cap), 0.0)


@force_inline
def _mark_limits(chain: Chain, q: Array, dq: Array, h: Array) -> None:
    """Set h (n,) to 1 for joints that the step dq (n,) leaves at a position limit, else to 0."""
    for j in range(q.shape[0]):
        at_upper = dq[j] >= 0.0 and q[j] + dq[j] >= chain.upper[j] - BOUND_ROUNDING
        at_lower = dq[j] <= 0.0 and q[j] + dq[j] <= chain.lower[j] + BOUND_ROUNDING
        h[j] = 1.0 if at_upper or at_lower else 0.0


# SNS ----------------------------------------------------------------------------------------------
# Saturation in the null space: joints that would exceed a bound move to the bound, and the other
# joints compensate (Flacco et al. 2012, Algorithm 1).
#
# dq = z + P (s e - J z) with z the motion of the saturated joints, P the inverse of the columns of
# the other joints by the damping law, and the scale s, 0 to 1. In each iteration the joint that
# limits s most is saturated, until s = 1 is possible. If the other joints cannot compensate any
# more (the rank of their columns is lower than that of J), the step with the largest s is taken.
#
# The scale need not be the largest one that the bounds permit, nor the step the shortest one. With
# `optimal_saturation` they are (Flacco et al. 2015 find such a step by multipliers): the levels
# J dq = s e, then s = 1, then dq = 0 of core/hierarchy.py are solved for the unknowns (dq, s).


@allocating
def sns_step(
    chain: Chain,
    step_method: StepMethod,
    general: GeneralProblem,
    q: Array,
    lambda2: float,
    work: Workspace,
) -> None:
    """Write the step of the strategy SNS (saturation in the null space) to `work.dq`.

    Args:
        chain: Limits of the joints.
        step_method: Damping law and its parameters.
        general: Bounds of the step.
        q: (n,) joint positions [rad or m].
        lambda2: Squared damping factor lambda^2.
        work: The scaled error `e` and the Jacobian `step.B` are read. The activation is set to 1
            for joints that the step leaves at a position limit.
    """
    e, B, h, z, dq = work.e, work.step.B, work.limit.activation, work.limit.motion, work.dq
    (r, n), free, last_svd = B.shape, work.step.free, work.last_svd
    low, high, along, rest = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    step_limits(chain, general.largest_step, q, low, high)
    if general.params.optimal_saturation:
        _optimal_saturation(B, e, low, high, dq)
        _mark_limits(chain, q, dq, h)
        return
    none, left, rank, best = np.zeros(r), np.empty(r), _rank(B), 0.0
    dq.fill(0.0)
    h.fill(0.0)
    z.fill(0.0)
    for _ in range(n + 1):
        count = free_joints(h, free)
        if count == 0:
            break
        F = free[:count]
        if count < n and _rank(gather(B, F, count)) < rank:
            break
        # Compute the step as s along + rest: the correction of the error, and the motion of the
        # saturated joints with its compensation.
        for i in range(r):
            left[i] = 0.0
            for j in range(n):
                left[i] -= B[i, j] * z[j]
        along.fill(0.0)
        copy(z, rest)
        limit = work.limit
        add_correction(step_method, B, (e, e), lambda2, F, limit, last_svd, along)
        errors = none, left
        add_correction(step_method, B, errors, lambda2, F, limit, last_svd, rest)
        scale, critical = _largest_scale(along, rest, low, high, h)
        if scale > best:
            best = scale
            for j in range(n):
                dq[j] = scale * along[j] + rest[j]
        if critical < 0:
            break
        h[critical] = 1.0
        is_above = along[critical] + rest[critical] > high[critical]
        z[critical] = high[critical] if is_above else low[critical]
    for j in range(n):
        dq[j] = min(max(dq[j], low[j]), high[j])  # removes rounding errors
    _mark_limits(chain, q, dq, h)


@allocating
def _rank(B: Array) -> int:
    """Return the rank of B (r, k), by reflections with row pivoting."""
    r, k = B.shape
    longest = 0.0
    for i in range(r):
        size = 0.0
        for j in range(k):
            size += B[i, j] * B[i, j]
        longest = max(longest, size)
    return factor_rows(
        B.copy(), DEPENDENT_ROW_SHARE * np.sqrt(longest), np.empty((k, k)), np.empty(r, np.int64)
    )


@kernel
def _largest_scale(
    along: Array, rest: Array, low: Array, high: Array, h: Array
) -> tuple[float, int]:
    """Return the largest scale s, at most 1, for which s along + rest satisfies the bounds.

    Args:
        along: (n,) correction of the whole error [rad or m].
        rest: (n,) motion of saturated joints and its compensation [rad or m].
        low, high: (n,) bounds of the step [rad or m].
        h: (n,) 1 for saturated joints, which are skipped.

    Returns:
        The scale, 0 if no scale satisfies the bounds; and the index of the joint that exceeds a
        bound with s = 1 and permits the smallest s, -1 if no joint exceeds a bound.
    """
    least, most, critical, tightest = 0.0, 1.0, -1, np.inf
    for j in range(along.shape[0]):
        if h[j] != 0.0:
            continue
        whole = along[j] + rest[j]
        exceeds = whole > high[j] + BOUND_ROUNDING or whole < low[j] - BOUND_ROUNDING
        if along[j] > 0.0:
            last, first = (high[j] - rest[j]) / along[j], (low[j] - rest[j]) / along[j]
        elif along[j] < 0.0:
            last, first = (low[j] - rest[j]) / along[j], (high[j] - rest[j]) / along[j]
        elif exceeds:
            last, first = -np.inf, np.inf
        else:
            continue
        if exceeds:
            least, most = max(least, first), min(most, last)
            if critical < 0 or last < tightest:
                critical, tightest = j, last
        else:
            least = max(least, first)
    if most < least or most < 0.0:
        return 0.0, critical
    return most, critical


@allocating
def _optimal_saturation(J: Array, e: Array, low: Array, high: Array, dq: Array) -> None:
    """Write the shortest step with J dq = s e for the largest scale s that the bounds permit.

    Args:
        J: (r, n) Jacobian.
        e: (r,) scaled error [m].
        low, high: (n,) bounds of the step [rad or m].
        dq: (n,) step, written [rad or m].
    """
    r, n = J.shape
    A, b, ends = np.zeros((r + 1 + n, n + 1)), np.zeros(r + 1 + n), np.array([r, r + 1, r + 1 + n])
    below, above = np.zeros(n + 1), np.ones(n + 1)
    for i in range(r):
        copy(J[i], A[i, :n])
        A[i, n] = -e[i]
    A[r, n] = b[r] = 1.0
    for j in range(n):
        A[r + 1 + j, j] = 1.0
        below[j], above[j] = low[j], high[j]
    x = np.zeros(n + 1)
    solve_levels(A, b, ends, Bounds(np.eye(n + 1), below, above), x)
    copy(x[:n], dq)


# HQP ----------------------------------------------------------------------------------------------
# A hierarchical quadratic program: the error that remains is as small as the bounds permit, and of
# all such steps the shortest is taken (Kanoun, Lamiraux & Wieber 2011).
#
# min |J dq - e|^2 + sum_i (lambda_i v_i . dq)^2, then min |dq|^2, with low <= dq <= high.
#
# Without active bounds, the solution is the step P e of the damping law: lambda_i^2 is
# s_i / g_i - s_i^2 for the gain g_i of the law. SVF replaces s_i by h(s_i), and TPINV by zero for
# dropped directions. A law with the same lambda for all directions has lambda^2 |dq|^2.


@allocating
def hqp_step(
    chain: Chain, method: Method, general: GeneralProblem, q: Array, lambda2: float, work: Workspace
) -> None:
    """Write the step of the strategy HQP (hierarchical quadratic program) to `work.dq`.

    Args:
        chain: Limits of the joints.
        method: Damping law.
        general: Parameters of the law, and bounds of the step.
        q: (n,) joint positions [rad or m].
        lambda2: Squared damping factor lambda^2.
        work: The scaled error `e` and the Jacobian `step.B` are read. The activation is set to 1
            for joints that the step leaves at a position limit.
    """
    e, B, dq, n = work.e, work.step.B, work.dq, q.shape[0]
    r = e.shape[0]
    low, high = np.empty(n), np.empty(n)
    step_limits(chain, general.largest_step, q, low, high)
    if damping.is_uniform(method):
        top, damped = B, np.zeros((n if lambda2 > 0.0 else 0, n))
        for j in range(damped.shape[0]):
            damped[j, j] = np.sqrt(lambda2)
    else:
        top, damped = _damped_rows(method, general.params, lambda2, decompose(B, work.last_svd))
    first = r + damped.shape[0]
    A, b, ends = np.zeros((first + n, n)), np.zeros(first + n), np.array([first, first + n])
    for i in range(r):
        copy(top[i], A[i])
        b[i] = e[i]
    for i in range(damped.shape[0]):
        copy(damped[i], A[r + i])
    for j in range(n):
        A[first + j, j] = 1.0
    dq.fill(0.0)
    solve_levels(A, b, ends, Bounds(np.eye(n), low, high), dq)
    _mark_limits(chain, q, dq, work.limit.activation)


@allocating
def _damped_rows(
    method: Method, params: MethodParams, lambda2: float, found: Decomposition
) -> tuple[Array, Array]:
    """Return the matrices of the two terms that HQP minimises, for a law by singular values.

    Args:
        method: Damping law.
        params: Parameters of the law.
        lambda2: Squared damping factor of all directions.
        found: Singular value decomposition of J (r, n).

    Returns:
        (r, n) J with the singular values of the law, and (r, n) rows lambda_i v_i.
    """
    _, Ut, s, Vt = found
    r, n = Vt.shape
    gain, top, damped = np.empty(r), np.zeros((r, n)), np.zeros((r, n))
    damping.gains(method, params, s, min(r, n), lambda2, gain)
    for i in range(r):
        if gain[i] == 0.0:
            continue
        value = damping.svf_value(method, s[i]) if damping.is_filter(method) else s[i]
        factor = np.sqrt(max(value / gain[i] - value * value, 0.0))
        for j in range(n):
            damped[i, j] = factor * Vt[i, j]
            for k in range(r):
                top[k, j] += value * Ut[i, k] * Vt[i, j]
    return top, damped


@allocating
def bounded_step(
    chain: Chain,
    step_method: StepMethod,
    general: GeneralProblem,
    q: Array,
    lambda2: float,
    work: Workspace,
) -> None:
    """Write the step of SNS or HQP to `work.dq`; the arguments are those of :func:`sns_step`."""
    if step_method.method.limits == limits.SNS:
        sns_step(chain, step_method, general, q, lambda2, work)
    else:
        hqp_step(chain, step_method.method, general, q, lambda2, work)
