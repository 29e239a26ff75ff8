# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Linear least squares with strict priorities and bounds (a hierarchical quadratic program).

Level k asks for A_k x = b_k. A level is solved in the least-squares sense among all solutions of
the levels before it, and therefore does not change their residuals (Siciliano & Slotine 1991;
Kanoun, Lamiraux & Wieber 2011). All bounds low <= C x <= high hold on every level. Because a level
with bounds has a unique vector A_k x, the solutions of level k are x + Z y, with Z a basis of the
null space of A_1 ... A_k.

Every level is solved by a primal active-set method: the iterates satisfy the bounds, and the
residual of the level never grows. If the method is stopped early, its result satisfies all bounds
and keeps the levels above.
"""

from math import copysign, sqrt
from typing import NamedTuple

import numpy as np

from dls_ik.core.jit import allocating, kernel
from dls_ik.core.types import Array, Indices

ROW_RANK_TOLERANCE = 1e-10  # rows below this share of the largest row of their level count as zero
MAX_CHANGES = 200  # maximum number of changes of the active set in a level
MULTIPLIER_TOLERANCE = 1e-13  # relative size of a Lagrange multiplier that counts as zero
BLOCKING_TOLERANCE = 1e-13  # relative change of a bounded value that counts as no motion


class Bounds(NamedTuple):
    """Bounds low <= C x <= high on linear functions of the solution."""

    C: Array  # (c, n)
    low: Array  # (c,) -inf for none
    high: Array  # (c,) inf for none


@allocating
def factor_rows(B: Array, least: float, Q: Array, order: Indices) -> int:
    """Factor a matrix with row pivoting, B[order] = L Q^T, by Householder reflections.

    Args:
        B: (r, p) matrix; overwritten by the lower trapezoidal factor L, whose rows are in the
            order `order`.
        least: Rows whose part outside the span of the rows already chosen is not longer than this
            count as zero.
        Q: (p, p) orthogonal matrix, written. Its first columns, as many as the rank, span the row
            space of B; the other columns span the null space.
        order: (r,) row numbers, written.

    Returns:
        The rank of B.
    """
    r, p = B.shape
    v = np.empty(p)
    for i in range(r):
        order[i] = i
    for i in range(p):
        for j in range(p):
            Q[i, j] = 1.0 if i == j else 0.0
    for i in range(min(r, p)):
        best, longest = i, -1.0
        for a in range(i, r):
            size = 0.0
            for j in range(i, p):
                size += B[a, j] * B[a, j]
            if size > longest:
                best, longest = a, size
        length = sqrt(longest)
        if not length > least:
            return i
        order[i], order[best] = order[best], order[i]
        for j in range(p):
            B[i, j], B[best, j] = B[best, j], B[i, j]
        _reflect(B, Q, i, length, v)
    return min(r, p)


@kernel
def _reflect(B: Array, Q: Array, i: int, length: float, v: Array) -> None:
    """Reflect the columns from i on of B and Q, so that row i of B becomes zero right of column i.

    Args:
        B: (r, p) matrix, of which the rows from i on are changed.
        Q: (p, p) matrix, changed.
        i: Index of the row.
        length: Length of the part of row i from column i on.
        v: (p,) scratch.
    """
    r, p = B.shape
    end = -copysign(length, B[i, i])
    square = 0.0
    for j in range(i, p):
        v[j] = B[i, j]
    v[i] -= end
    for j in range(i, p):
        square += v[j] * v[j]
        B[i, j] = 0.0
    B[i, i] = end
    if square == 0.0:
        return
    for a in range(i + 1, r):
        _reflect_row(B[a], i, v, square)
    for a in range(p):
        _reflect_row(Q[a], i, v, square)


@kernel
def _reflect_row(row: Array, i: int, v: Array, square: float) -> None:
    """Reflect a row (p,) by the part of v (p,) from entry i on, whose squared length is given."""
    along = 0.0
    for j in range(i, v.shape[0]):
        along += row[j] * v[j]
    along *= 2.0 / square
    for j in range(i, v.shape[0]):
        row[j] -= along * v[j]


@kernel
def solve_lower(L: Array, rank: int, c: Array) -> None:
    """Solve min |L w - c| for the first `rank` columns of L (r, p), which are independent.

    Args:
        L: (r, p) lower trapezoidal matrix from :func:`factor_rows`; overwritten.
        rank: Number of columns.
        c: (r,) right side; the first `rank` entries are overwritten by w.
    """
    r = L.shape[0]
    # With r = rank, L is triangular. Otherwise, reflections from the last column to the first one
    # make the rows below `rank` zero, and keep the triangle above.
    for k in range(rank - 1, -1, -1):
        tail = 0.0
        for a in range(rank, r):
            tail += L[a, k] * L[a, k]
        if tail == 0.0:
            continue
        length = sqrt(L[k, k] * L[k, k] + tail)
        end = -copysign(length, L[k, k])
        first = L[k, k] - end
        square = first * first + tail
        for j in range(k):
            along = first * L[k, j]
            for a in range(rank, r):
                along += L[a, k] * L[a, j]
            along *= 2.0 / square
            L[k, j] -= along * first
            for a in range(rank, r):
                L[a, j] -= along * L[a, k]
        along = first * c[k]
        for a in range(rank, r):
            along += L[a, k] * c[a]
        along *= 2.0 / square
        c[k] -= along * first
        for a in range(rank, r):
            c[a] -= along * L[a, k]
        L[k, k] = end
    for i in range(rank):
        for j in range(i):
            c[i] -= L[i, j] * c[j]
        c[i] /= L[i, i]


@allocating
def product(A: Array, B: Array) -> Array:
    """Return the product A B by loops; the operator of Numba would need SciPy."""
    r, m = A.shape
    p = B.shape[1]
    out = np.zeros((r, p))
    for i in range(r):
        for k in range(m):
            value = A[i, k]
            if value != 0.0:
                for j in range(p):
                    out[i, j] += value * B[k, j]
    return out


@kernel
def longest_row(A: Array) -> float:
    """Return the length of the longest row of A."""
    longest = 0.0
    for i in range(A.shape[0]):
        size = 0.0
        for j in range(A.shape[1]):
            size += A[i, j] * A[i, j]
        longest = max(longest, size)
    return sqrt(longest)


@allocating
def solve_levels(A: Array, b: Array, ends: Indices, bounds: Bounds, x: Array) -> bool:
    """Solve levels of linear equations with strict priorities within bounds.

    Args:
        A: (m, n) rows of all levels.
        b: (m,) right sides.
        ends: (l,) index after the last row of each level.
        bounds: Bounds that hold on every level.
        x: (n,) start, which must satisfy the bounds; overwritten by the solution. Where the levels
            do not determine the solution, it stays close to the start.

    Returns:
        False if a level was stopped after `MAX_CHANGES` changes of its active set. The solution
        then satisfies the bounds and the levels before, but is not optimal.
    """
    n = x.shape[0]
    Z = np.zeros((n, n))
    for j in range(n):
        Z[j, j] = 1.0
    is_optimal, start = True, 0
    for end in ends:
        if Z.shape[1] == 0:
            break
        level = A[start:end]
        if end > start:
            G, least = product(level, Z), ROW_RANK_TOLERANCE * longest_row(level)
            if not solve_level(level, b[start:end], G, least, Z, bounds, x):
                is_optimal = False
            Q, order = np.empty((Z.shape[1], Z.shape[1])), np.empty(end - start, np.int64)
            rank = factor_rows(G, least, Q, order)
            Z = product(Z, Q[:, rank:])
        start = end
    return is_optimal


@allocating
def solve_level(
    A: Array,
    b: Array,
    G: Array,
    least: float,
    Z: Array,
    bounds: Bounds,
    x: Array,
) -> bool:
    """Minimise |A x - b| over x + Z y within the bounds, by a primal active-set method.

    Args:
        A: (r, n) rows of the level.
        b: (r,) right side.
        G: (r, p) product A Z.
        least: Length up to which a row counts as zero.
        Z: (n, p) orthonormal basis of the motions that the levels before leave free.
        bounds: Bounds on the solution.
        x: (n,) start within the bounds, overwritten by the solution.

    Returns:
        False if the solution is not optimal, because the active set changed too often.
    """
    (n, p), (C, low, high) = Z.shape, bounds
    CZ = product(C, Z)
    longest = longest_row(C)
    active = np.empty(p, np.int64)  # indices of active bounds, whose rows of CZ are independent
    side = np.empty(p)  # 1 for an active lower bound, -1 for an active upper bound
    count = 0
    R_Q, R_order = np.empty((p, p)), np.empty(p, np.int64)
    residual, gradient, dx = np.empty(b.shape[0]), np.empty(p), np.empty(n)
    for _ in range(MAX_CHANGES):
        # Find the motions that keep all active bounds.
        R = np.empty((count, p))
        for i in range(count):
            for j in range(p):
                R[i, j] = CZ[active[i], j]
        factor_rows(R, 0.0, R_Q, R_order)
        # Solve the level for these motions.
        for i in range(b.shape[0]):
            residual[i] = b[i]
            for j in range(n):
                residual[i] -= A[i, j] * x[j]
        _free_step(G, residual, least, R_Q, count, Z, dx)
        share, blocking, blocking_side = _reach(bounds, x, dx, longest)
        for j in range(n):
            x[j] += share * dx[j]
        if blocking >= 0:
            if count == p:
                return True  # no motion was left; the step is rounding
            active[count], side[count] = blocking, blocking_side
            count += 1
            x_bound = low[blocking] if blocking_side > 0.0 else high[blocking]
            _put_on_bound(C[blocking], x_bound, x)
            continue
        # Test the Lagrange multipliers of the active bounds.
        scale = 0.0
        for j in range(p):
            gradient[j] = 0.0
        for i in range(b.shape[0]):
            rest, size = -b[i], abs(b[i])
            for j in range(n):
                rest += A[i, j] * x[j]
                size += abs(A[i, j] * x[j])
            for j in range(p):
                gradient[j] += G[i, j] * rest
                scale = max(scale, abs(G[i, j]) * size)
        worst = _wrong_bound(R, R_Q, R_order, gradient, side, count, scale)
        if worst < 0:
            return True
        for i in range(worst, count - 1):
            active[i], side[i] = active[i + 1], side[i + 1]
        count -= 1
    return False


@kernel
def _put_on_bound(c: Array, bound: float, x: Array) -> None:
    """Remove the rounding error of a bounded value c . x that has just reached its bound.

    Only a bound on a single joint, whose row c (n,) has one entry, is corrected.
    """
    joint = -1
    for j in range(c.shape[0]):
        if c[j] != 0.0:
            if joint >= 0:
                return
            joint = j
    if joint >= 0:
        x[joint] = bound / c[joint]


@allocating
def _free_step(
    G: Array, residual: Array, least: float, R_Q: Array, count: int, Z: Array, dx: Array
) -> None:
    """Write the shortest step that minimises the residual and keeps the active bounds.

    Args:
        G: (r, p) rows of the level in the basis Z.
        residual: (r,) remaining right side.
        least: Length up to which a row counts as zero.
        R_Q: (p, p) orthogonal matrix; the columns from `count` on keep the active bounds.
        count: Number of active bounds.
        Z: (n, p) basis.
        dx: (n,) step, written.
    """
    n, p = Z.shape
    r = residual.shape[0]
    for j in range(n):
        dx[j] = 0.0
    q = p - count
    if q == 0:
        return
    Y = R_Q[:, count:]
    H, Q, order = product(G, Y), np.empty((q, q)), np.empty(r, np.int64)
    rank = factor_rows(H, least, Q, order)
    c = np.empty(r)
    for i in range(r):
        c[i] = residual[order[i]]
    solve_lower(H, rank, c)
    for i in range(p):
        value = 0.0
        for j in range(q):
            along = 0.0
            for k in range(rank):
                along += Q[j, k] * c[k]
            value += Y[i, j] * along
        for k in range(n):
            dx[k] += Z[k, i] * value


@kernel
def _reach(bounds: Bounds, x: Array, dx: Array, longest: float) -> tuple[float, int, float]:
    """Return the share of a step that satisfies all bounds, and the bound that ends the step.

    Args:
        bounds: Bounds on the solution.
        x: (n,) start of the step.
        dx: (n,) step.
        longest: Length of the longest row of C.

    Returns:
        The share, 0 to 1; the index of the bound, -1 for none; and its side, 1 for a lower bound
        and -1 for an upper bound.
    """
    (C, low, high), n, size = bounds, x.shape[0], 0.0
    for j in range(n):
        size = max(size, abs(dx[j]))
    still = BLOCKING_TOLERANCE * longest * size
    share, blocking, side = 1.0, -1, 0.0
    for i in range(C.shape[0]):
        change, value = 0.0, 0.0
        for j in range(n):
            change += C[i, j] * dx[j]
            value += C[i, j] * x[j]
        if change < -still and value + change < low[i]:
            possible = max(0.0, (low[i] - value) / change)
            if possible < share or blocking < 0:
                share, blocking, side = possible, i, 1.0
        elif change > still and value + change > high[i]:
            possible = max(0.0, (high[i] - value) / change)
            if possible < share or blocking < 0:
                share, blocking, side = possible, i, -1.0
    return min(share, 1.0), blocking, side


@allocating
def _wrong_bound(
    R: Array,
    R_Q: Array,
    R_order: Indices,
    gradient: Array,
    side: Array,
    count: int,
    scale: float,
) -> int:
    """Return the position in the active set of a bound without which a step decreases the residual.

    The result is -1 if no bound prevents such a step.

    Args:
        R: (count, p) lower triangular factor of the active rows, see :func:`factor_rows`.
        R_Q: (p, p) orthogonal factor.
        R_order: (count or more,) order of the active rows in R.
        gradient: (p,) gradient of half the squared residual.
        side: (count or more,) 1 for a lower bound, -1 for an upper bound.
        count: Number of active bounds.
        scale: Largest size of a term of the gradient before terms cancel, by which rounding is
            judged.
    """
    multiplier = np.empty(count)
    for i in range(count - 1, -1, -1):
        value = 0.0
        for j in range(gradient.shape[0]):
            value += R_Q[j, i] * gradient[j]
        for k in range(i + 1, count):
            value -= R[k, i] * multiplier[k]
        multiplier[i] = value / R[i, i]
    worst, least = -1, -MULTIPLIER_TOLERANCE * scale
    for i in range(count):
        signed = side[R_order[i]] * multiplier[i]
        if signed < least:
            worst, least = R_order[i], signed
    return worst
