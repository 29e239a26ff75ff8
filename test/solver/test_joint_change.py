# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""``max_joint_change``: maximum distance of each joint from the seed."""

import numpy as np
import pytest
from arms import random_arm
from solve_cases import PUMA, WAM, assert_solutions, drawn, errors, robot_of, turning

from dls_ik import IkSolver, Status, Task
from dls_ik.errors import OptionError

KINDS = ("speed", "distance", "manipulability")
ROUND = 1e-12


def near_poses(robot, change, count=60, seed=1):
    """Return poses reachable within `change` of the seeds, and the seeds."""
    rng = np.random.default_rng(seed)
    seeds = robot.random(count, rng)
    away = rng.uniform(-1.0, 1.0, seeds.shape) * np.minimum(change, 3.0)
    return robot.fk(robot.clip(seeds + away)), seeds


@pytest.mark.parametrize("change", [0.02, 0.3, 1.5])
@pytest.mark.parametrize(
    ("name", "kind"),
    [("wam", "speed"), ("puma560", "distance"), ("fr3", "manipulability"), ("stanford", "speed")],
)
def test_answers_are_within_the_maximum_change(name, change, kind):
    robot = robot_of(name)
    Ts, seeds = near_poses(robot, change)
    solver = IkSolver(robot, max_joint_change=change, solve_type=kind)
    result = solver.solve_batch(Ts, seeds)
    assert result.success.mean() >= 0.98
    assert (np.abs(result.q - seeds) <= change + ROUND).all()
    ok = result.success
    assert_solutions(robot, Ts[ok], solver.solve_batch(Ts[ok], seeds[ok]))


def test_the_value_of_a_call_replaces_that_of_the_options():
    Ts, seeds = near_poses(WAM, 0.3)
    narrow, wide = IkSolver(WAM, max_joint_change=0.3), IkSolver(WAM)
    one, other = narrow.solve_batch(Ts, seeds), wide.solve_batch(Ts, seeds, max_joint_change=0.3)
    np.testing.assert_array_equal(one.q, other.q)
    free = narrow.solve_batch(Ts, seeds, max_joint_change=np.inf)
    np.testing.assert_array_equal(free.q, wide.solve_batch(Ts, seeds).q)
    for T, seed, q in zip(Ts[:10], seeds, one.q, strict=False):
        np.testing.assert_array_equal(narrow.solve(T, seed, timeout=3600.0).q, q)
        again = wide.solve(T, seed, timeout=3600.0, max_joint_change=[0.3] * 7)
        np.testing.assert_array_equal(again.q, q)


def test_zero_change_returns_the_seed():
    Ts, q, seeds = drawn(WAM, 10)
    solver = IkSolver(WAM, max_joint_change=0.0, max_restarts=10)
    at_seed = solver.solve_batch(Ts, q)
    assert at_seed.success.all()
    np.testing.assert_array_equal(at_seed.q, q)
    elsewhere = solver.solve_batch(Ts, seeds)
    assert not elsewhere.success.any()
    np.testing.assert_array_equal(elsewhere.q, seeds)


@pytest.mark.parametrize(
    ("side", "name", "approximate"),
    [(-1.0, "auto", False), (1.0, "auto", True), (-1.0, "jc", True), (1.0, "jp", False),
     (-1.0, "ctp+sd+svf", False), (1.0, "jp", True)],
)  # fmt: skip
def test_a_seed_too_far_outside_the_limits_has_no_answer(side, name, approximate):
    rng = np.random.default_rng(2)
    solver = IkSolver(WAM, name, max_restarts=20, approximate=approximate)
    for _ in range(10):
        seed = WAM.random(rng=rng)
        j = rng.integers(7)
        seed[j] = (WAM.lower if side < 0.0 else WAM.upper)[j] + 3.0 * side
        q = seed.copy()
        q[j] -= side  # now outside the limit, but within the maximum change
        for T in (WAM.fk(q), WAM.fk(WAM.clip(q)), WAM.fk(WAM.random(rng=rng))):
            alone = solver.solve(T, seed, timeout=3600.0, max_joint_change=1.0)
            batch = solver.solve_batch(T[None], seed, max_joint_change=1.0)[0]
            for result in (alone, batch):
                assert (result.success, result.status) == (False, Status.FAR_FROM_SEED)
                told = errors(WAM, T, result.q)
                np.testing.assert_allclose(result[3:5], told, atol=1e-9)
                assert not solver.search.keeps_limits or WAM.within_limits(result.q)


FREE = {
    "gen3": robot_of("gen3"),
    "seven": random_arm(np.random.default_rng(11), *["continuous"] * 7),
    "mixed": turning(np.random.default_rng(5)),
    "wide": random_arm(np.random.default_rng(6), "continuous", "mimic", *["continuous"] * 5),
}


def far_seeds(robot, turns, change, count=40):
    """Return poses near seeds, and these seeds moved by turns of the continuous joints."""
    Ts, seeds = near_poses(robot, change, count)
    ways = np.random.default_rng(7).choice([-1.0, 1.0], seeds.shape)
    return Ts, seeds + 2.0 * np.pi * turns * ways * robot.continuous


@pytest.mark.parametrize("change", [1.5, 4.0])
@pytest.mark.parametrize(("name", "kind"), list(zip(FREE, [*KINDS, "speed"], strict=True)))
def test_seeds_whole_turns_away_reach_the_same_poses(name, change, kind):
    robot = FREE[name]
    solver = IkSolver(robot, max_restarts=300, solve_type=kind, max_joint_change=change)
    restarts = []
    for turns in (0, 1, 1000):
        Ts, seeds = far_seeds(robot, turns, change)
        result = solver.solve_batch(Ts, seeds)
        assert result.success.mean() >= 0.98, (turns, result.success.mean())
        assert (np.abs(result.q - seeds) <= change + 1e-9).all()
        restarts.append(result.restarts.mean())
    # Random starts stay within the range of possible answers
    assert max(restarts) < restarts[0] + 3.0


def test_all_calls_accept_seeds_whole_turns_away():
    robot = FREE["seven"]
    solver = IkSolver(robot, max_restarts=100, max_joint_change=1.5)
    (Ts, nearby), (_, seeds) = (far_seeds(robot, turns, 1.5, count=25) for turns in (0, 3))
    for T, near, seed in zip(Ts, nearby, seeds, strict=True):
        assert solver.solve(T, seed, timeout=3600.0).success
        assert solver.solve(T, seed, 3600.0, Task.position_only()).success
        assert solver.solve_path(T[None], seed).success.all()
        found = solver.solve_all(T, 4, seed)
        assert len(found) == len(solver.solve_all(T, 4, near)) > 0
        assert (np.abs(found - seed) <= 1.5).all()


def test_a_huge_maximum_change_equals_no_maximum():
    """Random restarts over the whole allowed range would lose all digits."""
    robot = FREE["seven"]
    Ts, seeds = far_seeds(robot, 3, 3.0, count=10)
    solver = IkSolver(robot, max_restarts=100, max_joint_change=1e15, starts="random")
    assert solver.solve_batch(Ts, seeds[::-1]).success.all()
    assert all(len(solver.solve_all(T, 8, seeds[0])) == 8 for T in Ts)


def test_position_task_answers_are_within_the_maximum_change():
    Ts, seeds = near_poses(WAM, 0.3, count=20)
    solver = IkSolver(WAM, task=Task.position_only(), max_joint_change=0.3)
    result = solver.solve_batch(Ts, seeds)
    assert result.success.all()
    assert (np.abs(result.q - seeds) <= 0.3 + ROUND).all()


@pytest.mark.parametrize("name", ["jp", "svf", "jd"])
def test_methods_without_this_option_refuse_it(name):
    Ts, _, seeds = drawn(PUMA, 50)
    solver = IkSolver(PUMA, name, max_iterations=300)
    free = solver.solve_batch(Ts, seeds)
    result = solver.solve_batch(Ts, seeds, max_joint_change=0.1)
    np.testing.assert_array_equal(result.q, free.q)
    reached = free.status != Status.MAX_RESTARTS
    assert reached.any()
    far, inside = np.abs(free.q - seeds).max(axis=1) > 0.1, PUMA.within_limits(free.q)
    assert (result.status[reached & far & inside] == Status.FAR_FROM_SEED).all()
    assert (result.status[reached & ~inside] == Status.OUTSIDE_LIMITS).all()
    for i in np.flatnonzero(reached & far)[:4]:
        alone = solver.solve(Ts[i], seeds[i], timeout=3600.0, max_joint_change=0.1)
        assert alone.status == result.status[i]


def test_max_joint_change_without_a_seed_is_refused():
    T = WAM.fk(np.zeros(7))
    bounded = IkSolver(WAM, max_joint_change=1.0)
    calls = [
        lambda: bounded.solve(T),
        lambda: bounded.solve_batch(T[None]),
        lambda: bounded.solve_path(T[None]),
        lambda: bounded.solve_all(T),
        lambda: IkSolver(WAM).solve(T, max_joint_change=1.0),
    ]
    for call in calls:
        with pytest.raises(OptionError, match="seed"):
            call()
    assert IkSolver(WAM).solve(T, max_joint_change=np.inf).success
