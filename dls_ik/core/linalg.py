# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Small dense linear algebra: symmetric solves, a singular value decomposition, its measures.

Written here because Numba's needs SciPy and costs more than matrices of this size are worth.
"""

from math import sqrt

import numpy as np

from dls_ik.core.jit import allocating, force_inline, kernel
from dls_ik.core.types import Array

EPSILON = 2.220446049250313e-16
SWEEPS = 30  # Jacobi converges quadratically: four to seven sweeps are usual


@force_inline
def copy(source: Array, target: Array) -> None:
    """Copy (n,); a slice assignment compiles to ten times the code."""
    for i in range(target.shape[0]):
        target[i] = source[i]


@allocating
def times(A: Array, x: Array) -> Array:
    """Return A x, (r,); Numba's own product needs SciPy."""
    y = np.zeros(A.shape[0])
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            y[i] += A[i, j] * x[j]
    return y


@force_inline
def factor(A: Array, k: int, least_pivot: float) -> bool:
    """Factor the leading k x k block of a symmetric positive matrix in place: A = L D L^T.

    Only the lower triangle is read and written: L below the diagonal, 1 / D on it. Without square
    roots and looking right, this takes a third of the time of the usual Cholesky loop.

    Returns:
        False where a pivot falls to `least_pivot` or below, relative to the largest entry of the
        diagonal; the block is then spoilt.
    """
    largest = 0.0
    for j in range(k):
        largest = max(largest, A[j, j])
    for j in range(k):
        pivot = A[j, j]
        if not pivot > least_pivot * largest:
            return False
        inverse = 1.0 / pivot
        for i in range(j + 1, k):
            below = A[i, j] * inverse
            for c in range(j + 1, i):
                A[i, c] -= below * A[c, j]
            A[i, i] -= below * A[i, j]
        for i in range(j + 1, k):
            A[i, j] *= inverse
        A[j, j] = inverse
    return True


@force_inline
def solve_factored(A: Array, k: int, x: Array) -> None:
    """Solve A x = b in place for a block from :func:`factor`; x = b of length k comes in."""
    for i in range(k):
        for j in range(i):
            x[i] -= A[i, j] * x[j]
    for i in range(k - 1, -1, -1):
        total = x[i] * A[i, i]
        for j in range(i + 1, k):
            total -= A[j, i] * x[j]
        x[i] = total


@force_inline
def _rotate_rows(A: Array, i: int, j: int, c: float, s: float) -> None:
    for k in range(A.shape[1]):
        x, y = A[i, k], A[j, k]
        A[i, k], A[j, k] = c * x - s * y, s * x + c * y


@force_inline
def _dot_rows(A: Array, i: int, j: int) -> float:
    total = 0.0
    for k in range(A.shape[1]):
        total += A[i, k] * A[j, k]
    return total


@kernel
def _swap_rows(A: Array, i: int, j: int) -> None:
    for k in range(A.shape[1]):
        A[i, k], A[j, k] = A[j, k], A[i, k]


@kernel
def _orthogonal_row(Vt: Array, i: int) -> None:
    """Fill row i with a unit vector orthogonal to the rows above it, if there is one."""
    n = Vt.shape[1]
    best = -1.0
    start = 0
    for k in range(n):  # the axis that the rows above cover least
        left = 1.0
        for j in range(i):
            left -= Vt[j, k] * Vt[j, k]
        if left > best:
            best, start = left, k
    for k in range(n):
        Vt[i, k] = 0.0
    if i >= n:
        return
    Vt[i, start] = 1.0
    for _ in range(2):  # twice is enough (Kahan)
        for j in range(i):
            along = _dot_rows(Vt, i, j)
            for k in range(n):
                Vt[i, k] -= along * Vt[j, k]
        length = sqrt(_dot_rows(Vt, i, i))
        for k in range(n):
            Vt[i, k] /= length


@kernel
def svd(B: Array, Ut: Array, s: Array, Vt: Array) -> None:
    """Decompose B = U diag(s) V^T by one-sided Jacobi rotations.

    High relative accuracy in the small singular values (Demmel & Veselic 1992). The rows of `Vt`
    are orthonormal even where singular values are zero, as far as n allows: with fewer columns
    than rows the last ``rows - n`` rows of `Vt` and values of `s` are zero.

    Args:
        B: (r, n), kept.
        Ut: (r, r) out: row i is u_i.
        s: (r,) out: falling.
        Vt: (r, n) out: row i is v_i.
    """
    r = B.shape[0]
    for i in range(r):
        for j in range(r):
            Ut[i, j] = 1.0 if i == j else 0.0
        for k in range(B.shape[1]):
            Vt[i, k] = B[i, k]
    for _ in range(SWEEPS):
        if not _sweep(Vt, Ut):
            break
    for i in range(r):
        s[i] = sqrt(_dot_rows(Vt, i, i))
    _sort_falling(Ut, s, Vt)
    for i in range(r):
        if s[i] > r * EPSILON * s[0]:
            for k in range(B.shape[1]):
                Vt[i, k] /= s[i]
        else:
            s[i] = 0.0
            _orthogonal_row(Vt, i)


@kernel
def _sweep(W: Array, Ut: Array) -> bool:
    """Make every pair of rows of W orthogonal once; return whether any was not."""
    r = W.shape[0]
    turned = False
    largest = 0.0
    for i in range(r):
        largest = max(largest, _dot_rows(W, i, i))
    rounding = (r * EPSILON) ** 2 * largest  # a row below it is only rounding
    for i in range(r - 1):
        for j in range(i + 1, r):
            a, b, g = _dot_rows(W, i, i), _dot_rows(W, j, j), _dot_rows(W, i, j)
            if min(a, b) <= rounding or g * g <= 16.0 * EPSILON * EPSILON * a * b:
                continue
            turned = True
            zeta = (b - a) / (2.0 * g)
            t = 1.0 / (abs(zeta) + sqrt(1.0 + zeta * zeta))
            if zeta < 0.0:
                t = -t
            c = 1.0 / sqrt(1.0 + t * t)
            _rotate_rows(W, i, j, c, c * t)
            _rotate_rows(Ut, i, j, c, c * t)
    return turned


@kernel
def _sort_falling(Ut: Array, s: Array, Vt: Array) -> None:
    for i in range(s.shape[0] - 1):
        largest = i
        for j in range(i + 1, s.shape[0]):
            if s[j] > s[largest]:
                largest = j
        if largest != i:
            s[i], s[largest] = s[largest], s[i]
            _swap_rows(Ut, i, largest)
            _swap_rows(Vt, i, largest)


@force_inline
def norm(e: Array) -> float:
    """Return the length of e (r,)."""
    total = 0.0
    for i in range(e.shape[0]):
        total += e[i] * e[i]
    return sqrt(total)


@allocating
def singular_values(J: Array) -> Array:
    """Return the r singular values of J (r, n), falling."""
    r = J.shape[0]
    s = np.empty(r)
    svd(J, np.empty((r, r)), s, np.empty(J.shape))
    return s


@allocating
def scaled_columns(J: Array, c: Array) -> Array:
    """Return J diag(c), (r, n)."""
    B = J.copy()
    for j in range(c.shape[0]):
        for i in range(J.shape[0]):
            B[i, j] *= c[j]
    return B


@kernel
def least_singular_value(s: Array, n: int) -> float:
    """Return the least singular value of an (r, n) Jacobian; s: (r,), falling."""
    return s[min(s.shape[0], n) - 1]


@kernel
def manipulability(s: Array, n: int) -> float:
    """Return w, the product of the singular values of J (r, n): sqrt(det(J J^T)) for r <= n."""
    w = 1.0
    for i in range(min(s.shape[0], n)):
        w *= s[i]
    return w


@kernel
def squared_norm(J: Array) -> float:
    """Return the square of the Frobenius norm of J (r, n)."""
    total = 0.0
    for i in range(J.shape[0]):
        for j in range(J.shape[1]):
            total += J[i, j] * J[i, j]
    return total


@allocating
def dexterity(J: Array) -> float:
    """Return Yoshikawa's measure of manipulability of a matrix, or of its transpose.

    It is sqrt(det(J J^T)), with fewer columns than rows sqrt(det(J^T J)).
    """
    r, n = J.shape
    s = np.empty(r)
    svd(J, np.empty((r, r)), s, np.empty((r, n)))
    return manipulability(s, n)
