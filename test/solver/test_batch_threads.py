# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Threads: answers are equal on any number of threads; interrupts keep finished rows."""

import json
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from solve_cases import PUMA, WAM, drawn

from dls_ik import IkSolver, RobotModel, Status, Task
from dls_ik.errors import BatchInterrupted, DlsIkError, OptionError
from dls_ik.solver import calls as solver_calls
from dls_ik.solver.search import Search
from dls_ik.solver.solver import MAX_CACHED_TASKS

FIELDS = ("success", "status", "q", "position_error", "rotation_error", "iterations", "restarts")


def sample_tasks(robot, count, seed=1):
    """Return poses, every fifth three times as far from the base, and seeds."""
    Ts, _, seeds = drawn(robot, count, seed)
    Ts[::5, :3, 3] *= 3.0
    return Ts, seeds


def assert_same(one, other):
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)


@pytest.mark.parametrize(
    "wish", [{}, {"solve_type": "distance"}, {"solve_type": "manipulability"},
             {"approximate": True}, {"max_joint_change": 0.7}], ids=str,
)  # fmt: skip
@pytest.mark.parametrize("seeded", [False, True], ids=["anywhere", "seeded"])
def test_the_number_of_threads_does_not_change_the_answers(wish, seeded):
    Ts, seeds = sample_tasks(WAM, 100)
    solver = IkSolver(WAM, max_restarts=30)
    seeds = seeds if seeded or "max_joint_change" in wish else None
    one = solver.solve_batch(Ts, seeds, threads=1, **wish)
    for threads in (2, np.int64(3), 200, None):
        assert_same(solver.solve_batch(Ts, seeds, threads=threads, **wish), one)


def test_threads_get_their_task_when_the_task_cache_overflows():
    """Two threads use more tasks than the cache holds; four ask for a task that was dropped."""
    solver, interval = IkSolver(PUMA), sys.getswitchinterval()
    tasks = [Task(rotation="", position_tolerance=0.001 * i) for i in range(2 * MAX_CACHED_TASKS)]
    done = threading.Event()

    def look(k):
        assert solver._search_for(None, tasks[k]).problem.details.task.tolerance[0] == 0.001 * k

    def ask_again():
        while not done.is_set():
            look(0)

    sys.setswitchinterval(1e-6)
    with ThreadPoolExecutor(4) as pool, ThreadPoolExecutor(2) as others:
        again = [pool.submit(ask_again) for _ in range(4)]
        try:
            list(others.map(look, 5 * [*range(len(tasks))]))
        finally:
            done.set()
            sys.setswitchinterval(interval)
        for each in again:
            each.result()
    assert len(solver._searches) <= MAX_CACHED_TASKS + 6


@pytest.mark.parametrize("threads", [0, -1, 1.0, 2.5, "2", True, np.nan, [2]])
def test_invalid_thread_counts_are_refused(threads):
    with pytest.raises(OptionError, match="threads"):
        IkSolver(WAM).solve_batch(np.eye(4)[None], threads=threads)


@pytest.mark.parametrize("count", [0, 1, 2, 7, 100, 3000])
@pytest.mark.parametrize("threads", [1, 3])
def test_progress_is_reported_to_the_end_in_the_callers_thread(count, threads):
    Ts = np.tile(WAM.fk(np.full(7, 0.3)), (count, 1, 1))
    calls, callers = [], set()

    def progress(*of):
        calls.append(of)
        callers.add(threading.get_ident())

    IkSolver(WAM).solve_batch(Ts, threads=threads, progress=progress)
    done = [each for each, _ in calls]
    assert done == sorted(set(done))
    assert done[-1:] == [count] * (count > 0)
    assert {of for _, of in calls} <= {count}
    assert callers <= {threading.get_ident()}
    assert len(calls) >= min(count, 8)


@pytest.mark.parametrize("kind", [ValueError, SystemExit, DlsIkError])
def test_exceptions_of_the_progress_callback_reach_the_caller(kind):
    calls = []

    def progress(done, _):
        calls.append(done)
        if len(calls) == 2:
            raise kind("enough")

    Ts, seeds = sample_tasks(WAM, 400)
    with pytest.raises(kind, match="enough"):
        IkSolver(WAM, max_restarts=5).solve_batch(Ts, seeds, threads=2, progress=progress)
    assert len(calls) == 2


def block_attempts(monkeypatch, Ts):
    """Block the attempts at these poses until the batch is told to stop."""
    held, ends, attempt = {T[:3, 3].tobytes() for T in Ts}, threading.Event(), Search.attempt

    class Pool(ThreadPoolExecutor):
        def __exit__(self, *error):
            ends.set()
            return super().__exit__(*error)

    def blocked_attempt(self, poses, *more):
        if poses[0, 0, :3, 3].tobytes() in held:
            ends.wait()
        return attempt(self, poses, *more)

    monkeypatch.setattr(solver_calls, "ThreadPoolExecutor", Pool)
    monkeypatch.setattr(Search, "attempt", blocked_attempt)


@pytest.mark.parametrize("threads", [1, 3])
def test_an_interrupt_keeps_the_finished_rows(threads, monkeypatch):
    Ts, seeds = sample_tasks(WAM, 2000)
    solver = IkSolver(WAM, max_restarts=20)

    def progress(done, _):
        if done >= 500:
            raise KeyboardInterrupt

    block_attempts(monkeypatch, Ts[500:])
    with pytest.raises(BatchInterrupted) as caught:
        solver.solve_batch(Ts, seeds, threads=threads, progress=progress)
    monkeypatch.undo()
    result, whole = caught.value.result, solver.solve_batch(Ts, seeds)
    left = result.status == Status.INTERRUPTED
    assert not left[:500].any()
    assert left.any()
    assert len(result) == 2000
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(result, name)[~left], getattr(whole, name)[~left])
    assert not result.success[left].any()
    assert np.isnan(result.q[left]).all()
    assert np.isnan(result.position_error[left]).all()
    assert (result.iterations[left] == 0).all()
    assert (result.restarts[left] == 0).all()
    assert isinstance(caught.value, KeyboardInterrupt)
    assert threading.active_count() < 50


SHORT = {"max_iterations": 7, "max_restarts": 500}  # short attempts, so that restarts are needed


def tasks(count):
    rng = np.random.default_rng(1)
    return WAM.fk(WAM.random(count, rng)), WAM.random(count, rng)


def answers(solver, Ts, seeds):
    return np.array([solver.solve(T, q, timeout=3600.0).q for T, q in zip(Ts, seeds, strict=True)])


def test_the_random_seed_determines_the_answers():
    Ts, seeds = tasks(30)
    a, b, c = (
        answers(IkSolver(WAM, random_seed=k, starts="random", **SHORT), Ts, seeds)
        for k in (1, 1, 2)
    )
    np.testing.assert_array_equal(a, b)
    assert (a != c).any()
    assert (a == c).all(axis=1).any()  # includes poses that need no restart


@pytest.mark.parametrize(("method", "restarts"), [("auto", 500), ("ctp+sd+svf", 2)])
def test_threads_that_share_a_solver_get_equal_answers(method, restarts):
    Ts, seeds = tasks(60)
    solver, another = (
        IkSolver(WAM, method, **{**SHORT, "max_restarts": restarts}) for _ in range(2)
    )
    alone = answers(another, Ts, seeds)
    with ThreadPoolExecutor(6) as pool:
        together = list(pool.map(lambda _: answers(solver, Ts, seeds), range(6)))
    for shared in together:
        np.testing.assert_array_equal(shared, alone)


def test_threads_with_separate_robots_do_not_interfere():
    def work(name):
        robot, rng = RobotModel.from_name(name), np.random.default_rng(2)
        Ts = robot.fk(robot.random(30, rng))
        return IkSolver(robot, **SHORT).solve_batch(Ts).q

    names = ["wam", "puma560", "planar_2r"] * 3
    with ThreadPoolExecutor(6) as pool:
        for name, q in zip(names, pool.map(work, names), strict=True):
            np.testing.assert_array_equal(q, work(name))


def test_later_solves_do_not_change_earlier_results():
    Ts, seeds = tasks(2)
    solver = IkSolver(WAM)
    first = solver.solve(Ts[0], seeds[0], timeout=3600.0)
    kept = first.q.copy()
    first.q[:] += 0.0
    solver.solve(Ts[1], seeds[1], timeout=3600.0)
    np.testing.assert_array_equal(first.q, kept)
    first.q[:] = 9.0
    np.testing.assert_array_equal(solver.solve(Ts[0], seeds[0], timeout=3600.0).q, kept)


PROGRAM = """
import json, sys
import numpy as np
from dls_ik import IkSolver, RobotModel, Status
from dls_ik.errors import BatchInterrupted

robot = RobotModel.wam()
rng = np.random.default_rng(1)
T = robot.fk(robot.random(1000, rng))
T[::9, :3, :3] = robot.fk(robot.random(112, rng))[:, :3, :3]  # some rotations unreachable, so slow
solver = IkSolver(robot, max_restarts=200)
solver.solve_batch(T[:2])
whole = np.tile(T, (300, 1, 1))

def progress(done, count):
    if done < 5000:
        print("working", flush=True)

try:
    solver.solve_batch(whole, threads=int(sys.argv[1]), progress=progress)
    print(json.dumps("finished"))
except BatchInterrupted as error:
    r = error.result
    kinds = {Status(k).name: int((r.status == k).sum()) for k in set(r.status.tolist())}
    done = np.flatnonzero(r.status != Status.INTERRUPTED)
    again = solver.solve_batch(whole[done[:200]])
    same = bool((again.q == r.q[done[:200]]).all())
    empty = bool(np.isnan(r.q[r.status == Status.INTERRUPTED]).all())
    print(json.dumps({"kinds": kinds, "same": same, "empty": empty}), flush=True)
    raise
"""


@pytest.mark.parametrize("threads", ["1", "5"])
def test_ctrl_c_leaves_the_results_so_far(threads):
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, threads],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    try:
        assert process.stdout.readline() == "working\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=300)
    finally:
        process.kill()
    assert process.returncode in (-signal.SIGINT, 130, 1)
    assert "BatchInterrupted" in err, "as uncaught"
    told = json.loads(out.splitlines()[-1])
    assert told != "finished"
    assert told["same"]
    assert told["empty"]
    counts = told["kinds"]
    assert sum(counts.values()) == 300_000
    assert 0 < counts["INTERRUPTED"] < 300_000
    assert np.sum([counts[kind] for kind in counts if kind != "INTERRUPTED"]) >= 1
