# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""``approximate=True``: the answer is the closest configuration; the status tells why."""

import numpy as np
import pytest
from solve_cases import PUMA, TOLERANCE, WAM, drawn, errors, robot_of

from dls_ik import IkSolver, RobotModel, Status, Task

PLANAR = RobotModel.from_name("planar_2r")
MISSED = (Status.UNREACHABLE, Status.MAX_RESTARTS)


def out_of_reach(robot, count, seed=1):
    """Return poses that are too far away, and poses with an unreachable rotation."""
    rng = np.random.default_rng(seed)
    Ts = robot.fk(robot.random(count, rng))
    Ts[::2, :3, 3] *= rng.uniform(1.5, 3.0, (len(Ts[::2]), 1))
    Ts[1::2, :3, :3] = Ts[1::2, :3, :3] @ np.diag([1.0, -1.0, -1.0])
    return Ts, robot.random(count, rng)


def scaled_error(robot, T, q):
    position, rotation = errors(robot, T, q)
    return np.hypot(position, 0.5 * rotation)


@pytest.mark.parametrize("name", ["wam", "puma560", "gen3", "column_lwr"])
def test_every_pose_has_an_answer_with_its_true_status_and_errors(name):
    """Reachable poses have the same answers as without the option."""
    robot = robot_of(name)
    Ts, seeds = out_of_reach(robot, 40)
    solver = IkSolver(robot, max_restarts=100)
    result = solver.solve_batch(Ts, seeds, approximate=True)
    plain = solver.solve_batch(Ts, seeds)
    np.testing.assert_array_equal(result.status, plain.status)
    np.testing.assert_array_equal(result.q[plain.success], plain.q[plain.success])
    assert result.success.all()
    assert set(result.status.tolist()) >= {Status.SUCCESS, Status.UNREACHABLE}
    assert robot.within_limits(result.q).all()
    for T, one in zip(Ts, result, strict=True):
        position, rotation = errors(robot, T, one.q)
        assert one.position_error == pytest.approx(position, abs=1e-12)
        assert one.rotation_error == pytest.approx(rotation, abs=1e-9)
        reached = max(position, rotation) <= TOLERANCE
        assert reached == (one.status is Status.SUCCESS)


@pytest.mark.parametrize("name", ["wam", "puma560"])
def test_the_answer_is_a_local_minimum_of_the_error(name):
    """Small motions within the limits do not reduce the scaled error."""
    robot = robot_of(name)
    rng = np.random.default_rng(2)
    Ts, seeds = out_of_reach(robot, 40)
    result = IkSolver(robot, max_restarts=100, approximate=True).solve_batch(Ts, seeds)
    gains = []
    for T, q in zip(Ts, result.q, strict=True):
        here = scaled_error(robot, T, q)
        for size in (1e-3, 1e-2):
            others = robot.clip(q + size * rng.normal(size=(60, robot.n)))
            gains.append(here - np.min([scaled_error(robot, T, other) for other in others]))
    assert np.quantile(gains, 0.9) <= 2e-3
    assert np.max(gains) <= 1e-2


def test_planar_arm_error_equals_the_closed_form():
    """The reach of 2 m leaves an error of 1 m to a target at 3 m."""
    T = np.eye(4)
    T[0, 3] = 3.0
    for seed in ([0.5, 0.5], [-1.0, 2.0], [3.0, -3.0]):
        result = IkSolver(PLANAR, approximate=True).solve(T, seed)
        assert (result.success, result.status) == (True, Status.UNREACHABLE)
        np.testing.assert_allclose(result.q, 0.0, atol=5e-3)
        assert result.position_error == pytest.approx(1.0, abs=1e-4)


def test_a_pose_reached_by_the_approximate_search_is_a_success():
    """With few restarts, the search for the closest configuration may reach the pose itself."""
    Ts, _, seeds = drawn(WAM, 200)
    solver = IkSolver(WAM, max_restarts=0, approximate=True)
    assert not IkSolver(WAM, max_restarts=0).solve_batch(Ts, seeds).success.all()
    result = solver.solve_batch(Ts, seeds)
    reached = (result.position_error <= 1e-6) & (result.rotation_error <= 1e-6)
    np.testing.assert_array_equal(result.status == Status.SUCCESS, reached)
    assert result.success.all()
    for i in range(10):
        alone = solver.solve(Ts[i], seeds[i], timeout=3600.0)
        assert (alone.status, alone.restarts) == (result.status[i], 0)


@pytest.mark.parametrize("name", ["ed", "jc", "jp", "dls"])
def test_published_methods_succeed_only_within_the_limits(name):
    Ts, seeds = out_of_reach(WAM, 50)
    solver = IkSolver(WAM, name, max_restarts=2, approximate=True)
    result = solver.solve_batch(Ts, seeds)
    missed = np.isin(result.status, MISSED)
    assert missed.any()
    np.testing.assert_array_equal(result.success[missed], WAM.within_limits(result.q[missed]))
    assert not result.success[result.status == Status.OUTSIDE_LIMITS].any()
    for T, seed in zip(Ts[:10], seeds, strict=False):
        alone = solver.solve(T, seed)
        assert alone.success == WAM.within_limits(alone.q)


@pytest.mark.parametrize("rotation_weight", [0.1, 1.0])
def test_the_weighted_error_is_never_larger_than_of_the_plain_search(rotation_weight):
    rng = np.random.default_rng(3)
    Ts = WAM.fk(WAM.random(400, rng))
    Ts[:, :3, 3] *= rng.uniform(0.9, 1.3, (400, 1))
    options = {"rotation_weight": rotation_weight, "max_restarts": 2}
    one, other = (
        IkSolver(WAM, "jp", approximate=each, **options).solve_batch(Ts) for each in (True, False)
    )
    assert (one.q != other.q).any()
    near, far = (
        np.hypot(each.position_error, rotation_weight * each.rotation_error)
        for each in (one, other)
    )
    assert (near <= far + 1e-12).all()


def test_invalid_rows_stay_failures():
    Ts, seeds = out_of_reach(WAM, 6)
    Ts[2, 0, 0] = np.nan
    seeds[4, 1] = np.inf
    result = IkSolver(WAM, approximate=True, max_restarts=10).solve_batch(Ts, seeds)
    assert np.flatnonzero(result.status == Status.REFUSED).tolist() == [2, 4]
    assert np.flatnonzero(~result.success).tolist() == [2, 4]


def test_a_timeout_gives_an_approximate_answer():
    Ts, seeds = out_of_reach(PUMA, 100)
    missed = IkSolver(PUMA, max_restarts=300).solve_batch(Ts, seeds).status == Status.MAX_RESTARTS
    assert missed.any()  # decided by the search, not by the bounds
    solver = IkSolver(PUMA, approximate=True)
    for T, seed in zip(Ts[missed], seeds[missed], strict=True):
        result = solver.solve(T, seed, timeout=0.0)
        assert (result.success, result.status) == (True, Status.TIMED_OUT)


def test_position_task_has_approximate_answers_within_limits():
    Ts, seeds = out_of_reach(WAM, 10)
    solver = IkSolver(WAM, task=Task.position_only(), max_restarts=10, approximate=True)
    result = solver.solve_batch(Ts[::2], seeds[::2])
    assert result.success.all()
    assert WAM.within_limits(result.q).all()


@pytest.mark.parametrize(
    "name", ["wam", "puma560", "fr3", "gen3", "ur5e", "stanford", "column_lwr", "youbot"]
)
def test_reachable_poses_are_never_reported_unreachable(name):
    robot = robot_of(name)
    Ts, _, seeds = drawn(robot, 300)
    solver = IkSolver(robot, max_restarts=8)
    for given in (None, seeds):
        assert not (solver.solve_batch(Ts, given).status == Status.UNREACHABLE).any()
