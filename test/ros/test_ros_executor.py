# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tests of requests that wait for a thread, and of work superseded by later work."""

import math
import threading
import time

import pytest

from dls_ik.ros.services import executor
from dls_ik.ros.services.executor import (
    TURN_DURATION,
    BoundedExecutor,
    LatestOnlyExecutor,
    SerialExecutor,
)

LONG = 120.0  # [s] timeout of an immediate event


class Executor(BoundedExecutor):
    """One whose jobs are functions, each a step, and that may be waited for."""

    def run(self, *steps, **details):
        def work():
            for step in steps:
                step()
                yield

        return self.submit(work(), **details)

    def wait(self):
        """Wait until nothing waits or runs."""
        deadline = time.monotonic() + LONG
        while self._count:
            assert time.monotonic() < deadline


@pytest.fixture
def one():
    """One thread, and nine places to wait in."""
    made = Executor(1, 9)
    yield made
    made.close()


@pytest.fixture
def gate():
    """An event that is set at the end, so that no thread waits for it."""
    event = threading.Event()
    yield event
    event.set()


def test_jobs_run_in_order_and_a_full_queue_refuses_jobs(one, gate):
    done, one.bound = [], 3
    assert one.run(lambda: gate.wait(LONG))
    for i in range(3):
        assert one.run(lambda i=i: done.append(i))
    assert one.waiting == 3
    assert not one.run(lambda: done.append("too many"))
    gate.set()
    one.wait()
    assert done == [0, 1, 2]
    assert one.run(lambda: None)


def test_long_job_yields_to_waiting_jobs_after_each_turn(one):
    done = []

    def long(name):
        while one.waiting < 3 and not done:  # all three have arrived
            yield
        for _ in range(3):
            done.append(name)
            over = time.perf_counter() + 2.0 * TURN_DURATION
            while time.perf_counter() < over:
                yield

    assert one.submit(long("a"))
    assert one.submit(long("b"))
    assert one.run(lambda: done.append("short"))
    assert one.run(lambda: None)
    one.wait()
    assert done[-1] != "short", "it waited for the long ones"
    assert sorted(done) == ["a"] * 3 + ["b"] * 3 + ["short"]


def test_job_past_its_deadline_is_dropped_while_all_threads_are_busy(one, gate):
    begun, lost, done = threading.Event(), threading.Event(), []
    one.run(lambda: (begun.set(), gate.wait(LONG)))
    assert begun.wait(LONG)
    one.run(lambda: done.append("late"), deadline=0.0, give_up=lost.set)
    one.run(lambda: done.append("in time"))
    assert lost.wait(LONG)
    assert one.waiting == 1, "its place is free"
    gate.set()
    one.wait()
    assert done == ["in time"]


def test_started_job_past_its_deadline_runs_next(one, gate):
    begun, done = threading.Event(), []
    deadline = time.perf_counter() + LONG

    def late():
        while not gate.is_set():  # it gives way when others wait
            yield
        done.append("late")

    one.submit(late(), deadline, lambda: done.append("lost"))
    one.run(lambda: (begun.set(), gate.wait(LONG)))
    for name in "abc":
        one.run(lambda name=name: done.append(name))
    assert begun.wait(LONG)  # the first one has given way, and is last
    with one._changed:
        assert one._remove_late(deadline + 1.0) == [], "it has begun, the others have no deadline"
    gate.set()
    one.wait()
    assert done == ["late", "a", "b", "c"]


def make_late(executor):
    """Move the deadline of the job that came with `cut` to the past."""
    with executor._changed:
        for job in (*executor._running, *executor._queue):
            if isinstance(getattr(job.cut, "__self__", None), threading.Event):
                job.deadline = 0.0


def test_blocked_job_past_its_deadline_is_cut_and_stops_after_its_step(one, gate):
    begun, cut, done = threading.Event(), threading.Event(), []

    def blocks():
        begun.set()
        gate.wait(LONG)
        yield
        done.append("went on")

    assert one.submit(blocks(), math.inf, lambda: done.append("lost"), cut.set)
    assert begun.wait(LONG)
    make_late(one)
    assert cut.wait(LONG), "nobody answered while the step blocks"
    assert one.running == 1
    gate.set()
    one.wait()
    assert done == []


def test_job_blocked_on_a_lock_is_not_treated_as_starved_of_a_core(one, gate, monkeypatch):
    monkeypatch.setattr(executor, "MAX_STARVATION", math.inf)
    begun, cut = threading.Event(), threading.Event()

    def blocks():
        begun.set()
        gate.wait(LONG)
        yield

    assert one.submit(blocks(), math.inf, cut=cut.set)
    assert begun.wait(LONG)
    make_late(one)
    assert cut.wait(LONG / 10)


def test_started_job_waiting_for_its_next_turn_is_cut_when_late(one, gate):
    begun, cut, done = threading.Event(), threading.Event(), []

    def long():
        while not begun.is_set():  # gives way to the one that blocks
            yield
        done.append("went on")

    one.submit(long(), math.inf, cut=cut.set)
    one.run(lambda: (begun.set(), gate.wait(LONG)))
    assert begun.wait(LONG)
    make_late(one)
    assert cut.wait(LONG)
    assert one.waiting == 0, "its place is free"
    gate.set()
    one.wait()
    assert done == []


def test_as_many_jobs_run_concurrently_as_there_are_threads():
    two, both, passed = Executor(2, 1), threading.Barrier(2), []
    for _ in range(2):
        two.run(lambda: passed.append(both.wait(LONG)))
    two.wait()
    two.close()
    assert len(passed) == 2


def test_failed_job_frees_its_place_in_the_queue(one):
    one.bound = 1
    for _ in range(5):
        assert one.run(lambda: 1 / 0)
        one.wait()


def test_latest_only_executor_runs_only_the_latest_waiting_job(gate):
    failed, done = [], []
    latest, begun, end = LatestOnlyExecutor(failed.append), threading.Event(), threading.Event()

    def first():
        begun.set()
        gate.wait(LONG)
        done.append(1)
        raise ValueError("first")

    latest.submit(first)
    assert begun.wait(LONG)
    latest.submit(lambda: done.append(2))
    latest.submit(lambda: (done.append(3), end.set()))
    gate.set()
    assert end.wait(LONG)
    assert done == [1, 3]
    assert [str(error) for error in failed] == ["first"]
    latest.close()


def test_failure_after_close_is_not_reported(gate):
    failed, begun = [], threading.Event()
    latest = LatestOnlyExecutor(failed.append)
    latest.submit(lambda: (begun.set(), gate.wait(LONG), 1 / 0))
    assert begun.wait(LONG)
    latest.close()
    gate.set()
    latest._executor.shutdown(wait=True)
    assert failed == []


def test_serial_executor_bounds_number_and_bytes_of_queued_jobs(gate):
    failures, done = [], []
    serial = SerialExecutor("serial", failures.append, bound=4, max_bytes=100)
    assert serial.submit(lambda: gate.wait(LONG))
    assert serial.submit(lambda: done.append(1 // 0), 60)
    assert not serial.submit(lambda: done.append("too large"), 41)
    assert serial.submit(lambda: done.append("a"), 40)
    assert serial.submit(lambda: done.append("b"))
    assert not serial.submit(lambda: done.append("one too many"))
    gate.set()
    deadline = time.monotonic() + LONG
    while not serial.submit(lambda: done.append("c"), 100):
        assert time.monotonic() < deadline
    while "c" not in done:
        assert time.monotonic() < deadline
    serial.close()
    assert done == ["a", "b", "c"]
    assert [type(each) for each in failures] == [ZeroDivisionError]
    assert not serial.submit(lambda: None)
