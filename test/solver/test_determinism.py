"""The same task gives the same answer: again, in another solver, in other threads."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from dls_ik import IkSolver, RobotModel

WAM = RobotModel.wam()
SHORT = {"max_iterations": 7, "max_restarts": 500}  # short attempts, so that restarts are needed


def tasks(count):
    rng = np.random.default_rng(1)
    return WAM.fk(WAM.random(rng, count)), WAM.random(rng, count)


def answers(solver, Ts, seeds):
    return np.array([solver.solve(T, q, timeout=3600.0).q for T, q in zip(Ts, seeds, strict=True)])


def test_again_and_in_another_solver():
    Ts, seeds = tasks(30)
    solver = IkSolver(WAM, **SHORT)
    first = answers(solver, Ts, seeds)
    np.testing.assert_array_equal(answers(solver, Ts, seeds), first)
    np.testing.assert_array_equal(answers(IkSolver(WAM, **SHORT), Ts, seeds), first)


def test_earlier_tasks_leave_no_trace():
    Ts, seeds = tasks(30)
    solver = IkSolver(WAM, **SHORT)
    backwards = answers(solver, Ts[::-1], seeds[::-1])[::-1]
    np.testing.assert_array_equal(backwards, answers(solver, Ts, seeds))


def test_random_seed():
    Ts, seeds = tasks(30)
    a, b, c = (
        answers(IkSolver(WAM, random_seed=k, starts="random", **SHORT), Ts, seeds)
        for k in (1, 1, 2)
    )
    np.testing.assert_array_equal(a, b)
    assert (a != c).any()
    assert (a == c).all(axis=1).any()  # those that need no restart


@pytest.mark.parametrize(("method", "restarts"), [("auto", 500), ("ctp+sd+svf", 2)])
def test_threads_that_share_a_solver(method, restarts):
    Ts, seeds = tasks(60)
    solver = IkSolver(WAM, method, **{**SHORT, "max_restarts": restarts})
    alone = answers(solver, Ts, seeds)
    with ThreadPoolExecutor(6) as pool:
        together = list(pool.map(lambda _: answers(solver, Ts, seeds), range(6)))
    for shared in together:
        np.testing.assert_array_equal(shared, alone)


def test_threads_with_robots_of_their_own():
    def work(name):
        robot, rng = RobotModel.from_name(name), np.random.default_rng(2)
        Ts = robot.fk(robot.random(rng, 30))
        return IkSolver(robot, **SHORT).solve_batch(Ts).q

    names = ["wam", "puma560", "planar_2r"] * 3
    with ThreadPoolExecutor(6) as pool:
        for name, q in zip(names, pool.map(work, names), strict=True):
            np.testing.assert_array_equal(q, work(name))


def test_answers_are_the_callers_to_keep():
    Ts, seeds = tasks(2)
    solver = IkSolver(WAM)
    first = solver.solve(Ts[0], seeds[0], timeout=3600.0)
    kept = first.q.copy()
    first.q[:] += 0.0
    solver.solve(Ts[1], seeds[1], timeout=3600.0)
    np.testing.assert_array_equal(first.q, kept)
    first.q[:] = 9.0
    np.testing.assert_array_equal(solver.solve(Ts[0], seeds[0], timeout=3600.0).q, kept)
