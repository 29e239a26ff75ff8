# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Pace of the loop, waiting for targets, and its priority."""

import math
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest
from geometry_msgs.msg import PoseStamped, Twist, TwistStamped
from rclpy.executors import SingleThreadedExecutor

from dls_ik.ros.receiver import MessageReceiver
from dls_ik.ros.servo.loop import MAX_BUSY_CYCLES, CycleWindow, IntervalEstimator, Pacer, Priority
from dls_ik.ros.servo.target_buffer import Arrival, TargetBuffer
from dls_ik.ros.util import Throttle

PERIOD = 0.01
LONG = 120.0  # [s] bound of events that normally occur at once


@pytest.fixture
def targets(node):
    return TargetBuffer(node, Throttle(node))


def arrival(time, number=1):
    return Arrival(None, time, number)


def play(pacer, interval, phase, duration, start=0.0):
    """Run cycles with a stream of targets; return the start and the target of each cycle."""
    cycles, due, last = [], [start + phase + k * interval for k in range(10**5)], start
    while last < start + duration:
        earliest, latest = pacer.window()
        begin = max(earliest, min(latest, max(due[0], last)))
        come = [t for t in due[: 10**3] if t <= begin]
        due = due[len(come) :]
        newest = arrival(come[-1], len(come)) if come else None
        pacer.start_cycle(begin, newest)
        cycles.append((begin, newest.time if newest else None))
        last = begin
    return cycles


def test_deadlines_are_absolute():
    pacer = Pacer(1 / PERIOD, 100.0)
    for k in range(1, 50):
        due = pytest.approx(100.0 + k * PERIOD)
        assert pacer.window() == CycleWindow(due, due)
        pacer.start_cycle(100.0 + (k + 0.3) * PERIOD, None)


def test_cycles_missed_in_a_stall_are_not_repeated():
    pacer = Pacer(1 / PERIOD, 0.0)
    assert pacer.start_cycle(1.0, None) == pytest.approx(1.0)
    assert pacer.window().earliest == pytest.approx(1.0 + PERIOD)


def test_the_cycle_after_a_late_one_advances_by_the_elapsed_time():
    """A deadline shortly after a late cycle does not cause a step of a full period."""
    pacer = Pacer(1 / PERIOD, 0.0)
    late = 1.9 * PERIOD
    assert pacer.start_cycle(late, None) == pytest.approx(late)
    begin = pacer.window().earliest
    assert begin == pytest.approx(late + 0.25 * PERIOD)
    assert pacer.start_cycle(begin, None) == pytest.approx(begin - late)


@pytest.mark.parametrize("ratio", [0.95, 1.0, 1.05])
@pytest.mark.parametrize("phase", [0.0, 0.007, 0.0099])
def test_loop_synchronizes_with_targets_at_a_similar_rate(ratio, phase):
    cycles = play(Pacer(1 / PERIOD, 0.0), ratio * PERIOD, phase, 2.0)[100:]
    lags = [begin - target for begin, target in cycles]
    assert max(lags) < 1e-9
    steps = [b - a for (a, _), (b, _) in pairwise(cycles)]
    assert max(steps) == pytest.approx(ratio * PERIOD)


@pytest.mark.parametrize("interval", [PERIOD / 5, PERIOD / 2, 2 * PERIOD, 3.3 * PERIOD])
def test_loop_keeps_its_rate_with_targets_at_another_rate(interval):
    cycles = play(Pacer(1 / PERIOD, 0.0), interval, 0.004, 2.0)
    steps = [b - a for (a, _), (b, _) in pairwise(cycles[20:])]
    assert steps == pytest.approx([PERIOD] * len(steps))


def test_the_interval_is_known_only_during_a_stream():
    rhythm = IntervalEstimator()
    assert rhythm.interval(0.0) == math.inf
    rhythm.update(arrival(1.0))
    assert rhythm.interval(1.0) == math.inf
    rhythm.update(arrival(1.2, number=2))
    assert rhythm.interval(1.2) == pytest.approx(0.1)
    assert rhythm.interval(1.6) == math.inf


def test_newest_target_is_taken_once(targets):
    assert targets.take() is None
    for message in "abc":
        targets.store(message)
    assert (taken := targets.take()) is not None
    assert (taken.message, taken.number) == ("c", 3)
    assert targets.take() is None
    targets.store("d")
    assert targets.take().number == 1


def test_wait_ends_with_a_target(targets):
    now = time.monotonic()
    timer = threading.Timer(0.05, targets.store, ["a"])
    timer.start()
    assert targets.wait(now, now + 600.0)
    assert 0.05 <= time.monotonic() - now < 300.0
    timer.join()


def test_wait_returns_within_its_window(targets):
    targets.store("a")
    now = time.monotonic()
    assert targets.wait(now + 0.05, now + 600.0)
    assert 0.05 <= time.monotonic() - now < 300.0
    targets.take()
    now = time.monotonic()
    assert targets.wait(now - 1.0, now + 0.05)
    assert time.monotonic() - now >= 0.05
    assert targets.wait(now, now - 1.0)


def test_close_stops_every_wait(targets):
    now = time.monotonic()
    timer = threading.Timer(0.05, targets.close)
    timer.start()
    assert not targets.wait(now + 600.0, now + 600.0)
    assert not targets.wait(now + 600.0, now + 900.0)
    assert time.monotonic() - now < 300.0
    timer.join()


def wait_for(targets, condition, each=lambda: None):
    """Wait until a target, or None, meets a condition; return the target."""
    end = time.monotonic() + LONG
    while time.monotonic() < end:
        each()
        now = time.monotonic()
        targets.wait(now, now + 0.05)
        arrival = targets.take()
        if condition(arrival):
            return arrival
    raise AssertionError(f"not within {LONG} s")


def test_messages_are_received_only_by_wait(node, targets):
    """An executor does not receive targets, and does not wake up for them."""
    targets.subscribe()
    executor = SingleThreadedExecutor(context=node.context)
    executor.add_node(node)
    publisher = node.create_publisher(PoseStamped, "target_pose", 1)
    message = PoseStamped()
    message.pose.position.x = 0.5
    arrival = wait_for(targets, bool, lambda: publisher.publish(message))
    assert arrival.message.pose.position.x == 0.5
    assert arrival.delay is not None
    publisher.publish(message)
    time.sleep(0.2)
    executor.spin_once(timeout_sec=0.2)
    assert targets.take() is None
    now = time.monotonic()
    while not targets.wait(now, now):  # the message may still be in transit
        assert time.monotonic() < now + LONG
    assert targets.take() is not None, "received without time to wait"
    executor.shutdown()


def test_a_subscription_is_destroyed_during_a_wait(node):
    """A process has one type per topic; another type is possible once the wait has stopped."""
    receiver = MessageReceiver(node, Throttle(node))
    first = receiver.create_subscription(Twist, "jog", print, 1, raw=True)
    thread = threading.Thread(target=receiver.receive, args=(600.0,))
    receiver.receive(0.0)  # the wake-up of the new subscription
    thread.start()
    time.sleep(0.05)
    receiver.destroy_subscription(first)
    thread.join(LONG)
    assert not thread.is_alive()
    receiver.receive(0.0)
    receiver.create_subscription(TwistStamped, "jog", print, 1, raw=True)
    receiver.release()


def test_a_failing_callback_does_not_stop_the_loop(node):
    receiver = MessageReceiver(node, Throttle(node))

    def fail(*_):
        raise ValueError("odd")

    receiver.create_subscription(PoseStamped, "odd", fail, 1, raw=True)
    receiver.receive(0.0)  # the wake-up of the new subscription
    publisher = node.create_publisher(PoseStamped, "odd", 1)
    deadline = time.monotonic() + LONG
    while publisher.get_subscription_count() == 0 and time.monotonic() < deadline:
        time.sleep(0.02)
    publisher.publish(PoseStamped())
    receiver.receive(1.0)
    receiver.close()
    receiver.receive(600.0)
    receiver.release()


REAL_TIME = "the loop has real-time priority"
ORDINARY = (os.SCHED_OTHER, os.SCHED_BATCH, os.SCHED_IDLE)


@pytest.fixture
def in_thread():
    """Return a function that calls another one in a separate thread."""
    with ThreadPoolExecutor(1) as pool:
        yield lambda call, *args: pool.submit(call, *args).result()


def policy():
    return os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK


def test_only_the_calling_thread_gets_the_priority(in_thread):
    priority = Priority(20)
    words = in_thread(priority.acquire)
    if words.startswith(f"{REAL_TIME} 20, and "):
        assert in_thread(policy) == os.SCHED_FIFO
        assert in_thread(os.sched_getparam, 0).sched_priority == 20
        with ThreadPoolExecutor(1) as other:
            assert in_thread(other.submit, policy).result() in ORDINARY
        in_thread(priority.give_up)
        assert in_thread(policy) in ORDINARY
    else:
        assert (
            words
            == "the loop has ordinary priority; real-time priority 20 failed: " + os.strerror(1)
        )
        assert in_thread(policy) in ORDINARY
    assert policy() in ORDINARY


def test_refused_or_unrequested_priority_is_reported(in_thread):
    words = in_thread(Priority(0).acquire)
    assert words == "the loop has ordinary priority, as thread_priority is 0"
    priority = Priority(1000)
    words = in_thread(priority.acquire)
    assert (
        words == "the loop has ordinary priority; real-time priority 1000 failed: Invalid argument"
    )
    assert not any(in_thread(priority.give_up_if_busy, False) for _ in range(2 * MAX_BUSY_CYCLES))


def test_priority_is_given_up_if_the_loop_never_pauses(in_thread):
    priority = Priority(20)
    if not in_thread(priority.acquire).startswith(REAL_TIME):
        pytest.skip("real-time priority is not permitted here")
    lost = [in_thread(priority.give_up_if_busy, False) for _ in range(3 * MAX_BUSY_CYCLES)]
    assert lost.index(True) == MAX_BUSY_CYCLES - 1
    assert lost.count(True) == 1
    assert in_thread(policy) in ORDINARY
    priority = Priority(20)
    assert in_thread(priority.acquire).startswith(REAL_TIME)
    kept = [
        in_thread(priority.give_up_if_busy, k % (MAX_BUSY_CYCLES - 1) == 0)
        for k in range(5 * MAX_BUSY_CYCLES)
    ]
    assert not any(kept), "the loop pauses sometimes"
    in_thread(priority.give_up)


MIDDLEWARE_PRIORITY = """
import os
from pathlib import Path
import rclpy
from dls_ik.ros.servo.loop import Priority

def policies():
    for comm in Path("/proc/self/task").glob("*/comm"):
        number = int(comm.parent.name)
        policy = os.sched_getscheduler(number) & ~os.SCHED_RESET_ON_FORK
        print(comm.read_text().strip(), policy, os.sched_getparam(number).sched_priority)

with rclpy.init():
    rclpy.create_node("prioritised")
    priority = Priority(20)
    print(priority.acquire())
    policies()
    priority.give_up()
    print("given up")
    policies()
"""


def test_middleware_threads_have_a_priority_below_the_loop_until_it_is_given_up():
    environment = {**os.environ, "RMW_IMPLEMENTATION": "rmw_fastrtps_cpp"}
    command = [sys.executable, "-c", MIDDLEWARE_PRIORITY]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    words, *lines = done.stdout.splitlines()
    if not words.startswith(REAL_TIME):
        pytest.skip("real-time priority is not permitted here")
    end = lines.index("given up")
    policies = [line.rsplit(" ", 2) for line in lines[:end]]
    raised = [name for name, *policy in policies if policy == [str(os.SCHED_FIFO), "19"]]
    assert words == f"{REAL_TIME} 20, and {len(raised)} threads of the middleware have 19"
    if any(name.startswith("dds.") for name, *_ in policies):  # old versions do not name threads
        receiving = ("dds.shm.", "dds.udp.")
        wanted = [
            each for each, *_ in policies if each.startswith(receiving) and "wdog" not in each
        ]
        assert set(wanted) <= set(raised) != set()
    assert [policy for _, *policy in policies].count([str(os.SCHED_FIFO), "20"]) == 1
    assert not any(line.split()[-1] != "0" for line in lines[end + 1 :])
