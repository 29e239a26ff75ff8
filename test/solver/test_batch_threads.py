"""Batches on any number of threads: the same answers, progress, and what an exception leaves."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from wishes import PUMA, WAM, drawn

from dls_ik import IkSolver, Status, Task
from dls_ik.errors import BatchInterrupted, DlsIkError, OptionError
from dls_ik.solver import batch
from dls_ik.solver.search import Search
from dls_ik.solver.solver import MAX_TASKS

FIELDS = ("success", "status", "q", "position_error", "rotation_error", "iterations", "restarts")


def some(robot, count, seed=1):
    """Poses, some of them out of reach, and seeds."""
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
def test_any_number_of_threads(wish, seeded):
    Ts, seeds = some(WAM, 150)
    solver = IkSolver(WAM, max_restarts=30)
    seeds = seeds if seeded or "max_joint_change" in wish else None
    one = solver.solve_batch(Ts, seeds, threads=1, **wish)
    for threads in (2, 5, np.int64(3), 200, None):
        assert_same(solver.solve_batch(Ts, seeds, threads=threads, **wish), one)


@pytest.mark.parametrize("method", ["jc", "ctp+sd+svf"])
def test_of_other_methods_and_tasks(method):
    Ts, seeds = some(WAM, 60)
    solver = IkSolver(WAM, method, max_restarts=3, max_iterations=50)
    for task in (None, Task.position_only()):
        one = solver.solve_batch(Ts, seeds, task, threads=1)
        assert_same(solver.solve_batch(Ts, seeds, task, threads=4), one)


def test_more_tasks_than_are_kept_in_threads_of_the_caller():
    """Two threads go through more tasks than are kept; four ask for one that others let go of."""
    solver, interval = IkSolver(PUMA), sys.getswitchinterval()
    tasks = [Task(rotation="", position_tolerance=0.001 * i) for i in range(2 * MAX_TASKS)]
    done = threading.Event()

    def look(k):
        assert solver._search_for(tasks[k]).problem.details.task.slack[0] == 0.001 * k

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
    assert len(solver._searches) <= MAX_TASKS + 6


def test_solvers_in_threads_of_the_caller():
    Ts, seeds = some(PUMA, 200)
    solver = IkSolver(PUMA, max_restarts=50)
    expected, found = solver.solve_batch(Ts, seeds), [None] * 4

    def work(i):
        found[i] = solver.solve_batch(Ts, seeds, threads=2)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for each in found:
        assert_same(each, expected)


@pytest.mark.parametrize("threads", [0, -1, 1.0, 2.5, "2", True, np.nan, [2]])
def test_other_numbers_of_threads_are_refused(threads):
    with pytest.raises(OptionError, match="threads"):
        IkSolver(WAM).solve_batch(np.eye(4)[None], threads=threads)


@pytest.mark.parametrize("count", [1, 2, 7, 100, 3000])
@pytest.mark.parametrize("threads", [1, 3])
def test_progress_rises_to_the_end(count, threads):
    Ts = np.tile(WAM.fk(np.full(7, 0.3)), (count, 1, 1))
    calls = []
    IkSolver(WAM).solve_batch(Ts, threads=threads, progress=lambda *of: calls.append(of))
    done = [each for each, _ in calls]
    assert done == sorted(set(done))
    assert done[-1] == count
    assert {of for _, of in calls} == {count}
    assert len(calls) >= min(count, 8)


def test_progress_of_nothing_is_not_told():
    calls = []
    result = IkSolver(WAM).solve_batch(np.empty((0, 4, 4)), progress=lambda *of: calls.append(of))
    assert len(result) == 0
    assert calls == []


def test_progress_comes_from_the_callers_thread():
    names = set()
    Ts, seeds = some(WAM, 100)
    solver = IkSolver(WAM, max_restarts=5)
    told = solver.solve_batch(
        Ts, seeds, threads=3, progress=lambda *_: names.add(threading.get_ident())
    )
    assert names == {threading.get_ident()}
    assert_same(told, solver.solve_batch(Ts, seeds))


@pytest.mark.parametrize("kind", [ValueError, SystemExit, DlsIkError])
def test_what_progress_raises_comes_out(kind):
    calls = []

    def progress(done, _):
        calls.append(done)
        if len(calls) == 2:
            raise kind("enough")

    Ts, seeds = some(WAM, 400)
    with pytest.raises(kind, match="enough"):
        IkSolver(WAM, max_restarts=5).solve_batch(Ts, seeds, threads=2, progress=progress)
    assert len(calls) == 2


def hold(monkeypatch, Ts):
    """Begin none of these poses, however fast the machine is, before the batch is told to end."""
    held, ends, attempt = {T[:3, 3].tobytes() for T in Ts}, threading.Event(), Search.attempt

    class Pool(ThreadPoolExecutor):
        def __exit__(self, *error):
            ends.set()
            return super().__exit__(*error)

    def held_attempt(self, poses, *more):
        if poses[0, 0, :3, 3].tobytes() in held:
            ends.wait()
        return attempt(self, poses, *more)

    monkeypatch.setattr(batch, "ThreadPoolExecutor", Pool)
    monkeypatch.setattr(Search, "attempt", held_attempt)


@pytest.mark.parametrize("threads", [1, 3])
def test_an_interrupt_keeps_what_was_finished(threads, monkeypatch):
    Ts, seeds = some(WAM, 2000)
    solver = IkSolver(WAM, max_restarts=20)

    def progress(done, _):
        if done >= 500:
            raise KeyboardInterrupt

    hold(monkeypatch, Ts[500:])
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
