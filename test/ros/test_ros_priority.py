"""The priority of the loop's thread: taken where it may be, and given up where it does harm."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("rclpy")

from dls_ik.ros.servo.pacing import PATIENCE, Priority

REAL_TIME = "the loop has real-time priority"
ORDINARY = (os.SCHED_OTHER, os.SCHED_BATCH, os.SCHED_IDLE)


@pytest.fixture
def in_thread():
    """Call something in a thread whose priority is nobody else's."""
    with ThreadPoolExecutor(1) as pool:
        yield lambda call, *args: pool.submit(call, *args).result()


def policy():
    return os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK


def test_taken_by_the_thread_alone(in_thread):
    words = in_thread(Priority(20).take)
    if words == f"{REAL_TIME} 20":
        assert in_thread(policy) == os.SCHED_FIFO
        assert in_thread(os.sched_getparam, 0).sched_priority == 20
        with ThreadPoolExecutor(1) as other:
            assert in_thread(other.submit, policy).result() in ORDINARY
    else:
        assert words == "the loop has ordinary priority: real-time priority 20: " + os.strerror(1)
        assert in_thread(policy) in ORDINARY
    assert policy() in ORDINARY


def test_none_is_wanted(in_thread):
    words = in_thread(Priority(0).take)
    assert words == "the loop has ordinary priority, as thread_priority is 0"
    assert in_thread(policy) in ORDINARY


def test_refused(in_thread):
    priority = Priority(1000)
    words = in_thread(priority.take)
    assert words == "the loop has ordinary priority: real-time priority 1000: Invalid argument"
    assert not any(in_thread(priority.is_lost, False) for _ in range(2 * PATIENCE))


def test_given_up_where_the_loop_never_pauses(in_thread):
    priority = Priority(20)
    if not in_thread(priority.take).startswith(REAL_TIME):
        pytest.skip("real-time priority is not permitted here")
    lost = [in_thread(priority.is_lost, False) for _ in range(3 * PATIENCE)]
    assert lost.index(True) == PATIENCE - 1
    assert lost.count(True) == 1
    assert in_thread(policy) in ORDINARY


def test_kept_where_it_pauses_once_in_a_while(in_thread):
    priority = Priority(20)
    in_thread(priority.take)
    for k in range(5 * PATIENCE):
        assert not in_thread(priority.is_lost, k % (PATIENCE - 1) == 0)
