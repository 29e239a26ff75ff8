"""Cycles that begin late: the command is where the arm came to, and what waited does not count."""

import math
import time

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs rclpy")
pytest.importorskip("moveit_msgs", reason="needs moveit_msgs")

from ros_world import DT, controlled, near

from dls_ik.ros.servo import targets
from dls_ik.ros.servo.state_monitor import DRAIN, FRESH
from dls_ik.ros.servo.targets import Arrival
from dls_ik.servo import ServoState

STOOD = 2.0  # [s]


@pytest.fixture
def world(monkeypatch):
    return controlled(monkeypatch, feedback_mode="none", acceleration=[4.0])


def moving(world):
    """Let the arm be on its way to a single pose."""
    return world.run(20, target=None) if world.stream.moves else _begun(world)


def _begun(world):
    world.run(target=world.target([1.5, 1.0]))
    outcome = world.run(20)
    assert np.abs(outcome.output.velocity).max() > 0.3
    return outcome


def arrives(world, target, sent, lag=math.inf):
    """A cycle with a target, `sent` [s] ago by the clock of its publisher."""
    world.now += DT
    delay = targets._delay(time.time_ns() - round(1e9 * sent), lag)
    arrival = Arrival(target, world.now, 1, delay)
    return world.cycle(arrival, 0)


def test_after_a_long_gap_nothing_goes_out_for_a_moment_and_then_it_begins_at_rest(world):
    before = moving(world).output.q
    world.now += STOOD
    outcome = world.run()
    assert (outcome.output, outcome.state, outcome.is_command) == (None, ServoState.STALE, False)
    assert any("stood still for 2" in line for line in world.node.lines)
    assert not world.run(int(0.9 * DRAIN / DT) - 1).is_command
    after = world.run(3).output
    assert after.q == near(before, 2.0 * 3 * DT)
    assert np.abs(after.velocity).max() <= 4.0 * 3 * DT + 1e-9
    assert world.run(400).output.q == near([1.5, 1.0], 1e-4), "the single pose stays in force"


@pytest.mark.parametrize(("sent", "is_followed"), [(1.5, False), (0.05, True), (-5.0, False)])
def test_a_target_that_waited_meanwhile_is_passed_over(world, sent, is_followed):
    moving(world)
    world.now += STOOD
    arrives(world, world.target([0.2, 0.9]), sent)
    goal = [0.2, 0.9] if is_followed else [1.5, 1.0]
    assert world.run(500).output.q == near(goal, 1e-4)


@pytest.mark.parametrize(("lag", "is_followed"), [(1.5, False), (0.05, True)])
def test_a_publisher_whose_clock_is_another_is_compared_with_itself(world, lag, is_followed):
    moving(world)
    world.now += STOOD
    arrives(world, world.target([0.2, 0.9]), sent=5000.0 + lag, lag=lag)
    goal = [0.2, 0.9] if is_followed else [1.5, 1.0]
    assert world.run(500).output.q == near(goal, 1e-4)


def test_a_target_that_waited_does_not_count_however_late_it_is_handed_over(world):
    moving(world)
    world.now += STOOD
    world.run(int(5.0 * DRAIN / DT))
    arrives(world, world.target([0.2, 0.9]), sent=STOOD)
    assert world.run(500).output.q == near([1.5, 1.0], 1e-4)
    arrives(world, world.target([0.2, 0.9]), sent=STOOD)
    assert world.run(500).output.q == near([0.2, 0.9], 1e-4), "when all is as before, it does"


@pytest.mark.parametrize("is_stamped", [False, True])
@pytest.mark.parametrize(("ago", "is_followed"), [(STOOD, False), (0.05, True)])
def test_a_target_that_arrived_and_was_not_taken_is_as_old(world, is_stamped, ago, is_followed):
    moving(world)
    target = world.target([0.2, 0.9])
    sent, world.now = time.time_ns() - round(1e9 * ago), world.now + STOOD + DT
    if is_stamped:
        target.header.stamp.sec, target.header.stamp.nanosec = divmod(sent, 10**9)
    world.epoch = sent + round(1e9 * (ago - world.now))
    arrival = Arrival(target, world.now - ago, 1, 0.0)
    world.cycle(arrival)
    goal = [0.2, 0.9] if is_followed else [1.5, 1.0]
    assert world.run(500).output.q == near(goal, 1e-4)


@pytest.fixture
def driven(monkeypatch):
    """An arm under way, whose driver says that it is at the command."""
    world = controlled(monkeypatch, feedback_mode="auto", acceleration=[4.0])
    world.add_driver([0.0, 0.0])
    target = world.target([1.5, 1.0])
    for _ in range(100):
        outcome = world.run(target=target, driver=True)
        if outcome.output is not None:
            world.driver.position = outcome.output.q.tolist()
    assert outcome.is_command
    assert np.abs(outcome.output.velocity).max() > 0.3
    world.run()
    return world


def test_what_the_driver_said_meanwhile_does_not_count_however_late_it_is_heard(driven):
    driven.now += STOOD
    driven.run()
    for k in range(int(5.0 * DRAIN / DT)):
        outcome = driven.run(driver=True, lag=STOOD - k * DT)
        assert (outcome.state, outcome.is_command) == (ServoState.STALE, False)
    driven.driver.position = [0.4, 0.3]
    after = driven.run(3, driver=True).output
    assert after.q == near([0.4, 0.3], 2.0 * 3 * DT)


def test_a_driver_whose_clock_was_set_back_meanwhile_counts_after_a_second(driven):
    driven.now += STOOD
    driven.run()
    driven.driver.position = [0.4, 0.3]
    waited = driven.run(int(0.9 * FRESH / DT), driver=True, lag=3600.0)
    assert waited.state is ServoState.STALE
    after = driven.run(int((0.1 * FRESH + DRAIN) / DT) + 3, driver=True, lag=3600.0).output
    assert after.q == near([0.4, 0.3], 2.0 * 4 * DT)


def test_a_stamp_tells_by_itself(world):
    moving(world)
    target = world.target([0.2, 0.9])
    target.header.stamp.sec = 100
    world.now += STOOD
    world.now += DT
    world.epoch = 100_100_000_000 - round(1e9 * world.now)
    world.cycle(Arrival(target, world.now, 1))
    assert world.run(500).output.q == near([0.2, 0.9], 1e-4)


@pytest.mark.parametrize("cycles", [1.5, 6.0])
def test_a_shorter_gap_is_made_up_for_by_the_stop_that_was_sent(monkeypatch, cycles):
    world = controlled(
        monkeypatch,
        has_stop_trajectory=True,
        feedback_mode="none",
        acceleration=[4.0],
    )
    moving(world)
    stop = world.arm.controller.stop_path(DT)
    world.now += (cycles - 1.0) * DT
    after = world.run().output
    q, v, _ = stop.at(np.array([(cycles - 1.0) * DT]))  # a command is due a cycle after it is sent
    np.testing.assert_allclose(after.q, q[0] + after.velocity * DT, atol=1e-12)
    assert np.abs(after.velocity - v[0]).max() <= 4.0 * DT + 1e-9
    outcome = world.run()
    assert world.stream.is_old(outcome, 3 * DT)
    assert not world.stream.is_old(outcome, DT)


def test_where_nothing_goes_on_by_itself_a_short_gap_is_none(world):
    before = moving(world).output
    world.now += 5 * DT
    after = world.run().output
    assert after.q == near(before.q, 2.0 * 2.0 * DT + 1e-9), "it advances by two periods at most"
    assert np.abs(after.velocity - before.velocity).max() <= 4.0 * 2.0 * DT + 1e-9
