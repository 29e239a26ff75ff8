"""The damped normal equations written out, beside NumPy's solution of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dls_ik.core.fast import step as fast
from dls_ik.core.fast.step import apply_transposed, solve_few
from dls_ik.core.jit import kernel


@kernel
def write_normal(J, h, e, lambda2, y):
    return fast.solve_normal(J, h, e, lambda2, y)


@kernel
def write_transposed(J, h, y, dq):
    apply_transposed(J, h, y, dq)


def solve_normal(J, h, e, lambda2):
    """Whether there is a solution, and y (6,)."""
    y = np.full(6, np.nan)
    return write_normal(np.ascontiguousarray(J.T), h, e, lambda2, y), y


def step_of_few(J, h, e, lambda2):
    """dq (n,), NaN where a joint is held."""
    dq = np.full(J.shape[1], np.nan)
    solve_few(np.ascontiguousarray(J.T), h, e.copy(), lambda2, dq)
    return dq


def drawn(seed, n, held=0):
    """A Jacobian (6, n), which columns are held, and an error (6,)."""
    rng = np.random.default_rng(seed)
    h = np.zeros(n)
    h[rng.permutation(n)[:held]] = 1.0
    return rng.normal(size=(6, n)), h, rng.normal(size=6)


def damped(J, lambda2, e):
    """J^T (J J^T + lambda^2 I)^-1 e, by singular values; undamped, those of zero are left out."""
    if J.shape[1] == 0:
        return np.empty(0)
    U, s, Vt = np.linalg.svd(J, full_matrices=False)
    kept = s > 1e-9 * s[0]
    filtered = np.zeros_like(s)
    filtered[kept] = s[kept] / (s[kept] ** 2 + lambda2)
    return Vt.T @ (filtered * (U.T @ e))


SIZES, SEEDS = st.integers(6, 14), st.integers(0, 10**6)
DAMPING = st.sampled_from([0.0, 1e-12, 1e-6, 1e-2, 1.0, 1e3])
easy = settings(deadline=None, max_examples=200)


@easy
@given(SEEDS, SIZES, DAMPING)
def test_solution_is_numpys(seed, n, lambda2):
    J, h, e = drawn(seed, n)
    A = J @ J.T + lambda2 * np.eye(6)
    solved, y = solve_normal(J, h, e, lambda2)
    if solved:
        bound = 1e-13 * np.linalg.cond(A) * np.linalg.norm(y)
        np.testing.assert_allclose(y, np.linalg.solve(A, e), rtol=0, atol=bound)
    else:
        assert np.linalg.cond(A) > 1e4


@easy
@given(SEEDS, SIZES, st.integers(0, 4))
def test_held_columns_are_left_out(seed, n, held):
    J, h, e = drawn(seed, n, held)
    J[:, h != 0.0] = np.nan  # not even looked at
    solved, y = solve_normal(J, h, e, 1e-2)
    assert solved
    free = J[:, h == 0.0]
    expected = np.linalg.solve(free @ free.T + 1e-2 * np.eye(6), e)
    np.testing.assert_allclose(y, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("row", range(6))
@pytest.mark.parametrize("size", [0.0, 1e-12, np.nan])
def test_a_pivot_that_vanishes_is_told(row, size):
    for seed in range(20):
        J, h, e = drawn(seed, 7)
        J[row] = size * J[row]
        assert not solve_normal(J, h, e, 0.0)[0]


@pytest.mark.parametrize("free", range(6))
def test_fewer_columns_than_rows_have_no_solution_without_damping(free):
    for seed in range(20):
        J, h, e = drawn(seed, 7, held=7 - free)
        assert not solve_normal(J, h, e, 0.0)[0]


@pytest.mark.parametrize("scale", [1e-100, 1e-6, 1e6, 1e100])
def test_units_make_no_difference(scale):
    for seed in range(20):
        J, h, e = drawn(seed, 7)
        plain = solve_normal(J, h, e, 1e-2)
        scaled = solve_normal(scale * J, h, e, 1e-2 * scale**2)
        assert plain[0]
        assert scaled[0]
        np.testing.assert_allclose(scaled[1] * scale**2, plain[1], rtol=1e-9)


def test_given_arrays_stay_as_they_are():
    J, h, e = drawn(0, 7, held=1)
    kept = J.copy(), h.copy(), e.copy()
    solve_normal(J, h, e, 1e-2)
    step_of_few(J, h, e, 1e-2)
    for array, before in zip((J, h, e), kept, strict=True):
        np.testing.assert_array_equal(array, before)


@easy
@given(SEEDS, st.integers(1, 12), st.integers(0, 12), DAMPING)
def test_few_free_columns_step_by_singular_values(seed, n, held, lambda2):
    J, h, e = drawn(seed, n, min(held, n))
    free = h == 0.0
    dq = step_of_few(J, h, e, lambda2)
    assert np.isnan(dq[~free]).all()
    expected = damped(J[:, free], lambda2, e)
    np.testing.assert_allclose(dq[free], expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("lambda2", [0.0, 1e-4])
def test_singular_columns_step_by_singular_values(lambda2):
    for seed in range(30):
        J, h, e = drawn(seed, 7)
        J[:, 3:] = J[:, :3] @ np.random.default_rng(seed).normal(size=(3, 4))
        dq = step_of_few(J, h, e, lambda2)
        np.testing.assert_allclose(dq, damped(J, lambda2, e), rtol=1e-6, atol=1e-6)


def test_both_ways_are_one_step():
    for seed in range(30):
        J, h, e = drawn(seed, 8, held=1)
        solved, y = solve_normal(J, h, e, 1e-3)
        assert solved
        dq = np.full(8, np.nan)
        write_transposed(np.ascontiguousarray(J.T), h, y, dq)
        np.testing.assert_allclose(dq, step_of_few(J, h, e, 1e-3), rtol=1e-8, atol=1e-10)
