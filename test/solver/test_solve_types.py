# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Solve types: closest to the seed, largest manipulability, and random combinations of options."""

from itertools import pairwise

import numpy as np
import pytest
from arms import random_arm
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from solve_cases import (
    REDUNDANT,
    SIX,
    WAM,
    apart,
    assert_solutions,
    drawn,
    errors,
    is_solution,
    manipulability,
    robot_of,
)

from dls_ik import IkSolver, Status, Task

NEAREST = {"solve_type": "distance"}


@pytest.mark.parametrize("name", [*REDUNDANT, *SIX])
def test_the_closest_solution_is_at_most_as_far_as_the_first(name):
    robot = robot_of(name)
    Ts, q, seeds = drawn(robot, 60)
    solver = IkSolver(robot)
    first, nearest = solver.solve_batch(Ts, seeds), solver.solve_batch(Ts, seeds, **NEAREST)
    assert_solutions(robot, Ts, nearest)
    ours, theirs = apart(nearest.q, seeds), apart(first.q, seeds)
    assert (ours <= theirs + 1e-5).all()
    assert ours.mean() < theirs.mean()
    result = solver.solve_batch(Ts, q, **NEAREST)
    np.testing.assert_array_equal(result.q, q)
    assert (result.restarts == 0).all()
    if robot.n <= 6 or name == "wam":
        assert (result.iterations == 0).all()


@pytest.mark.parametrize("name", ["ur5e", "stanford"])
def test_nonredundant_arms_take_the_closest_branch(name):
    robot = robot_of(name)
    Ts, _, seeds = drawn(robot, 30)
    ours = IkSolver(robot, **NEAREST).solve_batch(Ts, seeds).q
    many = IkSolver(robot, max_restarts=1000)
    rng, least = np.random.default_rng(2), np.full(len(Ts), np.inf)
    for _ in range(150):  # each answer is the turn closest to the seed, for every start
        starts = robot.random(len(Ts), rng)
        found = many.solve_batch(Ts, starts).q
        turns = np.round((found - seeds) / (2.0 * np.pi)) * turning_joints(robot)
        for q in (found, found - 2.0 * np.pi * turns):
            inside = robot.within_limits(q)
            least = np.minimum(least, np.where(inside, apart(q, seeds), np.inf))
    far = apart(ours, seeds) > least + 1e-4
    assert far.mean() <= 0.04, np.column_stack([apart(ours, seeds), least])[far]


def turning_joints(robot):
    """Return (n,) 1 for revolute joints, 0 for prismatic joints."""
    turns = np.ones(robot.n)
    turns[robot.chain.variable[robot.chain.prismatic]] = 0.0
    return turns


@pytest.mark.parametrize("name", ["wam", "gen3"])
def test_no_self_motion_reduces_the_distance(name):
    """A self-motion that would reduce the distance is blocked by a joint limit."""
    robot = robot_of(name)
    Ts, _, seeds = drawn(robot, 100)
    result = IkSolver(robot, **NEAREST).solve_batch(Ts, seeds)
    assert result.success.all()
    left = [
        max_descent(robot, q, seed) / max(apart(q, seed), 0.1)
        for q, seed in zip(result.q, seeds, strict=True)
    ]
    assert np.mean(np.array(left) > 0.05) <= 0.03, np.sort(left)[-8:]


def max_descent(robot, q, seed):
    """Return the steepest descent of the distance along allowed self-motions: 0 at a minimum."""
    # All motions that keep the pose, to first order
    motion = np.linalg.svd(robot.jacobian(q))[2][6]
    motion *= -np.sign(motion @ (q - seed))
    outward = (motion > 1e-3) & (q >= robot.upper - 1e-3)
    outward |= (motion < -1e-3) & (q <= robot.lower + 1e-3)
    return 0.0 if outward.any() else -motion @ (q - seed)


def test_more_candidates_never_increase_the_distance():
    Ts, _, seeds = drawn(WAM, 40)
    ours = apart(IkSolver(WAM, **NEAREST).solve_batch(Ts, seeds).q, seeds)
    far = [
        apart(IkSolver(WAM, **NEAREST, num_candidates=count).solve_batch(Ts, seeds).q, seeds)
        for count in (1, 10, 60, 1000)
    ]
    for fewer, more in pairwise(far):
        assert (more <= fewer + 1e-12).all()
    assert (far[-1] <= ours + 1e-5).all()
    assert np.mean(ours <= 1.02 * far[-1] + 1e-4) >= 0.95


@pytest.mark.parametrize("heavy", [0, 5])
def test_joint_weights_change_the_metric(heavy):
    Ts, _, seeds = drawn(WAM, 60)
    weights = np.where(np.arange(7) == heavy, 100.0, 1.0)
    plain = IkSolver(WAM, **NEAREST).solve_batch(Ts, seeds)
    result = IkSolver(WAM, **NEAREST, joint_weights=weights.tolist()).solve_batch(Ts, seeds)
    assert_solutions(WAM, Ts, result)
    better = apart(result.q, seeds, weights) <= apart(plain.q, seeds, weights) + 1e-4
    assert better.mean() >= 0.95
    moved = np.abs(result.q - seeds)[:, heavy], np.abs(plain.q - seeds)[:, heavy]
    assert moved[0].mean() < 0.5 * moved[1].mean()


@pytest.mark.parametrize(("name", "kind"), [("ur5e", "speed"), ("puma560", "distance")])
def test_joints_with_more_than_a_turn_end_within_half_a_turn(name, kind):
    robot = robot_of(name)
    Ts, _, seeds = drawn(robot, 100)
    result = IkSolver(robot, solve_type=kind).solve_batch(Ts, seeds)
    assert_solutions(robot, Ts, result)
    for turn in (-2.0 * np.pi, 2.0 * np.pi):
        other = result.q + turn
        allowed = (other >= robot.lower) & (other <= robot.upper)
        nearer = np.abs(other - seeds) < np.abs(result.q - seeds) - 1e-9
        assert not (allowed & nearer).any()


def manipulabilities(robot, result):
    return np.array([manipulability(robot, q) for q in result.q])


@pytest.mark.parametrize(
    ("name", "seeded"),
    [("wam", True), ("wam", False), ("fr3", True), ("gen3", False), ("puma560", True),
     ("ur5e", False)],
)  # fmt: skip
def test_manipulability_is_at_least_that_of_the_first_solution(name, seeded):
    robot = robot_of(name)
    Ts, _, seeds = drawn(robot, 100)
    seeds = seeds if seeded else None
    solver = IkSolver(robot)
    first = solver.solve_batch(Ts, seeds)
    best = solver.solve_batch(Ts, seeds, solve_type="manipulability")
    assert_solutions(robot, Ts, best)
    ours, theirs = manipulabilities(robot, best), manipulabilities(robot, first)
    assert (ours >= theirs - 1e-9).all()
    if robot.n > 6:
        assert ours.mean() > 1.2 * theirs.mean()


def test_more_candidates_never_reduce_the_manipulability():
    Ts, _, seeds = drawn(WAM, 50)
    solvers = [
        IkSolver(WAM, solve_type="manipulability", num_candidates=count) for count in (1, 3, 10, 60)
    ]
    found = [manipulabilities(WAM, solver.solve_batch(Ts, seeds)) for solver in solvers]
    for fewer, more in pairwise(found):
        assert (more >= fewer - 1e-9).all()


def test_manipulability_of_partial_tasks_is_at_least_the_first():
    Ts, _, seeds = drawn(WAM, 10)
    solver = IkSolver(WAM, task=Task.position_only(), num_candidates=20)
    first = solver.solve_batch(Ts, seeds)
    best = solver.solve_batch(Ts, seeds, solve_type="manipulability")
    assert best.success.all()

    def measure(q):
        return np.prod(np.linalg.svd(WAM.jacobian(q)[:3], compute_uv=False))

    for ours, theirs, T in zip(best.q, first.q, Ts, strict=True):
        assert WAM.within_limits(ours)
        assert np.linalg.norm(WAM.fk(ours)[:3, 3] - T[:3, 3]) <= 1.01e-6
        assert measure(ours) >= measure(theirs) - 1e-9


KINDS = st.lists(
    st.sampled_from(["revolute", "revolute", "prismatic", "continuous", "mimic"]), max_size=7
)

CHANGES = st.sampled_from([0.0, 0.01, 0.3, 2.0, 10.0, np.inf])
FAR = st.sampled_from([0.0, 0.0, 1.0, 5.0, 100.0])
TYPES = st.sampled_from(["speed", "distance", "manipulability"])


def assert_valid_answer(robot, T, seed, change, approximate, result):
    """Check the properties of an answer that hold for all options."""
    assert np.isfinite(result.q).all()
    assert robot.within_limits(result.q)
    position, rotation = errors(robot, T, result.q)
    np.testing.assert_allclose(result[3:5], [position, rotation], atol=1e-9)
    possible = (seed - change <= robot.upper).all() and (seed + change >= robot.lower).all()
    rounding = 1e-15 * np.abs(seed).max() + 1e-15
    if result.status is Status.SUCCESS:
        assert is_solution(robot, T, result.q)
    if possible:
        assert (np.abs(result.q - seed) <= change + rounding).all()
        assert result.success == (approximate or result.status is Status.SUCCESS)
    else:
        assert (result.success, result.status) == (False, Status.FAR_FROM_SEED)


@settings(max_examples=20, suppress_health_check=list(HealthCheck))
@given(
    st.integers(0, 10**6), KINDS, TYPES, FAR, st.booleans(), st.data(), st.sampled_from([0.7, 3.0])
)
def test_answers_meet_random_options(seed, kinds, kind, far, approximate, data, reach):
    rng = np.random.default_rng(seed)
    robot = random_arm(rng, "revolute", *kinds)
    n = robot.n
    change = np.array(data.draw(st.lists(CHANGES, min_size=n, max_size=n)))
    solver = IkSolver(robot, solve_type=kind, num_candidates=10, max_restarts=12)
    Ts = robot.fk(robot.random(4, rng))
    Ts[2:, :3, 3] *= reach
    seeds = robot.random(4, rng) + far * rng.uniform(-1.0, 1.0, (4, n))
    wish = {"max_joint_change": change, "approximate": approximate}
    batch = solver.solve_batch(Ts, seeds, **wish)
    for T, start, row in zip(Ts, seeds, batch, strict=True):
        assert_valid_answer(robot, T, start, change, approximate, row)
        alone = solver.solve(T, start, timeout=3600.0, **wish)
        np.testing.assert_array_equal(alone.q, row.q)
        assert alone[:2] == row[:2]
        assert alone[3:7] == row[3:7]
