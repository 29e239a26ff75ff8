"""Joints without limits: the answer is the turn nearest the seed."""

import numpy as np
import pytest
from arms import random_arm
from oracle_ik import pose_error

from dls_ik import IkSolver

KINDS = ("continuous", "revolute", "continuous", "prismatic", "continuous", "revolute", "revolute")


def solved(far, seed=1, count=60):
    """A robot, poses, seeds that lie some turns away, and the results."""
    rng = np.random.default_rng(seed)
    robot = random_arm(rng, *KINDS)
    Ts = robot.fk(robot.random(rng, count))
    seeds = robot.random(rng, count) + robot.continuous * rng.uniform(-far, far, (count, robot.n))
    return robot, Ts, seeds, IkSolver(robot, max_restarts=5000).solve_batch(Ts, seeds)


@pytest.mark.parametrize("far", [0.0, 10.0, 1e3, 1e6])
def test_within_half_a_turn_of_the_seed(far):
    robot, _, seeds, result = solved(far)
    assert result.success.all()
    assert result.restarts.max() > 0
    away = np.abs(result.q - seeds)[:, robot.continuous]
    assert away.max() <= np.pi + 1e-9 * far + 1e-12


@pytest.mark.parametrize("far", [0.0, 10.0, 1e3, 1e6, 1e10, 1e15, 1e300])
def test_wherever_the_seed_is_success_means_within_tolerance(far):
    robot, Ts, _, result = solved(far)
    for T, one in zip(Ts, result, strict=True):
        if one.success:
            e = pose_error(T, robot.fk(one.q))
            assert np.linalg.norm(e[:3]) <= 1.01e-6
            assert np.linalg.norm(e[3:]) <= 1.01e-6
        assert robot.within_limits(one.q)


def test_a_seed_at_the_answer_some_turns_on_stays():
    rng = np.random.default_rng(2)
    robot = random_arm(rng, *KINDS)
    solver = IkSolver(robot)
    for q in robot.random(rng, 20):
        seed = q + 2.0 * np.pi * robot.continuous * rng.integers(-5, 6, robot.n)
        result = solver.solve(robot.fk(q), seed, timeout=3600.0)
        np.testing.assert_allclose(result.q, seed, atol=1e-6)
        assert result.restarts == 0


def test_a_follower_turns_with_its_master():
    rng = np.random.default_rng(3)
    robot = random_arm(rng, "continuous", "mimic", *["revolute"] * 5)
    assert not robot.continuous[0]  # a turn of the master is no whole turn of the follower
    Ts = robot.fk(robot.random(rng, 30))
    result = IkSolver(robot, max_restarts=5000).solve_batch(Ts, robot.random(rng, 30) + 20.0)
    assert result.success.all()
    np.testing.assert_allclose(robot.fk(result.q), Ts, atol=2e-6)


def test_limited_joints_never_leave_their_limits_however_they_turn():
    robot, _, _, result = solved(1e3, seed=4)
    assert result.success.all()
    limited = ~robot.continuous
    assert (result.q[:, limited] >= robot.lower[limited]).all()
    assert (result.q[:, limited] <= robot.upper[limited]).all()
