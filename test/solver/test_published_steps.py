# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Published steps: full weight matrices and estimates of the smallest singular values."""

import numpy as np
import pytest

from dls_ik import IkSolver, RobotModel
from dls_ik.errors import MethodError
from dls_ik.solver.plugins import MEMORY, StepState, register_method
from dls_ik.solver.published_steps import (
    running_filter,
    singularity_robust,
    updated_singular_vector,
    weighted_damped,
)
from dls_ik.solver.stepper import Stepper


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def random_spd_matrix(rng, n):
    A = rng.normal(size=(n, n))
    return A @ A.T + 0.1 * np.eye(n)


def state(n, memory=None, iteration=0):
    limits = np.full(n, np.inf)
    memory = np.zeros(MEMORY) if memory is None else memory
    return StepState(np.zeros(n), -limits, limits, iteration, memory)


@pytest.mark.parametrize(("r", "n"), [(2, 3), (6, 7), (6, 5), (3, 3)])
def test_full_weights_solve_the_normal_equations(rng, r, n):
    W1, W2 = random_spd_matrix(rng, r), random_spd_matrix(rng, n)
    for J in (rng.normal(size=(r, n)), np.outer(np.ones(r), np.ones(n))):
        e = rng.normal(size=r)
        expected = np.linalg.solve(J.T @ W1 @ J + W2, J.T @ W1 @ e)
        np.testing.assert_allclose(weighted_damped(W1, W2)(J, e, state(n)), expected, atol=1e-9)


def test_identity_weights_are_damped_least_squares(rng):
    robot = RobotModel.wam()
    stepper = Stepper(robot, "jd", rng.uniform(-1.0, 1.0, 7), lambda_=0.3)
    J, e = stepper.jacobian(), rng.normal(size=6)
    found = weighted_damped(np.eye(6), 0.09 * np.eye(7))(J, e, state(7))
    np.testing.assert_allclose(found, stepper.step_for(e, J), atol=1e-10)


@pytest.mark.parametrize(
    "weight", [np.eye(3)[:2], np.array([[1.0, 0.5], [0.0, 1.0]]), -np.eye(2), np.zeros((2, 2)),
               [[1.0, np.nan], [np.nan, 1.0]], "none", [], 1.0]
)  # fmt: skip
def test_weights_are_symmetric_and_positive_definite(weight):
    with pytest.raises(MethodError, match=r"W1.*positive definite"):
        weighted_damped(weight, np.eye(2))


def test_weights_of_the_wrong_size_are_refused():
    step = weighted_damped(np.eye(2), np.eye(3))
    with pytest.raises(MethodError, match=r"J has shape \(6, 7\); the weights are for \(2, 3\)"):
        step(np.zeros((6, 7)), np.zeros(6), state(7))


def test_the_estimate_follows_the_singular_vector(rng):
    J, change = rng.normal(size=(6, 7)), rng.normal(size=(6, 7))
    u = np.full(6, 6**-0.5)
    for t in np.linspace(0.0, 1.0, 400):
        U, s, _ = np.linalg.svd(J + t * change)
        u = updated_singular_vector(J + t * change, u, 1e-3)
        if t > 0.05:
            assert np.linalg.norm((J + t * change).T @ u) == pytest.approx(s[-1], rel=0.02)
            assert abs(u @ U[:, -1]) > 0.98


@pytest.mark.parametrize("bound", [0.5, 2.0, 20.0])
def test_filtering_with_a_converged_estimate_equals_nf(rng, bound):
    robot = RobotModel.wam()
    stepper = Stepper(robot, "nf", rng.uniform(-1.0, 1.0, 7), velocity_bound=bound)
    J, e = stepper.jacobian(), rng.normal(size=6)
    step, memory = running_filter(bound), np.zeros(MEMORY)
    for i in range(60):
        found = step(J, e, state(7, memory, i))
    np.testing.assert_allclose(found, stepper.step_for(e, J), atol=1e-6)


def test_filters_are_finite_at_singularities_and_check_arguments():
    J = np.diag([1.0, 0.5, 0.0])
    found = running_filter(4.0)(J, np.ones(3), state(3))
    assert np.isfinite(found).all()
    assert np.abs(found).max() < 10.0
    for value in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(MethodError, match="velocity_bound"):
            running_filter(value)
    with pytest.raises(MethodError, match="at most 32 task rows; got 36"):
        running_filter(4.0)(np.zeros((36, 40)), np.zeros(36), state(40))


def test_registered_steps_become_methods(own_plugins):
    robot = RobotModel.wam()
    register_method("weighted", weighted_damped(np.diag([1.0] * 3 + [2.0] * 3), 1e-4 * np.eye(7)))
    register_method("running", running_filter(20.0))
    T = robot.fk(np.full(7, 0.4))
    for name in ("weighted", "running"):
        assert IkSolver(robot, name, timeout=10.0).solve(T, np.full(7, 0.35)).success


@pytest.mark.parametrize(("r", "n"), [(2, 3), (6, 7)])
def test_singularity_robust_inverse_is_weighted_and_damped_by_the_manipulability(rng, r, n):
    W1, W2 = random_spd_matrix(rng, r), random_spd_matrix(rng, n)
    J, e = rng.normal(size=(r, n)), rng.normal(size=r)
    w = np.sqrt(np.linalg.det(J @ J.T))
    k = 0.3 * (1.0 - w / (2.0 * w)) ** 2
    expected = np.linalg.solve(J.T @ W1 @ J + k * W2, J.T @ W1 @ e)
    step = singularity_robust(0.3, 2.0 * w, W1, W2)(J, e, state(n))
    np.testing.assert_allclose(step, expected, atol=1e-9)
    undamped = singularity_robust(0.3, 0.5 * w, W1, W2)(J, e, state(n))
    np.testing.assert_allclose(J @ undamped, e, atol=1e-9)
    slack = np.linalg.inv(W2) @ J.T  # the shortest weighted step has W2 dq in the row space of J
    np.testing.assert_allclose(slack @ np.linalg.lstsq(slack, undamped)[0], undamped, atol=1e-9)


def test_singularity_robust_inverse_without_weights_is_policy_manipulability(rng):
    robot = RobotModel.wam()
    options = {"policy": "manipulability", "lambda0": 0.2, "w_t": 10.0}
    stepper = Stepper(robot, "jd", rng.uniform(-1.0, 1.0, 7), **options)
    J, e = stepper.jacobian(), rng.normal(size=6)
    found = singularity_robust(0.2, 10.0)(J, e, state(7))
    np.testing.assert_allclose(found, stepper.step_for(e, J), atol=1e-10)


def test_numbers_of_the_singularity_robust_inverse_are_positive():
    with pytest.raises(MethodError, match=r"w_t must be a positive number; got 0\.0"):
        singularity_robust(0.1, 0.0)
    with pytest.raises(MethodError, match=r"the weights are for \(2, 7\)"):
        singularity_robust(0.1, 1.0, np.eye(2))(np.zeros((6, 7)), np.zeros(6), state(7))
