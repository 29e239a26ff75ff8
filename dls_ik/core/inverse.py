"""The damped inverse of a set of columns, by a factorisation or by the singular values."""

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.jit import inlined, kernel
from dls_ik.core.linalg import factor, solve_factored, svd
from dls_ik.core.types import Array

LEAST_PIVOT = 1e-6  # below it the squared condition number costs digits: go by the singular values


@inlined
def remaining_error(J: Array, e: Array, z: Array, left: Array) -> None:
    """Write e - J z, what the motion z leaves of the error: (r,)."""
    for i in range(e.shape[0]):
        left[i] = e[i]
    for j in range(z.shape[0]):
        if z[j] != 0.0:
            for i in range(e.shape[0]):
                left[i] -= J[i, j] * z[j]


@inlined
def free_joints(h: Array, free: NDArray[np.int64]) -> int:
    """List the joints that are not held; return how many."""
    count = 0
    for j in range(h.shape[0]):
        if h[j] == 0.0:
            free[count] = j
            count += 1
    return count


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


@inlined
def apply_singular(Ut: Array, gain: Array, Vt: Array, right: Array, x: Array) -> None:
    """Write x = sum_i gain_i v_i (u_i . right).

    Args:
        Ut: (r, r), gain: (r,), Vt: (r, k), right: (r,), x: (k,) out.
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


@inlined
def damped_gains(s: Array, lambda2: float, gain: Array) -> None:
    """Write s_i / (s_i^2 + lambda^2), zero singular values left out; (r,) each, also in place."""
    for i in range(s.shape[0]):
        gain[i] = s[i] / (s[i] * s[i] + lambda2) if s[i] > 0.0 else 0.0


@kernel
def apply_pseudoinverse(B: Array, lambda2: float, right: Array, x: Array) -> None:
    """Write x = sum_i s_i / (s_i^2 + lambda^2) v_i (u_i . right), zero singular values left out.

    Args:
        B: (r, k), right: (r,), x: (k,) out.
    """
    r = B.shape[0]
    Ut, s, Vt = np.empty((r, r)), np.empty(r), np.empty(B.shape)
    svd(B, Ut, s, Vt)
    damped_gains(s, lambda2, s)
    apply_singular(Ut, s, Vt, right, x)
