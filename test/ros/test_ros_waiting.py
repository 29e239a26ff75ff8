"""Work in line, and work of which only the newest counts."""

import threading
import time

import pytest

pytest.importorskip("rclpy", reason="needs rclpy")

from dls_ik.ros.newest import Newest
from dls_ik.ros.services.line import TURN, Job, Line

LONG = 30.0  # [s] for what takes no time


def job(*steps, **details):
    """A job that calls a function in each of its steps."""

    def work():
        for step in steps:
            step()
            yield

    return Job(work(), **details)


def test_the_line_is_first_come_first_served_and_has_an_end():
    line, gate, done, end = Line(1, 3), threading.Event(), [], threading.Event()
    assert line.join(job(lambda: gate.wait(LONG)))
    for i in range(3):
        assert line.join(job(lambda i=i: done.append(i)))
    assert line.waiting == 3
    assert not line.join(job(lambda: done.append("too many")))
    gate.set()
    while not line.join(job(end.set)):
        pass
    assert end.wait(LONG)
    assert done == [0, 1, 2]
    line.close()


def test_a_long_job_gives_way_after_each_turn_to_those_that_wait():
    line, done, end = Line(1, 3), [], threading.Event()

    def long(name):
        while line.waiting < 3 and not done:  # until all have joined
            yield
        for _ in range(3):
            done.append(name)
            over = time.perf_counter() + 2.0 * TURN
            while time.perf_counter() < over:
                yield

    assert line.join(Job(long("a")))
    assert line.join(Job(long("b")))
    assert line.join(job(lambda: done.append("short")))
    assert line.join(job(lambda: None, end.set))
    assert end.wait(LONG)
    while line._here:
        pass
    assert done.index("short") < 3, f"the short one waited for the long ones: {done}"
    assert sorted(done) == ["a"] * 3 + ["b"] * 3 + ["short"]
    line.close()


def test_a_late_job_is_given_up_though_no_thread_is_free():
    line, gate, lost = Line(1, 3), threading.Event(), threading.Event()
    begun, done = threading.Event(), []
    line.join(job(lambda: (begun.set(), gate.wait(LONG))))
    assert begun.wait(LONG)
    line.join(job(lambda: done.append("late"), deadline=0.0, give_up=lost.set))
    line.join(job(lambda: done.append("in time")))
    assert lost.wait(LONG)
    assert line.waiting == 1, "its place is free"
    gate.set()
    while line._here:
        pass
    assert done == ["in time"]
    line.close()


def test_a_job_that_has_begun_and_is_late_is_next():
    line, begun, gate, done = Line(1, 9), threading.Event(), threading.Event(), []
    deadline = time.perf_counter() + LONG

    def late():
        while not gate.is_set():  # it gives way when others wait
            yield
        done.append("late")

    place = Job(late(), deadline, lambda: done.append("lost"))
    line.join(place)
    line.join(job(lambda: (begun.set(), gate.wait(LONG))))
    for name in "abc":
        line.join(job(lambda name=name: done.append(name)))
    assert begun.wait(LONG)  # the first one has given way, and is last
    with line._changed:
        assert line._sort_out(deadline + 1.0) == [], "it has begun, the others have no deadline"
    gate.set()
    while line._here:
        pass
    assert done == ["late", "a", "b", "c"]
    line.close()


def test_as_many_at_once_as_there_are_threads():
    line, both = Line(2, 1), threading.Barrier(2)
    passed = threading.Semaphore(0)
    for _ in range(2):
        line.join(job(lambda: passed.release() if both.wait(LONG) >= 0 else None))
    assert all(passed.acquire(timeout=LONG) for _ in range(2))
    line.close()


def test_a_job_that_fails_leaves_its_place():
    line, end = Line(1, 1), threading.Event()
    for _ in range(5):
        while not line.join(job(lambda: 1 / 0)):
            pass
    while not line.join(job(end.set)):
        pass
    assert end.wait(LONG)
    line.close()


def test_of_those_that_wait_only_the_newest_is_done():
    failed, done = [], []
    newest, begun, gate, end = Newest(failed.append), *(threading.Event() for _ in range(3))

    def first():
        begun.set()
        gate.wait(LONG)
        done.append(1)
        raise ValueError("first")

    newest.do(first)
    assert begun.wait(LONG)
    newest.do(lambda: done.append(2))
    newest.do(lambda: done.append(3))
    newest.do(lambda: (done.append(4), end.set()))
    gate.set()
    assert end.wait(LONG)
    assert done == [1, 4]
    assert [str(error) for error in failed] == ["first"]
    newest.close()


def test_what_fails_after_the_end_is_not_told():
    failed = []
    newest, begun, gate = Newest(failed.append), threading.Event(), threading.Event()

    def last():
        begun.set()
        gate.wait(LONG)
        raise ValueError("the node has gone")

    newest.do(last)
    assert begun.wait(LONG)
    newest.close()
    gate.set()
    newest._executor.shutdown(wait=True)
    assert failed == []
