# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tests of searches: starts, random numbers, whole turns, state."""

import numpy as np
import pytest
from arms import random_arm
from kernels import WAM
from oracle_ik import pose_error

from dls_ik import IkSolver, Task
from dls_ik.core.search import uniform, unwind
from dls_ik.core.selection import RANDOM_STATE_COLUMN
from dls_ik.solver.search import found


def tasks(robot, rng, count, farther=0.0):
    Ts = robot.fk(robot.random(count, rng))
    Ts[:, 0, 3] += farther
    return Ts, robot.random(count, rng)


def search(solver, Ts, seeds, *chunks, random_seed=0):
    """Return the rows after consecutive searches with these numbers of attempts."""
    rows = solver.search.new_rows(len(Ts))
    rows.counts[:, RANDOM_STATE_COLUMN] = random_seed
    for attempts in chunks:
        solver.search.attempt(Ts[:, None], seeds, attempts, rows)
        if found(rows).all():
            break
    return rows


def assert_same(one, other):
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", ["auto", "jc+ed", "sd"])
@pytest.mark.parametrize("chunks", [[1] * 12, [5, 7], [3, 1, 8], [11, 1]])
def test_attempts_in_chunks_equal_one_search(name, chunks):
    solver = IkSolver(WAM, name, max_iterations=8)
    Ts, seeds = tasks(WAM, np.random.default_rng(1), 1, farther=3.0)
    whole = search(solver, Ts, seeds, 12)
    assert whole.counts[0, 0] == 12
    assert_same(search(solver, Ts, seeds, *chunks), whole)


def test_reached_rows_are_found_at_the_same_attempt_however_chunked():
    solver = IkSolver(WAM, max_iterations=7)  # short attempts, so that some restarts are needed
    Ts, seeds = tasks(WAM, np.random.default_rng(2), 20)
    needed = []
    for i in range(20):
        row = slice(i, i + 1)
        whole = search(solver, Ts[row], seeds[row], 500)
        assert found(whole).all()
        assert_same(search(solver, Ts[row], seeds[row], *[1] * 500), whole)
        needed.append(whole.counts[0, 0])
    assert max(needed) > 2


def test_general_step_restarts_differ_and_find_solutions():
    """Check that restarts differ: equal starts would repeat the failure of the first one."""
    solver = IkSolver(WAM, "ctp+ed", max_iterations=12, solve_type="speed")
    Ts, seeds = tasks(WAM, np.random.default_rng(5), 8)
    rows = search(solver, Ts, seeds, 40)
    assert found(rows).all()
    assert (rows.counts[:, 0] > 2).sum() >= 3, "the third attempt, or one after it"


def test_random_seed_decides_where_restarts_begin():
    solver = IkSolver(WAM, max_iterations=5)
    Ts, seeds = tasks(WAM, np.random.default_rng(4), 1, farther=3.0)
    first, again = (search(solver, Ts, seeds, 60, random_seed=1) for _ in range(2))
    other = search(solver, Ts, seeds, 60, random_seed=2)
    assert_same(first, again)
    assert (first.best != other.best).any()


@pytest.mark.parametrize("name", ["auto", "ed", "ctp+sd"])
def test_best_is_the_least_error_so_far(name):
    solver = IkSolver(WAM, name, max_iterations=6)
    Ts, seeds = tasks(WAM, np.random.default_rng(5), 1, farther=3.0)
    errors = []
    for attempts in range(1, 20):
        rows = search(solver, Ts, seeds, attempts)
        e = pose_error(Ts[0], WAM.fk(rows.best[0]))
        np.testing.assert_allclose(rows.figures[0, 0], np.linalg.norm(e[:3]), atol=1e-12)
        np.testing.assert_allclose(rows.figures[0, 1], np.linalg.norm(e[3:]), atol=1e-12)
        errors.append(np.hypot(rows.figures[0, 0], 0.5 * rows.figures[0, 1]))
    assert (np.diff(errors) <= 0.0).all()
    assert errors[-1] < errors[0]


def test_closest_candidate_is_kept():
    solver = IkSolver(WAM, solve_type="distance", num_candidates=30)
    Ts, seeds = tasks(WAM, np.random.default_rng(6), 1)
    distances = []
    for attempts in range(1, 30):
        rows = search(solver, Ts, seeds, attempts)
        if found(rows)[0]:
            distances.append(np.linalg.norm(rows.best[0] - seeds[0]))
    assert (np.diff(distances) <= 0.0).all()
    assert distances[-1] < distances[0]


def test_solution_replaces_an_attempt_with_smaller_total_error():
    solver = IkSolver(WAM, position_tolerance=0.5, rotation_tolerance=1e-3)
    Ts, seeds = tasks(WAM, np.random.default_rng(9), 50)
    rows = solver.search.new_rows(50)
    rows.counts[:, 0] = 1  # one attempt made: the rotation was outside its tolerance
    rows.figures[:, :2] = 0.0, 1.1e-3
    solver.search.attempt(Ts[:, None], seeds, 500, rows)
    assert found(rows).all()
    assert (rows.figures[:, :2] <= [0.5, 1e-3]).all()
    assert rows.figures[:, 0].max() > 1e-3
    for T, q in zip(Ts, rows.best, strict=True):
        assert np.linalg.norm(pose_error(T, WAM.fk(q))[3:]) <= 1.01e-3


@pytest.mark.parametrize("what", ["nan pose", "nan seed", "inf pose", "scaled", "mirrored"])
def test_invalid_rows_are_skipped(what):
    solver = IkSolver(WAM)
    Ts, seeds = tasks(WAM, np.random.default_rng(6), 3)
    clean = search(solver, Ts, seeds, 20)
    if what == "nan seed":
        seeds[1, 2] = np.nan
    else:
        entries = {"nan pose": np.nan, "inf pose": np.inf, "scaled": 1.1, "mirrored": -1.0}
        Ts[1, :3, 0] *= entries[what]
    rows = search(solver, Ts, seeds, 20)
    assert found(rows).tolist() == [True, False, True]
    np.testing.assert_array_equal(rows.counts[1, :3], 0)
    assert np.isnan(rows.best[1]).all()
    np.testing.assert_array_equal(rows.best[[0, 2]], clean.best[[0, 2]])


@pytest.mark.parametrize("task", [Task.pose(), Task.position_only()])
def test_every_nth_attempt_continues_despite_slow_progress(task):
    options = {"max_iterations": 5, "stall_ratio": 0.01, "stall_count": 1, "long_attempt_every": 3}
    solver = IkSolver(WAM, task=task, **options)
    Ts, seeds = tasks(WAM, np.random.default_rng(10), 30)
    rows = [search(solver, Ts, seeds, attempts) for attempts in (2, 3)]
    assert (rows[0].counts[:, 1] <= 2).all()  # all steps are slow
    assert not found(rows[0]).any()
    made = rows[1].counts[:, 1] - rows[0].counts[:, 1]
    assert made.max() <= 8 * 5
    assert made.mean() > 3.0
    assert found(rows[1]).mean() > 0.3


def test_unwinding_ends_within_half_a_turn_of_the_seed_and_at_the_same_angle():
    rng = np.random.default_rng(7)
    turning = np.array([1, 0, 1, 1, 0])
    lower, upper = np.full(5, -np.inf), np.full(5, np.inf)
    for _ in range(100):
        seed, q = rng.uniform(-50.0, 50.0, (2, 5))
        turned = q.copy()
        unwind(turning, lower, upper, seed, turned)
        assert (np.abs(turned - seed)[turning == 1] <= np.pi + 1e-12).all()
        np.testing.assert_allclose(np.exp(1j * turned), np.exp(1j * q), atol=1e-12)
        np.testing.assert_array_equal(turned[turning == 0], q[turning == 0])


def test_restarts_cover_the_limits():
    arm = random_arm(np.random.default_rng(8), "prismatic", "revolute", "continuous", "revolute")
    solver = IkSolver(arm, "jp", max_iterations=1, alpha=1e-6)  # an attempt ends close to its start
    T_d = arm.fk(np.zeros(4))
    T_d[:3, 3] += 50.0
    ends = np.array([search(solver, T_d[None], np.zeros((1, 4)), 2, random_seed=k).best[0]
                     for k in range(400)])  # fmt: skip
    ends = ends[np.abs(ends).max(axis=1) > 1e-3]  # the restart had a smaller error than the seed
    lower, upper = arm.finite_limits()
    assert len(ends) > 100
    assert (ends > lower - 1e-3).all()
    assert (ends < upper + 1e-3).all()
    share = (ends - lower) / (upper - lower)
    assert (share.min(axis=0) < 0.05).all()
    assert (share.max(axis=0) > 0.95).all()


def test_later_restarts_have_joints_at_their_limits():
    solver = IkSolver(WAM, "jp", max_iterations=1, alpha=1e-6)
    Ts, seeds = tasks(WAM, np.random.default_rng(11), 300, farther=3.0)
    width = WAM.upper - WAM.lower
    early, late = (search(solver, Ts, seeds, k).best for k in (30, 200))
    for q, least, most in ((early, 0.0, 0.05), (late, 0.1, 0.6)):
        at_limits = (np.minimum(q - WAM.lower, WAM.upper - q) < 1e-4 * width).mean()
        assert least <= at_limits <= most


WORD = 2**64


def splitmix64(state):
    """Return the next number and state, by the unbounded integers of Python."""
    state = (state + 0x9E3779B97F4A7C15) % WORD
    z = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % WORD
    return ((z ^ (z >> 31)) >> 11) / 2**53, state


@pytest.mark.parametrize("seed", [0, 1, 42, 2**63 - 1, 2**64 - 1])
def test_uniform_matches_splitmix64(seed):
    state = np.array([seed], np.uint64)
    slow = seed
    for _ in range(100):
        number, slow = splitmix64(slow)
        assert uniform(state) == number
        assert int(state[0]) == slow
