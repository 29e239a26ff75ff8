"""Commands that wait for a driver wait for it again when it is gone."""

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs rclpy")
pytest.importorskip("moveit_msgs", reason="needs moveit_msgs")

from ros_world import DT, controlled, near
from sensor_msgs.msg import JointState

from dls_ik.ros.servo.state_monitor import FRESH
from dls_ik.servo import ServoState

START, ELSEWHERE = [0.8, 0.9], [-0.5, 1.4]


def driven(monkeypatch, **parameters):
    """A world whose arm is at its target in front of a controller."""
    world = controlled(monkeypatch, **parameters)
    world.add_driver(START)
    world.run(10, driver=True)
    world.run(target=world.target([0.9, 1.0]), driver=True)
    assert world.run(100, driver=True).is_command
    return world


def test_a_driver_that_is_gone_is_waited_for_and_begun_with_where_it_is_then(monkeypatch):
    world = driven(monkeypatch)
    assert world.run(int(0.9 * FRESH / DT)).is_command, "a gap"
    outcome = world.run(int(0.2 * FRESH / DT))
    assert not outcome.is_command
    assert outcome.message.startswith("waiting for joint states")
    assert any("no joint states" in line for line in world.node.lines)
    world.driver.position = ELSEWHERE
    assert not world.run(200, driver=True).is_command, "the target of before is forgotten"
    first = world.run(target=world.target([-0.4, 1.3]), driver=True)
    assert first.is_command
    assert first.output.q == near(ELSEWHERE, 2.0 * DT + 1e-9)


def test_one_that_is_gone_in_motion_stops_the_arm_and_the_last_command_stands(monkeypatch):
    world = driven(monkeypatch, acceleration=[2.0])
    sent = []
    for k in range(300):
        world.driver.position = [0.9, 1.0] if not sent else sent[-1].output.q.tolist()
        target = world.target([0.9 + 0.01 * k, 1.0]) if k < 100 else None
        outcome = world.run(target=target, driver=k < 40)
        if outcome.is_command:
            sent.append(outcome)
    last = sent[-1].output
    assert not last.velocity.any()
    assert any(each.output.velocity.any() for each in sent[-10:])
    steps = np.diff([each.output.velocity for each in sent], axis=0)
    assert np.abs(steps).max() <= 2.0 * DT + 1e-9


def test_in_a_fault_nothing_goes_out_once_the_arm_stands(monkeypatch):
    world = driven(monkeypatch, feedback_mode="required", measurement_timeout=0.2)
    outcome = world.run(30)
    assert outcome.state is ServoState.FAULT
    assert not outcome.is_command
    world.driver.position = ELSEWHERE
    assert not world.run(50, driver=True).is_command


def test_one_in_three_messages_that_is_off_is_passed_over(monkeypatch):
    world = driven(monkeypatch, feedback_mode="required")
    for k in range(30):
        world.driver.position = [3.0, -3.0] if k % 3 == 0 else [0.9, 1.0]
        assert world.run(driver=True).state is ServoState.REACHED
    world.driver.position = [3.0, -3.0]
    assert world.run(2, driver=True).state is ServoState.FAULT


def test_what_is_heard_after_a_silence_is_not_mixed_with_what_was_before(monkeypatch):
    world = driven(monkeypatch)
    world.now += 2 * FRESH
    names = world.robot.joint_names
    world.states.store(JointState(name=list(names), position=ELSEWHERE))
    assert world.states.latest(names, world.now).q == near(ELSEWHERE)
