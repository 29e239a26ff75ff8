"""The default method: every reachable pose is solved, inside the limits, to the tolerance."""

import numpy as np
import pytest
from arms import random_arm
from oracle_ik import pose_error

from dls_ik import IkSolver, RobotModel, Status
from dls_ik.model.kdl import kdl_chain

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
    for T, q, position, rotation in zip(Ts, result.q, result.position_error,
                                        result.rotation_error, strict=True):  # fmt: skip
        e = pose_error(T, robot.fk(q))
        assert np.linalg.norm(e[:3]) <= tolerance * (1.0 + 1e-6)
        assert np.linalg.norm(e[3:]) <= tolerance * (1.0 + 1e-6)
        assert position == pytest.approx(np.linalg.norm(e[:3]), abs=1e-12)
        assert rotation == pytest.approx(np.linalg.norm(e[3:]), abs=1e-12)


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_robots(name):
    robot, rng = RobotModel.from_name(name), np.random.default_rng(1)
    Ts = robot.fk(robot.random(rng, 2000))
    check(robot, Ts, IkSolver(robot).solve_batch(Ts, robot.random(rng, 2000)))


@pytest.mark.parametrize("name", SHIPPED)
def test_kdl_agrees_that_the_pose_is_reached(name):
    kdl = pytest.importorskip("PyKDL")
    robot, rng = RobotModel.from_name(name), np.random.default_rng(2)
    Ts = robot.fk(robot.random(rng, 200))
    chain = kdl_chain(robot)  # the solver does not keep it alive
    forward = kdl.ChainFkSolverPos_recursive(chain)
    for T, q in zip(Ts, IkSolver(robot).solve_batch(Ts).q, strict=True):
        values, frame = kdl.JntArray(robot.n), kdl.Frame()
        for j in range(robot.n):
            values[j] = q[j]
        assert forward.JntToCart(values, frame) == 0
        reached = np.array([[frame[i, j] for j in range(4)] for i in range(3)])
        np.testing.assert_allclose(reached, T[:3], atol=2e-6)


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("tolerance", [1e-3, 1e-9, 1e-12])
def test_other_tolerances(name, tolerance):
    robot, rng = RobotModel.from_name(name), np.random.default_rng(3)
    Ts = robot.fk(robot.random(rng, 200))
    solver = IkSolver(robot, position_tolerance=tolerance, rotation_tolerance=tolerance)
    check(robot, Ts, solver.solve_batch(Ts), tolerance + 1e-14)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("drawn", range(4))
def test_drawn_robots(name, drawn):
    rng = np.random.default_rng([4, drawn])
    robot = random_arm(rng, *KINDS[name])
    Ts = robot.fk(robot.random(rng, 60))
    solver = IkSolver(robot, max_restarts=5000)
    check(robot, Ts, solver.solve_batch(Ts, robot.random(rng, 60)))


def test_one_at_a_time():
    robot, rng = RobotModel.wam(), np.random.default_rng(5)
    solver = IkSolver(robot)
    for q in robot.random(rng, 100):
        T = robot.fk(q)
        result = solver.solve(T, timeout=3600.0)
        assert result.success
        assert result.status is Status.SUCCESS
        assert robot.within_limits(result.q)
        assert np.abs(robot.fk(result.q) - T).max() <= 2e-6
        assert result.iterations > 0
        assert result.restarts >= 0
        assert result.duration > 0.0


@pytest.mark.parametrize("name", SHIPPED)
def test_near_the_seed_no_restart_is_needed(name):
    robot, rng = RobotModel.from_name(name), np.random.default_rng(6)
    middle = 0.5 * (robot.lower + robot.upper)
    q = middle + 0.5 * (robot.random(rng, 200) - middle) + 0.05
    seeds = q + rng.uniform(-1e-3, 1e-3, q.shape)
    result = IkSolver(robot).solve_batch(robot.fk(q), seeds)
    assert result.success.all()
    near = np.abs(result.q - q).max(axis=1) < 0.05
    assert near.mean() > 0.9
    assert result.restarts[near].max() == 0
