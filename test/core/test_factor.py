"""The symmetric factorisation beside NumPy's solver."""

import numpy as np
import pytest

from dls_ik.core.linalg import factor, solve_factored

PIVOT = 1e-6


def positive(k, seed, condition=100.0):
    Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(k, k)))[0]
    return (Q * np.geomspace(1.0, 1.0 / condition, k)) @ Q.T


@pytest.mark.parametrize("k", range(1, 7))
@pytest.mark.parametrize("seed", range(5))
def test_solves_like_numpy(k, seed):
    A, b = positive(k, seed), np.random.default_rng(seed).normal(size=k)
    work, x = np.full((6, 6), np.nan), np.full(6, np.nan)
    lower = np.tril_indices(k)
    work[lower], x[:k] = A[lower], b
    assert factor(work, k, PIVOT)
    solve_factored(work, k, x)
    np.testing.assert_allclose(x[:k], np.linalg.solve(A, b), rtol=1e-12, atol=1e-13)
    assert np.isnan(x[k:]).all()
    assert np.isnan(work[np.triu_indices(6, 1)]).all()


def test_factors_are_those_of_ldl():
    A = positive(6, 7)
    work = A.copy()
    assert factor(work, 6, PIVOT)
    L = np.tril(work, -1) + np.eye(6)
    np.testing.assert_allclose((L / np.diag(work)) @ L.T, A, atol=1e-14)


@pytest.mark.parametrize(
    "A",
    [
        np.zeros((6, 6)),
        np.ones((6, 6)),
        np.diag([1.0, 1.0, 0.0, 1.0, 1.0, 1.0]),
        np.diag([1.0, 1.0, 1.0, 1.0, 1.0, -1.0]),
        np.diag([1.0, 1.0, 1.0, 1.0, 1.0, 0.9e-6]),
        np.diag([1.0, 1.0, 1.0, 1.0, 1.0, PIVOT]),
        np.full((6, 6), np.nan),
        -np.eye(6),
    ],
    ids=["zero", "rank 1", "a zero", "indefinite", "too small", "at the bound", "nan", "negative"],
)
def test_refuses(A):
    assert not factor(A.copy(), 6, PIVOT)


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_the_least_pivot_is_relative(scale):
    A = scale * np.diag([1.0, 1.1e-6])
    assert factor(A.copy(), 2, PIVOT)
    assert not factor(A.copy(), 2, 2 * PIVOT)
