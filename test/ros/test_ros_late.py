"""Cycles that begin late: the command is where the arm came to, and what waited does not count."""

import time

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs rclpy")
pytest.importorskip("moveit_msgs", reason="needs moveit_msgs")

from ros_world import DT, World, near

from dls_ik.ros.stream.cycle import Stream
from dls_ik.ros.stream.targets import Arrival
from dls_ik.ros.stream.whereabouts import DRAIN
from dls_ik.servo import ServoState

STOOD = 2.0  # [s]


@pytest.fixture
def world(monkeypatch):
    return World(monkeypatch, shows=False, shares=False, driver="none", acceleration=[4.0])


def moving(world):
    """Let the arm be on its way to a single pose."""
    return world.run(20, target=None) if world.stream.moves else _begun(world)


def _begun(world):
    world.run(target=world.target([1.5, 1.0]))
    outcome = world.run(20)
    assert np.abs(outcome.output.velocity).max() > 0.3
    return outcome


def arrives(world, target, sent):
    """A cycle with a target, `sent` [s] ago by the clock of its publisher."""
    world.now += DT
    arrival = Arrival(target, world.now, 1, time.time_ns() - round(1e9 * sent))
    return world.stream.cycle(world.now, 0, DT, arrival)


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


def test_a_stamp_tells_by_itself(world):
    moving(world)
    target = world.target([0.2, 0.9])
    target.header.stamp.sec = 100
    world.now += STOOD
    world.now += DT
    world.stream.cycle(world.now, 100_100_000_000, DT, Arrival(target, world.now, 1))
    assert world.run(500).output.q == near([0.2, 0.9], 1e-4)


def test_a_shorter_gap_is_made_up_for_by_the_stop_that_was_sent(monkeypatch, world):
    def coasted(q, v, elapsed):
        return q + 0.1, 0.5 * v

    arm = world.arm
    world.stream = Stream(
        world.states, world.stream._frames, world.stream._log, False, False, coasted
    )
    world.stream.use(arm)
    before = moving(world).output
    world.now += 5 * DT
    after = world.run().output
    assert after.q == near(before.q + 0.1, 2.0 * DT)
    assert np.abs(after.velocity - 0.5 * before.velocity).max() <= 4.0 * DT + 1e-9
    outcome = world.run()
    assert world.stream.is_old(outcome, 3 * DT)
    assert not world.stream.is_old(outcome, DT)


def test_where_nothing_goes_on_by_itself_a_short_gap_is_none(world):
    before = moving(world).output
    world.now += 5 * DT
    after = world.run().output
    assert after.q == near(before.q, 2.0 * DT + 1e-9)
    assert np.abs(after.velocity - before.velocity).max() <= 4.0 * DT + 1e-9
