"""Work in line, and work of which only the newest counts."""

import threading

import pytest

pytest.importorskip("rclpy", reason="needs rclpy")

from dls_ik.ros.newest import Newest
from dls_ik.ros.services.line import Line

LONG = 30.0  # [s] for what takes no time


def test_the_line_is_first_come_first_served_and_has_an_end():
    line, gate, done, end = Line(1, 3), threading.Event(), [], threading.Event()
    assert line.join(lambda: gate.wait(LONG))
    for i in range(3):
        assert line.join(lambda i=i: done.append(i))
    assert line.waiting == 3
    assert not line.join(lambda: done.append("too many"))
    gate.set()
    while not line.join(end.set):
        pass
    assert end.wait(LONG)
    assert done == [0, 1, 2]
    line.close()


def test_as_many_at_once_as_there_are_threads():
    line, both = Line(2, 1), threading.Barrier(2)
    passed = threading.Semaphore(0)
    for _ in range(2):
        line.join(lambda: passed.release() if both.wait(LONG) >= 0 else None)
    assert all(passed.acquire(timeout=LONG) for _ in range(2))
    line.close()


def test_a_job_that_fails_leaves_its_place():
    line, end = Line(1, 1), threading.Event()
    for _ in range(5):
        while not line.join(lambda: 1 / 0):
            pass
    while not line.join(end.set):
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
