# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tests of the symmetric factorisation and the singular value decomposition against NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from kernels import svd

from dls_ik.core.linalg import _sweep, decompose, factor, solve_factored
from dls_ik.core.types import Decomposition

PIVOT = 1e-6


def positive(k, seed, condition=100.0):
    Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(k, k)))[0]
    return (Q * np.geomspace(1.0, 1.0 / condition, k)) @ Q.T


@pytest.mark.parametrize("k", range(1, 7))
@pytest.mark.parametrize("seed", range(2))
def test_factored_solve_matches_numpy(k, seed):
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
def test_factor_refuses_matrices_with_small_pivots(A):
    assert not factor(A.copy(), 6, PIVOT)


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_the_least_pivot_is_relative(scale):
    A = scale * np.diag([1.0, 1.1e-6])
    assert factor(A.copy(), 2, PIVOT)
    assert not factor(A.copy(), 2, 2 * PIVOT)


RNG = np.random.default_rng(11)
ORTHOGONAL = np.linalg.qr(RNG.normal(size=(8, 8)))[0]
GRADED = 10.0 ** -np.arange(0.0, 12.0, 2.0)  # (6,)

MATRICES = {
    "one": np.array([[-2.0]]),
    "wide": RNG.normal(size=(6, 9)),
    "square": RNG.normal(size=(6, 6)),
    "tall": RNG.normal(size=(6, 4)),
    "column": RNG.normal(size=(6, 1)),
    "row": RNG.normal(size=(1, 5)),
    "zero": np.zeros((6, 7)),
    "zero tall": np.zeros((6, 2)),
    "rank 2": RNG.normal(size=(6, 2)) @ RNG.normal(size=(2, 7)),
    "rank 1 tall": np.outer(np.arange(6.0), [1.0, 2.0, 3.0]),
    "twin columns": RNG.normal(size=(6, 4))[:, [0, 1, 1, 2, 3, 0, 2]],
    "twin rows": RNG.normal(size=(3, 7))[[0, 1, 1, 2, 0, 2]],
    "zero rows": np.diag([1.0, 0.0, 3.0, 0.0, 0.0, 2.0]),
    "identity": np.eye(6),
    "equal values": 3.0 * ORTHOGONAL[:6],
    "nearly equal values": np.diag(1.0 + 1e-15 * np.arange(6.0)) @ ORTHOGONAL[:6],
    "tiny": 1e-60 * RNG.normal(size=(6, 7)),
    "huge": 1e60 * RNG.normal(size=(6, 7)),
    "graded": GRADED[:, None] * ORTHOGONAL[:6],
    "graded upwards": GRADED[::-1, None] * ORTHOGONAL[:6],
    "graded columns": RNG.normal(size=(6, 6)) * GRADED,
}


def check(B):
    kept = B.copy()
    Ut, s, Vt = svd(B)
    r, n = B.shape
    k = min(r, n)
    np.testing.assert_array_equal(B, kept)
    assert (s >= 0.0).all()
    assert (np.diff(s) <= 0.0).all()
    np.testing.assert_allclose(s[:k], np.linalg.svd(B)[1], rtol=0.0, atol=2e-14 * s[0])
    np.testing.assert_allclose(Ut @ Ut.T, np.eye(r), atol=1e-14)
    np.testing.assert_allclose(Vt[:k] @ Vt[:k].T, np.eye(k), atol=1e-14)
    np.testing.assert_allclose((Ut.T * s) @ Vt, B, rtol=0.0, atol=2e-14 * s[0])
    assert not s[k:].any()
    assert not Vt[k:].any()


@pytest.mark.parametrize("name", MATRICES)
def test_svd_of_special_matrices_matches_numpy(name):
    check(MATRICES[name])


ENTRIES = st.floats(-1e3, 1e3).map(lambda x: x if abs(x) > 1e-50 else 0.0)
SHAPES = st.tuples(st.integers(1, 6), st.integers(1, 9))


@settings(max_examples=100)
@given(arrays(np.float64, SHAPES, elements=ENTRIES))
def test_svd_of_random_matrices_matches_numpy(B):
    check(B)


@pytest.mark.parametrize("shape", [(6, 7), (6, 5), (3, 7)])
def test_equal_matrices_are_decomposed_once(shape):
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(2, *shape))
    last = Decomposition(np.full((6, 7), np.nan), np.empty((6, 6)), np.empty(6), np.empty((6, 7)))
    for each in (A, A, B, A):
        found = decompose(each, last)
        np.testing.assert_allclose(found.Ut.T @ (found.s[:, None] * found.Vt), each, atol=1e-14)
    if shape == last.B.shape:
        last.s[0] = 5.0
        assert decompose(A, last).s[0] == 5.0
        assert decompose(B, last).s[0] != 5.0


@pytest.mark.parametrize("order", [slice(None), slice(None, None, -1), [3, 0, 5, 1, 4, 2]])
def test_small_values_of_graded_rows_are_right_in_every_digit(order):
    _, s, Vt = svd(np.ascontiguousarray((GRADED[:, None] * ORTHOGONAL[:6])[order]))
    np.testing.assert_allclose(s, GRADED, rtol=1e-14)
    np.testing.assert_allclose(np.abs(np.sum(Vt * ORTHOGONAL[:6], axis=1)), 1.0, rtol=1e-14)


@pytest.mark.parametrize(("name", "rank"), [("zero", 0), ("rank 2", 2), ("twin columns", 4),
                                            ("twin rows", 3), ("rank 1 tall", 1)])  # fmt: skip
def test_values_that_are_only_rounding_are_zero(name, rank):
    _, s, _ = svd(MATRICES[name])
    assert (s[:rank] > 0.1).all()
    assert (s[rank:] == 0.0).all()


def test_one_rotation_makes_two_rows_orthogonal():
    for seed in range(20):
        W, Ut = np.random.default_rng(seed).normal(size=(2, 5)), np.eye(2)
        before = W.copy()
        assert _sweep(W, Ut)
        assert abs(W[0] @ W[1]) < 1e-14
        np.testing.assert_allclose(Ut @ before, W, atol=1e-14)
