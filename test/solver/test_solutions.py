# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""``solve_all``: distinct solutions of one pose; all branches of nonredundant arms."""

import warnings

import numpy as np
import pytest
from solve_cases import PUMA, WAM, apart, drawn, is_solution, robot_of, turning

from dls_ik import IkSolver, RobotModel, Task
from dls_ik.errors import JointValueError, OptionError, PoseError

NAMES = ("wam", "fr3", "puma560", "ur5e", "irb140", "column_lwr")


def least_difference(robot):
    """Return by how much solutions differ at least: more if self-motion connects them."""
    return 0.1 if robot.n > 6 else 0.01


def assert_distinct_and_sorted(robot, T, found, near, weights=1.0):
    for q in found:
        assert is_solution(robot, T, q)
    for i, q in enumerate(found):
        assert (
            np.abs(found[:i] - q).max(axis=1, initial=0.0) > least_difference(robot)
        ).all() or i == 0
    far = apart(found, near, weights)
    assert (np.diff(far) >= 0.0).all()


@pytest.mark.parametrize("name", NAMES)
def test_solutions_are_distinct_and_sorted_by_distance(name):
    robot = robot_of(name)
    Ts, _, seeds = drawn(robot, 8)
    solver, middle = IkSolver(robot), 0.5 * sum(robot.finite_limits())
    for T, seed in zip(Ts, [None, None, *seeds[2:]], strict=True):
        found = solver.solve_all(T, seed=seed)
        assert 1 <= len(found) <= 16
        assert_distinct_and_sorted(robot, T, found, middle if seed is None else seed)


def branches(robot, T, rng, starts=500):
    """Return the distinct solutions (s, n) of many random restarts, modulo whole turns."""
    solver = IkSolver(robot, max_restarts=100, starts="random")
    found = solver.solve_batch(np.tile(T, (starts, 1, 1)), robot.random(starts, rng)).q
    kept = np.empty((0, robot.n))
    for q in found:
        if not any(same_branch(q, other) for other in kept):
            kept = np.vstack([kept, q])
    return kept


def same_branch(one, other, most=1e-3):
    """Tell whether two solutions differ only by whole turns of joints and rounding."""
    away = one - other
    return np.abs(away - 2.0 * np.pi * np.round(away / (2.0 * np.pi))).max() < most


@pytest.mark.parametrize("name", ["puma560", "ur5e", "irb140"])
def test_all_branches_of_nonredundant_arms_are_found(name):
    robot, rng = robot_of(name), np.random.default_rng(4)
    # Branches of the last pose of the Puma are closer than 0.1: the elbow is nearly singular.
    for T in robot.fk(np.vstack([robot.random(5, rng), robot.random(1, 5)])):
        expected = branches(robot, T, rng)
        found = IkSolver(robot).solve_all(T, count=1000)
        missing = [q for q in expected if not any(same_branch(q, o, 0.011) for o in found)]
        assert not missing, (len(expected), len(found), missing)


def test_the_puma_has_up_to_eight_branches():
    """The arm is left or right, the elbow up or down, the wrist flipped or not."""
    wide = RobotModel.from_dh(
        [dict(row, lower=-np.pi, upper=np.pi) for row in (
            {"alpha": np.pi / 2, "d": 0.67183}, {"a": 0.4318}, {"a": 0.0203, "alpha": -np.pi / 2,
             "d": 0.15005}, {"alpha": np.pi / 2, "d": 0.4318}, {"alpha": -np.pi / 2}, {},
        )]
    )  # fmt: skip
    rng, counts = np.random.default_rng(5), []
    for q in rng.uniform([0.3, 0.4, 0.2, 0.3, 0.5, 0.3], [0.9, 0.9, 0.7, 0.9, 0.9, 0.9], (20, 6)):
        T = wide.fk(q)
        found = IkSolver(wide).solve_all(T, count=100)
        counts.append(len(found))
        assert_distinct_and_sorted(wide, T, found, np.zeros(6))
    assert max(counts) == 8
    assert np.mean(np.array(counts) == 8) >= 0.9


@pytest.mark.parametrize("name", ["puma560", "ur5e"])
def test_solutions_are_within_half_a_turn_of_the_seed(name):
    robot = robot_of(name)
    Ts, _, seeds = drawn(robot, 5)
    for T, seed in zip(Ts, seeds, strict=True):
        for q in IkSolver(robot).solve_all(T, 100, seed):
            for turn in (-2.0 * np.pi, 2.0 * np.pi):
                other = q + turn
                allowed = (other >= robot.lower) & (other <= robot.upper)
                assert not (allowed & (np.abs(other - seed) < np.abs(q - seed) - 1e-6)).any()


def test_the_first_solution_is_the_closest():
    for robot in (WAM, PUMA):
        Ts, _, seeds = drawn(robot, 8)
        solver = IkSolver(robot, solve_type="distance", max_restarts=200)
        for T, seed in zip(Ts, seeds, strict=True):
            nearest = solver.solve(T, seed, timeout=3600.0).q
            found = solver.solve_all(T, 16, seed)
            assert apart(found[0], seed) <= apart(nearest, seed) + 1e-9


@pytest.mark.parametrize("count", [0, 1, 2, 7, 40])
def test_count_bounds_the_number_of_solutions(count):
    """Solutions are also deterministic."""
    T, q = drawn(WAM, 1)[:2]
    found, again = (IkSolver(WAM).solve_all(T[0], count, q[0]) for _ in range(2))
    assert found.shape == (count, 7)
    np.testing.assert_allclose(found[:1], q[: len(found)], atol=1e-9)
    np.testing.assert_array_equal(found, again)
    T[0, :3, 3] *= 9.0
    assert IkSolver(WAM, max_restarts=5).solve_all(T[0], count).shape == (0, 7)


@pytest.mark.parametrize("count", [-1, 1.5, "3", None, True, np.nan])
def test_invalid_counts_are_refused(count):
    with pytest.raises(OptionError, match="count"):
        IkSolver(WAM).solve_all(np.eye(4), count)


def test_invalid_poses_and_seeds_are_refused():
    solver, T = IkSolver(WAM), WAM.fk(np.zeros(7))
    with pytest.raises(PoseError):
        solver.solve_all(np.full((4, 4), np.nan))
    for seed in (np.zeros(6), np.full(7, np.nan), np.zeros((2, 7))):
        with pytest.raises(JointValueError):
            solver.solve_all(T, seed=seed)


def test_joint_weights_determine_the_order():
    T, _, seeds = drawn(PUMA, 1)
    weights = [100.0, 1.0, 1.0, 1.0, 1.0, 0.01]
    found = IkSolver(PUMA, joint_weights=weights).solve_all(T[0], 100, seeds[0])
    assert_distinct_and_sorted(PUMA, T[0], found, seeds[0], weights)


def test_solutions_are_within_the_maximum_change():
    Ts, q, _ = drawn(WAM, 5)
    change = 0.5
    for T, near in zip(Ts, q, strict=True):
        found = IkSolver(WAM, max_joint_change=change).solve_all(T, 16, near)
        assert len(found) > 1
        assert np.abs(found - near).max() <= change + 1e-12


def test_continuous_joints_and_partial_tasks_have_valid_solutions():
    rng = np.random.default_rng(6)
    robot = turning(rng)
    seed = robot.random(rng=rng) + 20.0 * robot.continuous
    T = robot.fk(robot.random(rng=rng))
    found = IkSolver(robot).solve_all(T, 8, seed)
    assert len(found) == 8
    assert np.abs(found - seed)[:, robot.continuous].max() <= np.pi + 1e-6
    for q in IkSolver(WAM).solve_all(WAM.fk(np.full(7, 0.4)), 5, task=Task.position_only()):
        assert WAM.within_limits(q)
        assert np.linalg.norm((WAM.fk(q) - WAM.fk(np.full(7, 0.4)))[:3, 3]) <= 1.01e-6


def test_the_search_continues_after_a_failed_first_attempt():
    rng = np.random.default_rng(8)
    solver = IkSolver(WAM, "ed", num_candidates=1, max_iterations=15)
    missed = 0
    for T, seed in zip(WAM.fk(WAM.random(10, rng)), WAM.random(10, rng), strict=True):
        missed += not solver.solve(T, seed, 60.0).success
        found = solver.solve_all(T, 1, seed)
        assert len(found) == 1
        np.testing.assert_allclose(WAM.fk(found[0]), T, atol=1e-5)
    assert missed > 0


def test_a_seed_in_degrees_warns_once():
    robot = RobotModel.wam()
    q = np.array([0.3, 0.7, 0.1, 1.6, 0.0, 0.5, 0.2])
    T, solver = robot.fk(q), IkSolver(robot, timeout=5.0)
    with pytest.warns(UserWarning, match=r"17\.1\S* rad for wam_j1.*np\.radians") as caught:
        solver.solve(T, np.degrees(q))
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solver.solve(T, np.degrees(q))
        IkSolver(robot, timeout=5.0).solve(T, q)
        IkSolver(robot, timeout=5.0).solve_batch(T[None], q[None])
    with pytest.warns(UserWarning, match="wam_j2"):
        IkSolver(robot, timeout=5.0).solve_batch(T[None], robot.named(q) | {"wam_j2": 40.0})
