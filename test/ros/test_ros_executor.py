"""Work in line, and work of which only the latest counts."""

import threading
import time

import pytest

pytest.importorskip("rclpy", reason="needs rclpy")

from dls_ik.ros.services.executor import TURN, BoundedExecutor, LatestOnlyExecutor

LONG = 30.0  # [s] for what takes no time


def job(*steps, **details):
    """A job that calls a function in each of its steps."""

    def work():
        for step in steps:
            step()
            yield

    return {"work": work(), **details}


def test_the_line_is_first_come_first_served_and_has_an_end():
    line, gate, done, end = BoundedExecutor(1, 3), threading.Event(), [], threading.Event()
    assert line.submit(**job(lambda: gate.wait(LONG)))
    for i in range(3):
        assert line.submit(**job(lambda i=i: done.append(i)))
    assert line.waiting == 3
    assert not line.submit(**job(lambda: done.append("too many")))
    gate.set()
    while not line.submit(**job(end.set)):
        pass
    assert end.wait(LONG)
    assert done == [0, 1, 2]
    line.close()


def test_a_long_job_gives_way_after_each_turn_to_those_that_wait():
    line, done, end = BoundedExecutor(1, 3), [], threading.Event()

    def long(name):
        while line.waiting < 3 and not done:  # until all have joined
            yield
        for _ in range(3):
            done.append(name)
            over = time.perf_counter() + 2.0 * TURN
            while time.perf_counter() < over:
                yield

    assert line.submit(long("a"))
    assert line.submit(long("b"))
    assert line.submit(**job(lambda: done.append("short")))
    assert line.submit(**job(lambda: None, end.set))
    assert end.wait(LONG)
    while line._count:
        pass
    assert done.index("short") < 3, f"the short one waited for the long ones: {done}"
    assert sorted(done) == ["a"] * 3 + ["b"] * 3 + ["short"]
    line.close()


def test_a_late_job_is_given_up_though_no_thread_is_free():
    line, gate, lost = BoundedExecutor(1, 3), threading.Event(), threading.Event()
    begun, done = threading.Event(), []
    line.submit(**job(lambda: (begun.set(), gate.wait(LONG))))
    assert begun.wait(LONG)
    line.submit(**job(lambda: done.append("late"), deadline=0.0, give_up=lost.set))
    line.submit(**job(lambda: done.append("in time")))
    assert lost.wait(LONG)
    assert line.waiting == 1, "its place is free"
    gate.set()
    while line._count:
        pass
    assert done == ["in time"]
    line.close()


def test_a_job_that_has_begun_and_is_late_is_next():
    line, begun, gate, done = BoundedExecutor(1, 9), threading.Event(), threading.Event(), []
    deadline = time.perf_counter() + LONG

    def late():
        while not gate.is_set():  # it gives way when others wait
            yield
        done.append("late")

    line.submit(late(), deadline, lambda: done.append("lost"))
    line.submit(**job(lambda: (begun.set(), gate.wait(LONG))))
    for name in "abc":
        line.submit(**job(lambda name=name: done.append(name)))
    assert begun.wait(LONG)  # the first one has given way, and is last
    with line._changed:
        assert line._remove_late(deadline + 1.0) == [], "it has begun, the others have no deadline"
    gate.set()
    while line._count:
        pass
    assert done == ["late", "a", "b", "c"]
    line.close()


def test_as_many_at_once_as_there_are_threads():
    line, both = BoundedExecutor(2, 1), threading.Barrier(2)
    passed = threading.Semaphore(0)
    for _ in range(2):
        line.submit(**job(lambda: passed.release() if both.wait(LONG) >= 0 else None))
    assert all(passed.acquire(timeout=LONG) for _ in range(2))
    line.close()


def test_a_job_that_fails_leaves_its_place():
    line, end = BoundedExecutor(1, 1), threading.Event()
    for _ in range(5):
        while not line.submit(**job(lambda: 1 / 0)):
            pass
    while not line.submit(**job(end.set)):
        pass
    assert end.wait(LONG)
    line.close()


def test_of_those_that_wait_only_the_latest_is_done():
    failed, done = [], []
    latest, begun, gate, end = (
        LatestOnlyExecutor(failed.append),
        *(threading.Event() for _ in range(3)),
    )

    def first():
        begun.set()
        gate.wait(LONG)
        done.append(1)
        raise ValueError("first")

    latest.submit(first)
    assert begun.wait(LONG)
    latest.submit(lambda: done.append(2))
    latest.submit(lambda: done.append(3))
    latest.submit(lambda: (done.append(4), end.set()))
    gate.set()
    assert end.wait(LONG)
    assert done == [1, 4]
    assert [str(error) for error in failed] == ["first"]
    latest.close()


def test_what_fails_after_the_end_is_not_told():
    failed = []
    latest, begun, gate = LatestOnlyExecutor(failed.append), threading.Event(), threading.Event()

    def last():
        begun.set()
        gate.wait(LONG)
        raise ValueError("the node has gone")

    latest.submit(last)
    assert begun.wait(LONG)
    latest.close()
    gate.set()
    latest._executor.shutdown(wait=True)
    assert failed == []
