"""The continuous inverse J^{(I-H)+}, and the damped inverse of a set of columns beneath it."""

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.jit import inlined, kernel
from dls_ik.core.linalg import factor, solve_factored, svd
from dls_ik.core.types import Array, Workspace

LEAST_PIVOT = 1e-6  # below it the squared condition number costs digits: go by the singular values
MAX_BRANCHING = 10  # joints in their margins at once; more are rounded to free or held


@inlined
def gather(J: Array, free: NDArray[np.int64], count: int) -> Array:
    """Copy the first `count` columns named in `free` side by side: (r, count); J if that is all."""
    r = J.shape[0]
    if count == J.shape[1]:
        return J
    out = np.empty((r, count))
    for i in range(r):
        for k in range(count):
            out[i, k] = J[i, free[k]]
    return out


@inlined
def _normal_rows(B: Array, lambda2: float, A: Array) -> None:
    """B B^T + lambda^2 I, lower triangle."""
    r, k = B.shape
    for i in range(r):
        for j in range(i + 1):
            total = lambda2 if i == j else 0.0
            for c in range(k):
                total += B[i, c] * B[j, c]
            A[i, j] = total


@inlined
def _normal_columns(B: Array, lambda2: float, A: Array) -> None:
    """B^T B + lambda^2 I, lower triangle."""
    r, k = B.shape
    for i in range(k):
        for j in range(i + 1):
            total = lambda2 if i == j else 0.0
            for c in range(r):
                total += B[c, i] * B[c, j]
            A[i, j] = total


@inlined
def factor_normal(B: Array, lambda2: float, A: Array) -> bool:
    """Factor the smaller of B B^T + lambda^2 I and B^T B + lambda^2 I into A.

    Returns:
        False where that would cost digits; the inverse then goes by the singular values.
    """
    if B.shape[1] >= B.shape[0]:
        _normal_rows(B, lambda2, A)
        return factor(A, B.shape[0], LEAST_PIVOT)
    _normal_columns(B, lambda2, A)
    return factor(A, B.shape[1], LEAST_PIVOT)


@inlined
def apply_factored(B: Array, A: Array, right: Array, y: Array, x: Array) -> None:
    """Write x = B^T (B B^T + lambda^2 I)^-1 right, for A from :func:`factor_normal`.

    Args:
        B: (r, k), right: (r,), y: (r,) scratch, x: (k,) out.
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


@kernel
def apply_singular(Ut: Array, s: Array, Vt: Array, lambda2: float, right: Array, x: Array) -> None:
    """Write x = sum_i s_i / (s_i^2 + lambda^2) v_i (u_i . right), zero singular values left out.

    Args:
        Ut: (r, r), s: (r,), Vt: (r, k), right: (r,), x: (k,) out.
    """
    r, k = Vt.shape
    for j in range(k):
        x[j] = 0.0
    for i in range(r):
        if s[i] <= 0.0:
            continue
        along = 0.0
        for c in range(r):
            along += Ut[i, c] * right[c]
        along *= s[i] / (s[i] * s[i] + lambda2)
        for j in range(k):
            x[j] += along * Vt[i, j]


@kernel
def _add_leaf(
    B: Array, count: int, lambda2: float, R: Array, weight: float, X: Array, work: Workspace
) -> None:
    """Add weight times the damped inverse of the free columns B (r, count), applied to R, to X."""
    part = work.part[:count]
    factored = factor_normal(B, lambda2, work.A)
    Vt = np.empty(B.shape)
    if not factored:
        svd(B, work.Ut, work.s, Vt)
    for c in range(R.shape[0]):
        if factored:
            apply_factored(B, work.A, R[c], work.y, part)
        else:
            apply_singular(work.Ut, work.s, Vt, lambda2, R[c], part)
        for k in range(count):
            X[c, work.free[k]] += weight * part[k]


@kernel
def _round_excess(h: Array) -> int:
    """Count the joints with 0 < h < 1; round the least undecided of them if there are too many."""
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


@kernel
def continuous_inverse(
    J: Array, h: Array, lambda2: float, R: Array, X: Array, work: Workspace
) -> None:
    """Write X = J^{(I-H)+} R, exactly: the sum over the sets Q of joints that may be free.

    J^{(I-H)+} = sum_Q prod_{j in Q} (1 - h_j) prod_{j not in Q} h_j J_Q^+
    (Mansard, Remazeilles & Chaumette 2009, definition 4.1). A joint with h = 0 is in every set and
    one with h = 1 in none, so only those between branch: 2^b terms instead of 2^n.

    Args:
        J: (6, n), h: (n,), R: (c, 6) right-hand sides as rows, X: (c, n) out.
    """
    X.fill(0.0)
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
                work.free[count] = j
                count += 1
        if count > 0:
            B = gather(J, work.free, count)
            _add_leaf(B, count, lambda2, R, weight, X, work)
