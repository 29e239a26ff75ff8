# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Resolved acceleration and second-order steps: second derivatives, ends of motions."""

import numpy as np
import pytest
from reproduce.pictures import shows_something

from dls_ik import RobotModel
from dls_ik.reproduce import deo_walker_accelerations as accelerations
from dls_ik.reproduce.experiment import begin, experiment, reproduce

WHAT = "accelerations"
DIFFERENCE = 1e-6


@pytest.fixture(scope="module")
def report():
    return reproduce(experiment(WHAT), 400)


@pytest.fixture(scope="module")
def motions(report):
    return {(row["goal"], row["way"]): row for row in report.rows}


@pytest.fixture(scope="module")
def steps(report):
    return {(row["target"], row["step"]): row for row in report.series["steps"]}


def derivative(f, q, direction):
    ahead, back = f(q + DIFFERENCE * direction), f(q - DIFFERENCE * direction)
    return (ahead - back) / (2.0 * DIFFERENCE)


@pytest.mark.parametrize("name", ["wam", "puma560"])
def test_second_derivatives_are_those_of_finite_differences(name):
    robot, rng = RobotModel.from_name(name), np.random.default_rng(2)
    q, q_dot = rng.uniform(-1.0, 1.0, robot.n), rng.normal(size=robot.n)
    J = robot.jacobian(q)
    bias = derivative(robot.jacobian, q, q_dot) @ q_dot
    np.testing.assert_allclose(accelerations.acceleration_bias(J, q_dot), bias, atol=1e-7)
    H = accelerations.position_hessian(J)
    for j, axis in enumerate(np.eye(robot.n)):
        np.testing.assert_allclose(
            H[:, :, j], derivative(robot.jacobian, q, axis)[:3], atol=1e-7
        )  # fmt: skip


def test_newton_step_uses_the_hessian_of_the_squared_error():
    robot = accelerations.planar_robot(accelerations.PLANAR_LINKS)
    target, q = np.array([1.9, 1.3, 0.0]), np.array([0.55, 0.1, 0.05])

    def slope(q):
        return robot.jacobian(q)[:3].T @ (robot.fk(q)[:3, 3] - target)

    curvature = np.array([derivative(slope, q, axis) for axis in np.eye(3)])
    assert np.linalg.eigvalsh(curvature).min() > 0.0
    expected = -np.linalg.solve(curvature, slope(q))
    found = accelerations.newton_step(robot.jacobian(q), target - robot.fk(q)[:3, 3])
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_a_reference_has_the_derivatives_that_it_says():
    for t in (0.3, 1.7, 3.1):
        _, velocity, acceleration = accelerations.reference(t, 1.99)
        h = 1e-5
        ahead, back = accelerations.reference(t + h, 1.99), accelerations.reference(t - h, 1.99)
        np.testing.assert_allclose(velocity, (ahead[0] - back[0]) / (2.0 * h), atol=1e-8)
        np.testing.assert_allclose(acceleration, (ahead[1] - back[1]) / (2.0 * h), atol=1e-8)


def test_undamped_accelerations_diverge_and_damped_ones_need_v_to_rest(motions):
    for goal in accelerations.GOALS:
        assert motions[goal, "accelerations, damped"]["ends"] == "moving"
        assert motions[goal, "accelerations, damped, v"]["ends"] == "at rest"
        assert motions[goal, "rates, damped"]["ends"] == "at rest"
    inside, outside = accelerations.GOALS
    assert motions[inside, "accelerations, pseudoinverse"]["off"] < 1e-3
    assert motions[outside, "accelerations, pseudoinverse"]["ends"] == "diverges"
    assert motions[outside, "accelerations, damped, v"]["off"] < 0.06  # 0.05 is out of reach


def test_only_newton_steps_converge_quickly_out_of_reach(steps):
    for where in accelerations.TARGET_DISTANCES:
        assert steps[where, accelerations.NEWTON_LABEL]["reached"] == 100.0
    quick = steps["out of reach", accelerations.NEWTON_LABEL]["iterations"]
    assert quick < 20
    for name in ("damped, 0.6", "SDLS"):
        assert steps["out of reach", name]["iterations"] > 4 * quick
    for name in ("pseudoinverse", "damped, 0.1", accelerations.HALLEY_LABEL):
        assert steps["out of reach", name]["reached"] < 100.0
    halley = steps["at the boundary", accelerations.HALLEY_LABEL]["iterations"]
    assert halley < steps["at the boundary", "pseudoinverse"]["iterations"]


def test_accelerations_are_drawn_with_and_without_results(report):
    assert shows_something(experiment(WHAT).plot(report))
    experiment(WHAT).plot(begin(experiment(WHAT)))
