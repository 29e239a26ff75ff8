# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The default method solves every reachable pose within limits and tolerance."""

import numpy as np
import pytest
from arms import random_arm
from oracle_ik import pose_error

from dls_ik import IkSolver, RobotModel, Status

SHIPPED = ("wam", "puma560", "planar_2r")
REVOLUTE = ("revolute",) * 7
KINDS = {
    "1": REVOLUTE[:1],
    "1 slide": ("prismatic",),
    "3 slides": ("prismatic",) * 3,
    "2": REVOLUTE[:2],
    "4 turning": ("continuous",) * 4,
    "5": REVOLUTE[:5],
    "6": REVOLUTE[:6],
    "6 with a slide": ("prismatic", *REVOLUTE[:5]),
    "6 and a follower": (*REVOLUTE[:3], "mimic", *REVOLUTE[:3]),
    "6 turning": ("continuous",) * 6,
    "7": REVOLUTE,
    "9": ("revolute", "prismatic", *["continuous"] * 3, *REVOLUTE[:4]),
    "12": (*REVOLUTE, *REVOLUTE[:5]),
}


def check(robot, Ts, result, tolerance=1e-6):
    assert result.success.all(), np.flatnonzero(~result.success)
    assert (result.status == Status.SUCCESS).all()
    assert (result.q >= robot.lower).all()
    assert (result.q <= robot.upper).all()
    for T, one in zip(Ts, result, strict=True):
        e = pose_error(T, robot.fk(one.q))
        assert np.linalg.norm(e[:3]) <= tolerance * (1.0 + 1e-6)
        assert np.linalg.norm(e[3:]) <= tolerance * (1.0 + 1e-6)
        assert one.position_error == pytest.approx(np.linalg.norm(e[:3]), abs=1e-12)
        assert one.rotation_error == pytest.approx(np.linalg.norm(e[3:]), abs=1e-12)


@pytest.mark.parametrize("name", SHIPPED)
def test_random_poses_of_included_robots_are_solved(name):
    robot, rng = RobotModel.from_name(name), np.random.default_rng(1)
    Ts = robot.fk(robot.random(1000, rng))
    check(robot, Ts, IkSolver(robot).solve_batch(Ts, robot.random(1000, rng)))


@pytest.mark.parametrize(
    ("name", "tolerance"),
    [("wam", 1e-3), ("wam", 1e-12), ("puma560", 1e-9), ("puma560", 1e-12), ("planar_2r", 1e-12)],
)
def test_smaller_and_larger_tolerances_are_met(name, tolerance):
    robot, rng = RobotModel.from_name(name), np.random.default_rng(3)
    Ts = robot.fk(robot.random(200, rng))
    solver = IkSolver(robot, position_tolerance=tolerance, rotation_tolerance=tolerance)
    check(robot, Ts, solver.solve_batch(Ts), tolerance + 1e-14)


@pytest.mark.parametrize("name", KINDS)
def test_poses_of_random_robots_are_solved(name):
    for drawn in range(4):
        rng = np.random.default_rng([4, drawn])
        robot = random_arm(rng, *KINDS[name])
        Ts = robot.fk(robot.random(30, rng))
        solver = IkSolver(robot, max_restarts=5000)
        check(robot, Ts, solver.solve_batch(Ts, robot.random(30, rng)))
        check(robot, Ts, solver.solve_batch(Ts))


@pytest.mark.parametrize("name", SHIPPED)
def test_poses_near_the_seed_need_no_restart(name):
    robot, rng = RobotModel.from_name(name), np.random.default_rng(6)
    middle = 0.5 * (robot.lower + robot.upper)
    q = middle + 0.5 * (robot.random(200, rng) - middle) + 0.05
    seeds = q + rng.uniform(-1e-3, 1e-3, q.shape)
    result = IkSolver(robot).solve_batch(robot.fk(q), seeds)
    assert result.success.all()
    near = np.abs(result.q - q).max(axis=1) < 0.05
    assert near.mean() > 0.9
    assert result.restarts[near].max() == 0


@pytest.mark.parametrize("q", [[0.3, 1.2], [-2.0, -0.7], [3.0, 2.5]])
def test_planar_arm_keeps_the_elbow_side_of_its_seed(q):
    robot = RobotModel.from_name("planar_2r")
    (q1, q2), T = q, robot.fk(q)
    solver = IkSolver(robot)
    for elbow in (q2, q2 + np.copysign(0.3, q2) * 0.5):
        result = solver.solve(T, [q1, elbow], timeout=3600.0)
        np.testing.assert_allclose(result.q, q, atol=1e-5)
    c = (T[0, 3] ** 2 + T[1, 3] ** 2 - 2.0) / 2.0  # law of cosines, two links of 1 m
    assert np.cos(result.q[1]) == pytest.approx(c, abs=1e-5)


TURNING = (
    "continuous",
    "revolute",
    "continuous",
    "prismatic",
    "continuous",
    "revolute",
    "revolute",
)


def solved(far, seed=1, count=60):
    """Return a robot, poses, seeds whole turns away, and the results."""
    rng = np.random.default_rng(seed)
    robot = random_arm(rng, *TURNING)
    Ts = robot.fk(robot.random(count, rng))
    seeds = robot.random(count, rng) + robot.continuous * rng.uniform(-far, far, (count, robot.n))
    return robot, Ts, seeds, IkSolver(robot, max_restarts=5000).solve_batch(Ts, seeds)


@pytest.mark.parametrize("far", [0.0, 10.0, 1e3, 1e6, 1e10, 1e15, 1e300])
def test_answers_to_far_seeds_are_within_half_a_turn_and_tolerance(far):
    robot, Ts, seeds, result = solved(far)
    if far <= 1e6:
        assert result.success.all()
        assert result.restarts.max() > 0
        away = np.abs(result.q - seeds)[:, robot.continuous]
        assert away.max() <= np.pi + 1e-9 * far + 1e-12
    for T, one in zip(Ts, result, strict=True):
        if one.success:
            e = pose_error(T, robot.fk(one.q))
            assert np.linalg.norm(e[:3]) <= 1.01e-6
            assert np.linalg.norm(e[3:]) <= 1.01e-6
        assert robot.within_limits(one.q)


def test_a_mimic_joint_limits_the_turns_of_its_master():
    rng = np.random.default_rng(3)
    robot = random_arm(rng, "continuous", "mimic", *["revolute"] * 5)
    assert not robot.continuous[0]  # a turn of the master is no whole turn of the follower
    Ts = robot.fk(robot.random(30, rng))
    result = IkSolver(robot, max_restarts=5000).solve_batch(Ts, robot.random(30, rng) + 20.0)
    assert result.success.all()
    np.testing.assert_allclose(robot.fk(result.q), Ts, atol=2e-6)
