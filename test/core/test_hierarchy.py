# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Least squares with strict priorities and bounds, against the exact QP solver daqp."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dls_ik.core.hierarchy import Bounds, factor_rows, solve_levels

daqp = pytest.importorskip("daqp", reason="the reference solver")


def random_levels(rng, n):
    """Two or three levels; some rows depend on others."""
    sizes = rng.integers(1, 6, size=rng.integers(2, 4))
    A, b = rng.normal(size=(sizes.sum(), n)), rng.normal(size=sizes.sum())
    if rng.random() < 0.3:
        A[-1] = A[0] - A[sizes[0]]
    if rng.random() < 0.3:
        b *= 0.1
    return A, b, np.cumsum(sizes)


def random_bounds(rng, n):
    """Bounds on all joints, some of which are fixed, and on two other directions."""
    C = np.vstack([np.eye(n), rng.normal(size=(2, n))])
    low, high = -rng.uniform(0.0, 0.5, n + 2), rng.uniform(0.0, 0.5, n + 2)
    low[rng.integers(n)] = high[rng.integers(n)] = 0.0
    high[-1] = np.inf
    return C, low, high


def exact_residuals(A, b, ends, C, low, high):
    """Norms of the residuals of all levels; those below a level that daqp cannot solve are missing.

    Every level is solved in a basis of the null space of the levels above.
    """
    x, Z, start, norms = np.zeros(A.shape[1]), np.eye(A.shape[1]), 0, []
    for end in ends:
        G, left = A[start:end] @ Z, b[start:end] - A[start:end] @ x
        if Z.shape[1]:
            H = G.T @ G + 1e-11 * np.eye(Z.shape[1])
            room = np.minimum(high - C @ x, 1e9), low - C @ x
            y, _, ended, _ = daqp.solve(
                H, -G.T @ left, np.ascontiguousarray(C @ Z), *room, np.zeros(len(C), np.int32),
                primal_tol=1e-11, dual_tol=1e-11,
            )  # fmt: skip
            if ended <= 0:
                return norms
            x = x + Z @ y
            _, s, Vt = np.linalg.svd(G)
            Z = Z @ Vt[(s > 1e-9).sum() :].T
        norms.append(np.linalg.norm(A[start:end] @ x - b[start:end]))
        start = end
    return norms


def residuals(A, b, ends, x):
    """Norms of the residuals of all levels."""
    return [np.linalg.norm(part) for part in np.split(A @ x - b, ends[:-1])]


@pytest.mark.parametrize("n", [3, 7, 14])
def test_levels_have_the_residuals_of_an_exact_solver(n):
    rng, compared = np.random.default_rng(n), 0
    for _ in range(100):
        (A, b, ends), (C, low, high) = random_levels(rng, n), random_bounds(rng, n)
        x = np.zeros(n)
        assert solve_levels(A, b, ends, Bounds(C, low, high), x)
        assert (C @ x >= low - 1e-12).all()
        assert (C @ x <= high + 1e-12).all()
        exact = exact_residuals(A, b, ends, C, low, high)
        compared += len(exact)
        np.testing.assert_allclose(residuals(A, b, ends, x)[: len(exact)], exact, atol=1e-7)
    assert compared > 150


def test_lower_levels_never_change_the_levels_above():
    rng = np.random.default_rng(0)
    for _ in range(300):
        (A, b, ends), bounds = random_levels(rng, 7), random_bounds(rng, 7)
        x, alone = np.zeros(7), np.zeros(7)
        solve_levels(A, b, ends, Bounds(*bounds), x)
        first = ends[0]
        solve_levels(A[:first], b[:first], ends[:1], Bounds(*bounds), alone)
        np.testing.assert_allclose(A[:first] @ x, A[:first] @ alone, atol=1e-9)


def test_undetermined_motion_stays_at_the_start():
    A, b, ends = np.eye(3)[:1], np.array([0.5]), np.array([1])
    x = np.array([0.0, 0.2, -0.1])
    assert solve_levels(A, b, ends, Bounds(np.eye(3), np.full(3, -1.0), np.full(3, 1.0)), x)
    np.testing.assert_allclose(x, [0.5, 0.2, -0.1], atol=1e-15)


def test_a_bound_that_stops_a_level_is_left_for_a_better_place():
    # From the corner of two bounds, the target is reached along the first bound only.
    A, b = np.array([[1.0, 1.0], [1.0, -1.0]]), np.array([1.0, 1.0])
    x = np.zeros(2)
    assert solve_levels(A, b, np.array([2]), Bounds(np.eye(2), np.zeros(2), np.full(2, 2.0)), x)
    np.testing.assert_allclose(x, [1.0, 0.0], atol=1e-12)


@settings(max_examples=50)
@given(st.integers(0, 2**32 - 1))
def test_factors_reproduce_the_matrix_and_its_rank(seed):
    rng = np.random.default_rng(seed)
    r, p = rng.integers(1, 9, size=2)
    rank = rng.integers(0, min(r, p) + 1)
    B = rng.normal(size=(r, rank)) @ rng.normal(size=(rank, p))
    L, Q, order = B.copy(), np.empty((p, p)), np.empty(r, np.int64)
    assert factor_rows(L, 1e-9, Q, order) == rank
    np.testing.assert_allclose(Q.T @ Q, np.eye(p), atol=1e-13)
    np.testing.assert_allclose((L @ Q.T)[:, :], B[order], atol=1e-11)
    np.testing.assert_allclose(B @ Q[:, rank:], 0.0, atol=1e-11)
