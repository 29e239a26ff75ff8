# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Inverses of the Jacobian by a damping law: of the free columns, continuous, or as a matrix.

The inverses use a factorisation, or the singular values if a factorisation is too inaccurate.
"""

import numpy as np

from dls_ik.core import damping, damping_policies, limits
from dls_ik.core.jit import allocating, force_inline, kernel
from dls_ik.core.linalg import copy, factor, solve_factored, svd, times
from dls_ik.core.step_bounds import bounded_sum, goes_by_direction
from dls_ik.core.types import Array, Grouping, Indices, LimitState, Method, MethodParams

LEAST_PIVOT = 1e-6  # minimum relative pivot; smaller ones lose digits, so singular values are used


@force_inline
def remaining_error(J: Array, e: Array, z: Array, left: Array) -> None:
    """Write e - J z, the error that the motion z leaves, to `left` (r,)."""
    for i in range(e.shape[0]):
        left[i] = e[i]
    for j in range(z.shape[0]):
        if z[j] != 0.0:
            for i in range(e.shape[0]):
                left[i] -= J[i, j] * z[j]


@force_inline
def free_joints(h: Array, free: Indices) -> int:
    """List the joints whose activation h (n,) is below 1 in `free` (n,); return their number."""
    count = 0
    for j in range(h.shape[0]):
        if h[j] == 0.0:
            free[count] = j
            count += 1
    return count


@allocating
def gather(J: Array, free: Indices, count: int) -> Array:
    """Return the `count` columns of J listed in `free` (r, count); J itself if all are free."""
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
    """Write the lower triangle of B B^T + lambda^2 I to A."""
    r, k = B.shape
    for i in range(r):
        for j in range(i + 1):
            total = lambda2 if i == j else 0.0
            for c in range(k):
                total += B[i, c] * B[j, c]
            A[i, j] = total


@force_inline
def _normal_columns(B: Array, lambda2: float, A: Array) -> None:
    """Write the lower triangle of B^T B + lambda^2 I to A."""
    r, k = B.shape
    for i in range(k):
        for j in range(i + 1):
            total = lambda2 if i == j else 0.0
            for c in range(r):
                total += B[c, i] * B[c, j]
            A[i, j] = total


@force_inline
def factor_normal(B: Array, lambda2: float, A: Array) -> bool:
    """Factor the smaller of B B^T + lambda^2 I and B^T B + lambda^2 I into A.

    Returns:
        False if a pivot is too small; the inverse then needs the singular values.
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
        A: Factors of the smaller normal matrix.
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
    """Write x = sum_i gain_i v_i (u_i . right).

    Args:
        Ut: (r, r) rows u_i.
        gain: (r,) gains.
        Vt: (r, k) rows v_i.
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
    """Write s_i / (s_i^2 + lambda^2), 0 for s_i = 0, to `gain` (r,), which may be s (r,)."""
    for i in range(s.shape[0]):
        gain[i] = s[i] / (s[i] * s[i] + lambda2) if s[i] > 0.0 else 0.0


# Columns of free joints: all strategies but CTP ---------------------------------------------------


@allocating
def invert_free_columns(
    method: Method,
    params: MethodParams,
    grouping: Grouping,
    B: Array,
    e: Array,
    left: Array,
    lambda2: float,
    limit: LimitState,
    dq: Array,
) -> None:
    """Write dq = z + C P left; joints with activation 1 move by their z only.

    Args:
        B: (r, n) J diag(c).
        e: (r,) scaled error.
        left: (r,) e - J z.
        lambda2: lambda^2 of the law.
        limit: Output of the limit strategy.
        dq: (n,) step, written.
    """
    h, c = limit.activation, limit.scale
    free = np.empty(h.shape[0], np.int64)
    count = free_joints(h, free)
    copy(limit.motion, dq)
    if count == 0:
        return
    F = gather(B, free, count)
    r = F.shape[0]
    part, Ut, Vt = np.zeros(count), np.empty((r, r)), np.empty(F.shape)
    s, gain = np.empty(r), np.empty(r)
    strength = damping.jt_step_length(B, h, left) if method.damping == damping.JT else lambda2
    by_direction = goes_by_direction(method)
    if method.damping == damping.JT and not by_direction:
        _transposed(F, left, strength, part)
    elif damping.is_uniform(method) and not by_direction and factor_normal(F, lambda2, Ut):
        apply_factored(F, Ut, left, s, part)
    else:
        svd(F, Ut, s, Vt)
        damping.gains(method, params, s, min(r, count), strength, gain)
        if by_direction:
            if damping.is_filter(method):
                F = damping.rebuilt(method, Ut, s, Vt)
            of_free = Grouping(grouping.group, grouping.translational[free[:count]])
            bounded_sum(method, params, of_free, F, Ut, gain, Vt, e, part)
            add_unbounded(Ut, gain, Vt, e, left, part)
        else:
            apply_singular(Ut, gain, Vt, left, part)
    if method.limits == limits.WLN:
        limits.weigh(part, limit.axis)
    for k in range(count):
        dq[free[k]] += c[free[k]] * part[k]


@force_inline
def _transposed(F: Array, left: Array, alpha: float, part: Array) -> None:
    """Write alpha F^T left to `part` (k,)."""
    for k in range(F.shape[1]):
        for i in range(F.shape[0]):
            part[k] += alpha * F[i, k] * left[i]


@allocating
def add_unbounded(Ut: Array, gain: Array, Vt: Array, e: Array, left: Array, part: Array) -> None:
    """Add -P J z, which compensates for z, to `part` (k,): (7) of Colome & Torras 2012."""
    made_up = np.empty(part.shape[0])
    apply_singular(Ut, gain, Vt, left - e, made_up)
    for k in range(part.shape[0]):
        part[k] += made_up[k]


# The continuous inverse ---------------------------------------------------------------------------

MAX_BRANCHING = 10  # maximum number of joints in their margins; further ones are rounded


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
    """Add weight * P R to X, with P the law's inverse of the free columns B (r, k)."""
    r, k = B.shape
    part, A, y = np.empty(k), np.empty((r, r)), np.empty(r)
    Ut, s, Vt, gain = np.empty((r, r)), np.empty(r), np.empty(B.shape), np.empty(r)
    uniform = damping.is_uniform(method) or damping.is_filter(method)  # J is already filtered
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
def _round_excess(h: Array) -> int:
    """Count the joints with 0 < h < 1; with too many, round those closest to 0 or 1 in place."""
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
    """Write X = J^{(I-H)+} R, the sum over all sets Q of free joints.

    J^{(I-H)+} = sum_Q prod_{j in Q} (1 - h_j) prod_{j not in Q} h_j J_Q^+
    (Mansard, Remazeilles & Chaumette 2009, definition 4.1). A joint with h = 0 is in every set and
    a joint with h = 1 in none, so that only the b joints between branch: 2^b terms, not 2^n.

    Args:
        J: (r, n) Jacobian.
        h: (n,) activations, 0 to 1.
        strength: lambda^2 of the law; for JT the step length.
        R: (c, r) right sides as rows.
        X: (c, n) results as rows, written.
    """
    X.fill(0.0)
    free = np.empty(h.shape[0], np.int64)
    branching = _round_excess(h)
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


# The inverse as a matrix (n, r): a sum (CTP), or directions not decomposed by the law -------------


@force_inline
def needs_whole_inverse(method: Method, params: MethodParams) -> bool:
    """Return whether the directions differ from those of the free columns (CTP, or weights)."""
    weighted = method.limits in (limits.JW, limits.WLN) or (
        method.limits == limits.GP and params.form == 22
    )
    weighted = weighted or params.policy == damping_policies.POLICY_ACCURACY
    return method.limits == limits.CTP or (weighted and goes_by_direction(method))


@allocating
def filter_columns(method: Method, B: Array) -> None:
    """Filter the singular values of B (r, n), in place."""
    r = B.shape[0]
    Ut, s, Vt = np.empty((r, r)), np.empty(r), np.empty(B.shape)
    svd(B, Ut, s, Vt)
    B[:] = damping.rebuilt(method, Ut, s, Vt)


@allocating
def invert_whole(
    method: Method,
    params: MethodParams,
    grouping: Grouping,
    J: Array,
    B: Array,
    W: Array,
    e: Array,
    lambda2: float,
    limit: LimitState,
    dq: Array,
) -> None:
    """Write dq = z + C P (e - J z), each direction of C P bounded if the method bounds them.

    Args:
        J: (r, n) Jacobian.
        B: (r, n) W J diag(c).
        W: (r, r) weight of the error (policy accuracy).
        e: (r,) scaled error.
        lambda2: lambda^2 of the law.
        limit: Output of the limit strategy.
        dq: (n,) step, written.
    """
    r, n = J.shape
    left = np.empty(r)
    remaining_error(J, e, limit.motion, left)
    right = times(W, left)
    is_transpose = method.damping == damping.JT
    strength = damping.jt_step_length(B, limit.activation, right) if is_transpose else lambda2
    by_direction = goes_by_direction(method)
    # Apply the inverse of B to the columns of W, or to the error alone.
    R = W if by_direction else right.reshape((1, r))
    X = np.empty((R.shape[0], n))
    continuous_inverse(method, params, B, limit.activation, strength, R, X)
    for j in range(n):
        for i in range(R.shape[0]):
            X[i, j] *= limit.scale[j]
    if method.limits == limits.WLN:
        limits.weigh_columns(X, limit.axis)
    if by_direction:
        _bounded(method, params, grouping, J, e, left, X, dq)
    else:
        for j in range(n):
            dq[j] = X[0, j]
    for j in range(n):
        dq[j] += limit.motion[j]


@allocating
def _bounded(
    method: Method,
    params: MethodParams,
    grouping: Grouping,
    J: Array,
    e: Array,
    left: Array,
    X: Array,
    dq: Array,
) -> None:
    """Write dq = -P J z + sum_i w_i with bounded w_i: (7), section VI of Colome & Torras 2012.

    Args:
        J: (r, n) Jacobian.
        e: (r,) scaled error.
        left: (r,) e - J z.
        X: (r, n) transpose of P.
        dq: (n,) result, written.
    """
    r, n = J.shape
    Ut, gain, Vt = np.empty((r, r)), np.empty(r), np.empty((r, n))
    svd(X, Ut, gain, Vt)
    bounded_sum(method, params, grouping, J, Ut, gain, Vt, e, dq)
    for j in range(n):
        for i in range(r):
            dq[j] += X[i, j] * (left[i] - e[i])
