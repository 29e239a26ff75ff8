# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Damped inverses P of the Jacobian, and the step dq = z + C P (e - J z) computed from them.

The inverse is that of the columns of the free joints, or the continuous inverse of the limit
strategy CTP. The inverses use a factorisation, or the singular values if the damping law requires
them or a factorisation would be too inaccurate. The symbols are: J Jacobian of the scaled error e,
z motion and C scale of the columns of a limit strategy (:class:`dls_ik.core.types.LimitState`), h
activations of the joint limits, with H = diag(h).
"""

import numpy as np

from dls_ik.core import damping, damping_policies, limits
from dls_ik.core.jit import allocating, force_inline, kernel
from dls_ik.core.linalg import copy, decompose, factor, solve_factored, svd, times
from dls_ik.core.step_bounds import bounded_sum, goes_by_direction
from dls_ik.core.types import (
    Array,
    Decomposition,
    Grouping,
    Indices,
    LimitState,
    Method,
    MethodParams,
    StepMethod,
    Workspace,
)

LEAST_PIVOT = 1e-6  # minimum relative pivot; below it, singular values are used for accuracy


@force_inline
def remaining_error(J: Array, e: Array, z: Array, left: Array) -> None:
    """Write e - J z to `left` (r,), the error that remains after the joint motion z.

    Args:
        J: (r, n) Jacobian of the scaled error.
        e: (r,) scaled error [m].
        z: (n,) joint motion [rad or m].
        left: (r,) remaining error, written [m].
    """
    for i in range(e.shape[0]):
        left[i] = e[i]
    for j in range(z.shape[0]):
        if z[j] != 0.0:
            for i in range(e.shape[0]):
                left[i] -= J[i, j] * z[j]


@force_inline
def free_joints(h: Array, free: Indices) -> int:
    """Write the indices of the joints whose activation h (n,) is 0 to the start of `free` (n,).

    Returns:
        The number of these joints.
    """
    count = 0
    for j in range(h.shape[0]):
        if h[j] == 0.0:
            free[count] = j
            count += 1
    return count


@allocating
def gather(J: Array, free: Indices, count: int) -> Array:
    """Return the columns of J (r, n) with the first `count` indices in `free`, shape (r, count).

    If `count` is n, J itself is returned.
    """
    r = J.shape[0]
    if count == J.shape[1]:
        return J
    out = np.empty((r, count))
    for i in range(r):
        for k in range(count):
            out[i, k] = J[i, free[k]]
    return out


@force_inline
def _normal_rows(B: Array, lambda2: float, A: Array) -> None:
    """Write the lower triangle of B B^T + lambda^2 I, for B (r, k), to the first r rows of A."""
    r, k = B.shape
    for i in range(r):
        for j in range(i + 1):
            total = lambda2 if i == j else 0.0
            for c in range(k):
                total += B[i, c] * B[j, c]
            A[i, j] = total


@force_inline
def _normal_columns(B: Array, lambda2: float, A: Array) -> None:
    """Write the lower triangle of B^T B + lambda^2 I, for B (r, k), to the first k rows of A."""
    r, k = B.shape
    for i in range(k):
        for j in range(i + 1):
            total = lambda2 if i == j else 0.0
            for c in range(r):
                total += B[c, i] * B[c, j]
            A[i, j] = total


@force_inline
def factor_normal(B: Array, lambda2: float, A: Array) -> bool:
    """Factor the smaller one of the matrices B B^T + lambda^2 I and B^T B + lambda^2 I.

    Args:
        B: (r, k) matrix.
        lambda2: lambda^2 of the damping law.
        A: At least (min(r, k), min(r, k)); the factors of :func:`dls_ik.core.linalg.factor` are
            written.

    Returns:
        False if a pivot is too small; the caller must then use the singular values of B.
    """
    if B.shape[1] >= B.shape[0]:
        _normal_rows(B, lambda2, A)
        return factor(A, B.shape[0], LEAST_PIVOT)
    _normal_columns(B, lambda2, A)
    return factor(A, B.shape[1], LEAST_PIVOT)


@force_inline
def apply_factored(B: Array, A: Array, right: Array, y: Array, x: Array) -> None:
    """Write x = B^T (B B^T + lambda^2 I)^-1 right, for A from :func:`factor_normal`.

    Args:
        B: (r, k) matrix.
        A: Factors of the smaller matrix, from :func:`factor_normal`.
        right: (r,) right side.
        y: (r,) scratch.
        x: (k,) result, written.
    """
    r, k = B.shape
    if k < r:
        for j in range(k):
            x[j] = 0.0
            for i in range(r):
                x[j] += B[i, j] * right[i]
        solve_factored(A, k, x)
        return
    for i in range(r):
        y[i] = right[i]
    solve_factored(A, r, y)
    for j in range(k):
        total = 0.0
        for i in range(r):
            total += B[i, j] * y[i]
        x[j] = total


@force_inline
def apply_singular(Ut: Array, gain: Array, Vt: Array, right: Array, x: Array) -> None:
    """Write x = sum_i gain_i v_i (u_i . right), an inverse in terms of singular vectors.

    Args:
        Ut: (r, r) rows u_i, left singular vectors.
        gain: (r,) gains.
        Vt: (r, k) rows v_i, right singular vectors.
        right: (r,) right side.
        x: (k,) result, written.
    """
    r, k = Vt.shape
    for j in range(k):
        x[j] = 0.0
    for i in range(r):
        if gain[i] == 0.0:
            continue
        along = 0.0
        for c in range(r):
            along += Ut[i, c] * right[c]
        along *= gain[i]
        for j in range(k):
            x[j] += along * Vt[i, j]


@force_inline
def damped_gains(s: Array, lambda2: float, gain: Array) -> None:
    """Write the gains s_i / (s_i^2 + lambda^2), or 0 for s_i = 0.

    Args:
        s: (r,) singular values.
        lambda2: lambda^2 of the damping law.
        gain: (r,) gains, written; may be the array `s`.
    """
    for i in range(s.shape[0]):
        gain[i] = s[i] / (s[i] * s[i] + lambda2) if s[i] > 0.0 else 0.0


# Inverses from the columns of free joints: for CTP only if no joint is in a margin ----------------


@kernel
def invert_free_columns(
    step_method: StepMethod,
    B: Array,
    e: Array,
    left: Array,
    lambda2: float,
    work: Workspace,
) -> None:
    """Write the step dq = z + C P (e - J z), where only free joints correct the error e - J z.

    Free joints have the activation 0. P is the damped inverse of the columns of J C that belong to
    free joints. The limit strategy gives the motion z and the column factors C, see
    :class:`LimitState`; a joint that is not free moves by z only.

    Args:
        step_method: Damping law, limit strategy and step bound.
        B: (r, n) J C, with J the Jacobian of the scaled error.
        e: (r,) scaled error [m].
        left: (r,) remaining error e - J z [m].
        lambda2: Squared damping factor lambda^2.
        work: The result of the limit strategy is read from `limit`; the step is written to `dq`.
    """
    count = free_joints(work.limit.activation, work.step.free)
    copy(work.limit.motion, work.dq)
    if count > 0:
        free, last_svd = work.step.free[:count], work.last_svd
        errors = e, left
        add_correction(step_method, B, errors, lambda2, free, work.limit, last_svd, work.dq)


@allocating
def add_correction(
    step_method: StepMethod,
    B: Array,
    errors: tuple[Array, Array],
    lambda2: float,
    free: Indices,
    limit: LimitState,
    last_svd: Decomposition,
    dq: Array,
) -> None:
    """Add the term C P (e - J z) of :func:`invert_free_columns` to `dq` (n,).

    Args:
        step_method, B, lambda2: As for :func:`invert_free_columns`.
        errors: (r,) scaled error e, and (r,) remaining error e - J z [m].
        free: Indices of the free joints.
        limit: Result of the limit strategy.
        last_svd: Last singular value decomposition of the step.
        dq: (n,) step, read and written [rad or m].
    """
    method, params, grouping = step_method.method, step_method.params, step_method.grouping
    e, left = errors
    h, c, count = limit.activation, limit.scale, free.shape[0]
    F = gather(B, free, count)
    r = F.shape[0]
    part, A, gain = np.zeros(count), np.empty((r, r)), np.empty(r)
    strength = damping.jt_step_length(B, h, left) if method.damping == damping.JT else lambda2
    by_direction = goes_by_direction(method)
    if method.damping == damping.JT and not by_direction:
        _transposed(F, left, strength, part)
    elif damping.is_uniform(method) and not by_direction and factor_normal(F, lambda2, A):
        apply_factored(F, A, left, gain, part)
    else:
        _, Ut, s, Vt = decompose(F, last_svd)
        damping.gains(method, params, s, min(r, count), strength, gain)
        if by_direction:
            if damping.is_filter(method):
                F = damping.rebuilt(method, Ut, s, Vt)
            of_free = Grouping(grouping.group, grouping.translational[free])
            bounded_sum(StepMethod(method, params, of_free), F, Ut, gain, Vt, e, part)
            add_unbounded(Ut, gain, Vt, e, left, part)
        else:
            apply_singular(Ut, gain, Vt, left, part)
    if method.limits == limits.GWLN:
        limits.weigh(part, limit.axis)
    for k in range(count):
        dq[free[k]] += c[free[k]] * part[k]


@force_inline
def _transposed(F: Array, left: Array, alpha: float, part: Array) -> None:
    """Add alpha F^T left to `part` (k,), for F (r, k) and left (r,)."""
    for k in range(F.shape[1]):
        for i in range(F.shape[0]):
            part[k] += alpha * F[i, k] * left[i]


@allocating
def add_unbounded(Ut: Array, gain: Array, Vt: Array, e: Array, left: Array, part: Array) -> None:
    """Add -P J z, the compensation of the motion z, to the bounded step of the free joints.

    The compensation is not bounded, as in (7) of Colome & Torras 2012.

    Args:
        Ut: (r, r) rows u_i.
        gain: (r,) gains of P.
        Vt: (r, k) rows v_i.
        e: (r,) scaled error [m].
        left: (r,) e - J z [m].
        part: (k,) step of the free joints, read and written.
    """
    made_up = np.empty(part.shape[0])
    apply_singular(Ut, gain, Vt, left - e, made_up)
    for k in range(part.shape[0]):
        part[k] += made_up[k]


# The continuous inverse ---------------------------------------------------------------------------

MAX_BRANCHING = 10  # maximum number of joints with 0 < h < 1; h of further joints is rounded


@allocating
def _add_leaf(
    method: Method,
    params: MethodParams,
    B: Array,
    free: Indices,
    strength: float,
    R: Array,
    weight: float,
    X: Array,
) -> None:
    """Add the results for one set of free joints to the sum of :func:`continuous_inverse`.

    The results are the products of the inverse of the columns of the free joints with the right
    sides, times a weight.

    Args:
        method: Damping law.
        params: Parameters of the damping law.
        B: (r, k) columns of the free joints.
        free: Indices of the k free joints.
        strength: lambda^2 of the damping law; for the law JT the step length.
        R: (c, r) right sides as rows.
        weight: Weight of this set of free joints.
        X: (c, n) sums of the results as rows, read and written.
    """
    r, k = B.shape
    part, A, y = np.empty(k), np.empty((r, r)), np.empty(r)
    Ut, s, Vt, gain = np.empty((r, r)), np.empty(r), np.empty(B.shape), np.empty(r)
    # The singular values of J are already filtered by the law.
    uniform = damping.is_uniform(method) or damping.is_filter(method)
    factored = uniform and factor_normal(B, strength, A)
    if not factored:
        svd(B, Ut, s, Vt)
        if uniform:
            damped_gains(s, strength, gain)
        else:
            damping.gains(method, params, s, min(r, k), strength, gain)
    for c in range(R.shape[0]):
        if factored:
            apply_factored(B, A, R[c], y, part)
        else:
            apply_singular(Ut, gain, Vt, R[c], part)
        for j in range(k):
            X[c, free[j]] += weight * part[j]


@kernel
def round_excess(h: Array) -> int:
    """Return the number of joints with 0 < h < 1, at most MAX_BRANCHING.

    If more joints have such activations, those closest to 0 or 1 are rounded in place.
    """
    count = 0
    for j in range(h.shape[0]):
        if 0.0 < h[j] < 1.0:
            count += 1
    while count > MAX_BRANCHING:
        nearest, best = 0, 2.0
        for j in range(h.shape[0]):
            if 0.0 < h[j] < 1.0 and min(h[j], 1.0 - h[j]) < best:
                nearest, best = j, min(h[j], 1.0 - h[j])
        h[nearest] = 0.0 if h[nearest] < 0.5 else 1.0
        count -= 1
    return count


@allocating
def continuous_inverse(
    method: Method,
    params: MethodParams,
    J: Array,
    h: Array,
    strength: float,
    R: Array,
    X: Array,
) -> None:
    """Multiply right sides by the continuous inverse J^{(I-H)+} of the Jacobian.

    J^{(I-H)+} = sum_Q prod_{j in Q} (1 - h_j) prod_{j not in Q} h_j J_Q^+
    (Mansard, Remazeilles & Chaumette 2009, definition 4.1), with Q all sets of free joints and J_Q
    the columns of the joints of a set. A joint with h = 0 is in every set that has a weight, and a
    joint with h = 1 in none. The sum therefore has 2^b terms, with b the number of joints with
    0 < h < 1.

    Args:
        method: Damping law.
        params: Parameters of the damping law.
        J: (r, n) Jacobian.
        h: (n,) activations, 0 (free) to 1 (held); some are rounded if b is too large.
        strength: lambda^2 of the damping law; for the law JT the step length.
        R: (c, r) right sides as rows.
        X: (c, n) results as rows, written.
    """
    X.fill(0.0)
    free = np.empty(h.shape[0], np.int64)
    branching = round_excess(h)
    for chosen in range(1 << branching):
        count, branch, weight = 0, 0, 1.0
        for j in range(h.shape[0]):
            joint_is_free = h[j] == 0.0
            if 0.0 < h[j] < 1.0:
                joint_is_free = (chosen >> branch) & 1 == 1
                weight *= 1.0 - h[j] if joint_is_free else h[j]
                branch += 1
            if joint_is_free:
                free[count] = j
                count += 1
        if count > 0:
            B = gather(J, free, count)
            _add_leaf(method, params, B, free, strength, R, weight, X)


# The inverse as a matrix (n, r) -------------------------------------------------------------------
# The matrix is used for CTP, whose inverse is a sum, and for bounds on the singular directions of
# an inverse that weights the columns or the error.


@force_inline
def needs_whole_inverse(method: Method, params: MethodParams, h: Array) -> bool:
    """Return whether :func:`invert_whole`, not :func:`invert_free_columns`, must compute the step.

    This is the case if

    - the limit strategy is CTP, and any activation is not 0; or
    - the step bound applies to each singular direction separately, and the limit strategy or the
      damping policy weights the columns of the Jacobian or the error, so that the directions are
      those of the weighted inverse.

    Args:
        method: Damping law, limit strategy and step bound.
        params: Damping policy, and form of the strategy GP.
        h: (n,) activations of the joint limits.
    """
    is_any_active = False
    for j in range(h.shape[0]):
        is_any_active = is_any_active or h[j] != 0.0
    weighted = method.limits in (limits.JW, limits.GWLN) or (
        method.limits == limits.GP and params.form == 22
    )
    weighted = weighted or params.policy == damping_policies.POLICY_ACCURACY
    weighted = weighted or method.damping == damping.LM
    is_branching = method.limits == limits.CTP and is_any_active
    return is_branching or (weighted and goes_by_direction(method))


@allocating
def filter_columns(method: Method, B: Array) -> None:
    """Replace the singular values s of B (r, n) by h(s) of the law SVF, in place."""
    r = B.shape[0]
    Ut, s, Vt = np.empty((r, r)), np.empty(r), np.empty(B.shape)
    svd(B, Ut, s, Vt)
    B[:] = damping.rebuilt(method, Ut, s, Vt)


@allocating
def invert_whole(
    step_method: StepMethod,
    J: Array,
    B: Array,
    W: Array,
    e: Array,
    lambda2: float,
    limit: LimitState,
    dq: Array,
) -> None:
    """Write the step dq = z + C P W (e - J z), with P the continuous inverse of W J C.

    If the step bound of the method applies to single directions, these are the singular directions
    of C P W.

    Args:
        step_method: Damping law, limit strategy and step bound.
        J: (r, n) Jacobian of the scaled error.
        B: (r, n) matrix W J C.
        W: (r, r) weight of the error, the identity except for the policy `accuracy`.
        e: (r,) scaled error [m].
        lambda2: lambda^2 of the damping law.
        limit: Result of the limit strategy: z, a motion away from the limits, and C, which scales
            or removes the motion of joints near a limit.
        dq: (n,) step, written [rad or m].
    """
    method, params = step_method.method, step_method.params
    r, n = J.shape
    left = np.empty(r)
    remaining_error(J, e, limit.motion, left)
    right = times(W, left)
    is_transpose = method.damping == damping.JT
    strength = damping.jt_step_length(B, limit.activation, right) if is_transpose else lambda2
    by_direction = goes_by_direction(method)
    # Apply the inverse of B to all columns of W, or, without bounds on directions, to the error.
    R = W if by_direction else right.reshape((1, r))
    X = np.empty((R.shape[0], n))
    continuous_inverse(method, params, B, limit.activation, strength, R, X)
    for j in range(n):
        for i in range(R.shape[0]):
            X[i, j] *= limit.scale[j]
    if method.limits == limits.GWLN:
        limits.weigh_columns(X, limit.axis)
    if by_direction:
        _bounded(step_method, J, e, left, X, dq)
    else:
        for j in range(n):
            dq[j] = X[0, j]
    for j in range(n):
        dq[j] += limit.motion[j]


@allocating
def _bounded(
    step_method: StepMethod,
    J: Array,
    e: Array,
    left: Array,
    X: Array,
    dq: Array,
) -> None:
    """Write dq = -X^T J z + sum_i w_i, with w_i the bounded motion of one singular direction.

    The w_i sum to X^T e if no bound is active: (7) and section VI of Colome & Torras 2012.

    Args:
        step_method: Step bound, groups of rows and kinds of joints.
        J: (r, n) Jacobian of the scaled error.
        e: (r,) scaled error [m].
        left: (r,) e - J z [m].
        X: (r, n) transpose of the inverse.
        dq: (n,) result, written [rad or m].
    """
    r, n = J.shape
    Ut, gain, Vt = np.empty((r, r)), np.empty(r), np.empty((r, n))
    svd(X, Ut, gain, Vt)
    bounded_sum(step_method, J, Ut, gain, Vt, e, dq)
    for j in range(n):
        for i in range(r):
            dq[j] += X[i, j] * (left[i] - e[i])
