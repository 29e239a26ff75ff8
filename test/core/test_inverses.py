# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tests of the continuous inverse against the sum of 2^n weighted pseudoinverses."""

import numpy as np
import pytest
from kernels import continuous_inverse
from oracle_ik import continuous_inverse as slow_inverse

from dls_ik.core.inverses import MAX_BRANCHING


def drawn(seed, n):
    """Return a Jacobian, and activations that are exactly 0, exactly 1, or in between."""
    rng = np.random.default_rng([seed, n])
    h = np.where(rng.random(n) < 0.5, rng.integers(0, 2, n).astype(float), rng.random(n))
    return rng.normal(size=(6, n)), h


@pytest.mark.parametrize("n", range(1, 8))
def test_continuous_inverse_equals_the_sum_over_the_power_set(n):
    for seed in range(8):
        J, h = drawn(seed, n)
        expected = slow_inverse(J, h, np.linalg.pinv)
        scale = max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(continuous_inverse(J, h), expected, atol=1e-10 * scale)


@pytest.mark.parametrize("n", [3, 6, 7])
@pytest.mark.parametrize("lambda2", [1e-4, 0.1])
def test_damped_continuous_inverse_equals_the_sum_over_the_power_set(n, lambda2):
    J, h = drawn(2, n)
    expected = slow_inverse(J, h, lambda B: B.T @ np.linalg.inv(B @ B.T + lambda2 * np.eye(6)))
    np.testing.assert_allclose(continuous_inverse(J, h, lambda2), expected, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("n", [4, 7])
def test_continuous_inverse_is_correct_for_singular_jacobians(n):
    rng = np.random.default_rng(n)
    J = rng.normal(size=(6, 2)) @ rng.normal(size=(2, n))
    J[:, 0] = 0.0
    h = np.where(np.arange(n) % 2 == 0, 0.0, 0.4)
    expected = slow_inverse(J, h, lambda B: np.linalg.pinv(B, rcond=1e-12))
    np.testing.assert_allclose(continuous_inverse(J, h), expected, atol=1e-9)


@pytest.mark.parametrize("n", [4, 6, 7])
@pytest.mark.parametrize("least", [1e-2, 1e-5, 1e-8])
def test_continuous_inverse_is_accurate_up_to_the_condition_number(n, least):
    """Check the accuracy; normal equations would square the condition number."""
    rng = np.random.default_rng(n)
    k = min(6, n)
    U, V = (np.linalg.qr(rng.normal(size=(size, size)))[0][:, :k] for size in (6, n))
    s = np.append(np.linspace(1.0, 0.5, k - 1), least)
    expected = (V / s) @ U.T
    ours = continuous_inverse((U * s) @ V.T, np.zeros(n))
    np.testing.assert_allclose(ours, expected, atol=max(1e-10, 1e-16 / least) / least)


@pytest.mark.parametrize("n", [1, 5, 7, 9])
def test_all_free_is_the_pseudoinverse_and_all_held_is_nothing(n):
    J, _ = drawn(3, n)
    np.testing.assert_allclose(continuous_inverse(J, np.zeros(n)), np.linalg.pinv(J), atol=1e-11)
    np.testing.assert_array_equal(continuous_inverse(J, np.ones(n)), np.zeros((n, 6)))


def test_excess_partial_activations_are_rounded_to_zero_or_one():
    n = MAX_BRANCHING + 3
    J = np.random.default_rng(6).normal(size=(6, n))
    h = np.linspace(0.3, 0.6, n)
    h[[2, 5, 8]] = 0.99, 0.02, 0.97
    rounded = h.copy()
    rounded[[2, 5, 8]] = 1.0, 0.0, 1.0
    np.testing.assert_array_equal(continuous_inverse(J, h), continuous_inverse(J, rounded))


def test_ten_partial_activations_are_not_rounded():
    rng = np.random.default_rng(7)
    J, h = rng.normal(size=(6, 11)), rng.uniform(0.1, 0.9, 11)
    h[4] = 1.0
    expected = slow_inverse(J, h, np.linalg.pinv)
    np.testing.assert_allclose(continuous_inverse(J, h), expected, atol=1e-9)
