# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Linear algebra of small matrices: symmetric systems, singular values, and measures.

The linear algebra functions of Numba need SciPy and are slower for such small matrices.
"""

from math import sqrt

import numpy as np

from dls_ik.core.jit import allocating, force_inline, kernel
from dls_ik.core.types import Array, Decomposition

MACHINE_EPSILON = 2.220446049250313e-16
MAX_JACOBI_SWEEPS = 30  # usually, four to seven sweeps suffice


@force_inline
def copy_matrix(source: Array, target: Array) -> None:
    """Copy `source` (r, n) to `target` (r, n)."""
    for i in range(target.shape[0]):
        for j in range(target.shape[1]):
            target[i, j] = source[i, j]


@force_inline
def copy(source: Array, target: Array) -> None:
    """Copy `source` (n,) to `target` (n,).

    A slice assignment would compile to ten times as much machine code.
    """
    for i in range(target.shape[0]):
        target[i] = source[i]


@allocating
def times(A: Array, x: Array) -> Array:
    """Return the product A x (r,) of A (r, n) and x (n,), without SciPy, which Numba would need."""
    y = np.zeros(A.shape[0])
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            y[i] += A[i, j] * x[j]
    return y


@force_inline
def factor(A: Array, k: int, least_pivot: float) -> bool:
    """Factor a symmetric positive definite matrix in place: A = L D L^T.

    Only the lower triangle is read and written. The factor L replaces the entries below the
    diagonal, and 1 / D those on the diagonal. This right-looking loop without square roots takes a
    third of the time of the usual Cholesky loop.

    Args:
        A: Matrix, of which the first k rows and columns are factored.
        k: Size of the factored block.
        least_pivot: Minimum pivot relative to the largest diagonal entry.

    Returns:
        False if a pivot is at most the minimum; the content of the block is then invalid.
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
    """Solve a linear system with a matrix factored by :func:`factor`.

    Args:
        A: Factors in the first k rows and columns.
        k: Size of the system.
        x: (k,) right side, overwritten by the solution.
    """
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
    """Rotate rows i and j of A by the angle with cosine c and sine s, in place."""
    for k in range(A.shape[1]):
        x, y = A[i, k], A[j, k]
        A[i, k], A[j, k] = c * x - s * y, s * x + c * y


@force_inline
def _dot_rows(A: Array, i: int, j: int) -> float:
    """Return the dot product of rows i and j of A."""
    total = 0.0
    for k in range(A.shape[1]):
        total += A[i, k] * A[j, k]
    return total


@kernel
def _swap_rows(A: Array, i: int, j: int) -> None:
    """Exchange rows i and j of A."""
    for k in range(A.shape[1]):
        A[i, k], A[j, k] = A[j, k], A[i, k]


@kernel
def _orthogonal_row(Vt: Array, i: int) -> None:
    """Write a unit vector orthogonal to the first i rows of Vt (r, n) to row i.

    If i is at least n, no such vector exists, and row i is set to zero.
    """
    n = Vt.shape[1]
    best = -1.0
    start = 0
    for k in range(n):  # find the axis with the largest component orthogonal to the rows above
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
    for _ in range(2):  # two passes suffice (Kahan)
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

    The small singular values have a high relative accuracy (Demmel & Veselic 1992). The rows of
    `Vt` are orthonormal even for singular values of zero. If n < r, the last r - n rows of `Vt` and
    entries of `s` are zero.

    Args:
        B: (r, n) matrix, unchanged.
        Ut: (r, r) written: row i is u_i.
        s: (r,) singular values in descending order, written.
        Vt: (r, n) written: row i is v_i.
    """
    r = B.shape[0]
    for i in range(r):
        for j in range(r):
            Ut[i, j] = 1.0 if i == j else 0.0
        for k in range(B.shape[1]):
            Vt[i, k] = B[i, k]
    for _ in range(MAX_JACOBI_SWEEPS):
        if not _sweep(Vt, Ut):
            break
    for i in range(r):
        s[i] = sqrt(_dot_rows(Vt, i, i))
    _sort_falling(Ut, s, Vt)
    for i in range(r):
        if s[i] > r * MACHINE_EPSILON * s[0]:
            for k in range(B.shape[1]):
                Vt[i, k] /= s[i]
        else:
            s[i] = 0.0
            _orthogonal_row(Vt, i)


@allocating
def decompose(B: Array, last: Decomposition) -> Decomposition:
    """Return the singular value decomposition of B, and reuse the last decomposition if possible.

    If B has the shape of ``last.B``, the arrays of `last` are returned; they are computed again
    unless B equals ``last.B``. If B has another shape, the result has new arrays, of which ``B`` is
    the given array. Callers must not change the result.

    Args:
        B: (r, n) matrix.
        last: Result of an earlier call, read and written.
    """
    if B.shape[0] != last.B.shape[0] or B.shape[1] != last.B.shape[1]:
        r = B.shape[0]
        last = Decomposition(B, np.empty((r, r)), np.empty(r), np.empty(B.shape))
        svd(B, last.Ut, last.s, last.Vt)
        return last
    update_svd(B, last)
    return last


@kernel
def update_svd(B: Array, last: Decomposition) -> None:
    """Replace a decomposition by that of B, unless B equals ``last.B``.

    Args:
        B: (r, n) matrix, of the same shape as ``last.B``.
        last: Result of an earlier decomposition, read and written.
    """
    is_same = True
    for i in range(B.shape[0]):
        for j in range(B.shape[1]):
            is_same = is_same and B[i, j] == last.B[i, j]
            last.B[i, j] = B[i, j]
    if not is_same:
        svd(B, last.Ut, last.s, last.Vt)


@kernel
def _sweep(W: Array, Ut: Array) -> bool:
    """Rotate each pair of rows of W once, so that the two rows become orthogonal.

    Args:
        W: (r, n) matrix, read and written.
        Ut: (r, r) matrix to which the same rotations are applied.

    Returns:
        Whether any pair had to be rotated.
    """
    r = W.shape[0]
    turned = False
    largest = 0.0
    for i in range(r):
        largest = max(largest, _dot_rows(W, i, i))
    rounding = (
        r * MACHINE_EPSILON
    ) ** 2 * largest  # rows with a smaller squared norm are rounding errors
    # The pairs (i, j) with the same i + j modulo r have no row in common, so that the processor
    # computes several of their rotations at the same time.
    for total in range(r):
        for i in range(r):
            j = total - i if total >= i else total - i + r
            if j <= i:
                continue
            a, b, g = _dot_rows(W, i, i), _dot_rows(W, j, j), _dot_rows(W, i, j)
            if min(a, b) <= rounding or g * g <= 16.0 * MACHINE_EPSILON * MACHINE_EPSILON * a * b:
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
    """Sort the singular values s, and with them the rows of Ut and Vt, in descending order."""
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
    """Return the 2-norm of e (r,)."""
    total = 0.0
    for i in range(e.shape[0]):
        total += e[i] * e[i]
    return sqrt(total)


@allocating
def singular_values(J: Array) -> Array:
    """Return the singular values of J (r, n) in descending order, shape (r,); zeros if n < r."""
    r = J.shape[0]
    s = np.empty(r)
    svd(J, np.empty((r, r)), s, np.empty(J.shape))
    return s


@force_inline
def scale_columns(J: Array, c: Array, B: Array) -> None:
    """Write the matrix J diag(c) to B (r, n): each column j of J (r, n) is multiplied by c[j]."""
    for i in range(J.shape[0]):
        for j in range(c.shape[0]):
            B[i, j] = J[i, j] * c[j]


@kernel
def least_singular_value(s: Array, n: int) -> float:
    """Return the smallest of the min(r, n) singular values of a matrix with n columns.

    Args:
        s: (r,) singular values in descending order, padded by zeros if n < r.
        n: Number of columns.
    """
    return s[min(s.shape[0], n) - 1]


@kernel
def manipulability(s: Array, n: int) -> float:
    """Return the manipulability, the product of the min(r, n) singular values of a Jacobian.

    It equals sqrt(det(J J^T)) for r <= n (Yoshikawa 1985).

    Args:
        s: (r,) singular values in descending order, padded by zeros if n < r.
        n: Number of columns of the Jacobian.
    """
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
    """Return the manipulability of J (r, n): sqrt(det(J J^T)) if r <= n, else sqrt(det(J^T J)).

    The measure is that of Yoshikawa 1985.
    """
    r, n = J.shape
    s = np.empty(r)
    svd(J, np.empty((r, r)), s, np.empty((r, n)))
    return manipulability(s, n)
