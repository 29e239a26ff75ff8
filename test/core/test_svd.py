"""The singular value decomposition beside NumPy's, and where NumPy's own is too coarse."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from kernels import svd

from dls_ik.core.linalg import _sweep

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
def test_decomposition(name):
    check(MATRICES[name])


ENTRIES = st.floats(-1e3, 1e3).map(lambda x: x if abs(x) > 1e-50 else 0.0)
SHAPES = st.tuples(st.integers(1, 6), st.integers(1, 9))


@settings(deadline=None, max_examples=200, derandomize=True)
@given(arrays(np.float64, SHAPES, elements=ENTRIES))
def test_decomposition_of_anything(B):
    check(B)


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


@pytest.mark.parametrize("seed", range(20))
def test_one_rotation_makes_two_rows_orthogonal(seed):
    W, Ut = np.random.default_rng(seed).normal(size=(2, 5)), np.eye(2)
    before = W.copy()
    assert _sweep(W, Ut)
    assert abs(W[0] @ W[1]) < 1e-14
    np.testing.assert_allclose(Ut @ before, W, atol=1e-14)
