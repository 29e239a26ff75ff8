# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Joint states of drivers: start of the arm, and lag behind its commands."""

import math

import numpy as np
import pytest
from ros_world import DT, World, near
from sensor_msgs.msg import JointState

from dls_ik.ros.servo.freshness import READING_TIMEOUT
from dls_ik.ros.servo.state_monitor import DISCOVERY_TIME
from dls_ik.ros.sim_arm.arm import Dynamics, SimulatedArm, standstill
from dls_ik.servo import Controller, ServoState
from dls_ik.servo.supervision import AT_REST


@pytest.fixture
def world(monkeypatch):
    return World(monkeypatch)


def test_starts_at_the_measured_position(world):
    world.add_driver([0.8, 0.9])
    assert not world.run(10, driver=True).is_command
    first = world.run(target=world.target([0.9, 1.0]), driver=True).output
    assert first.q == near([0.8, 0.9], 2.0 * DT + 1e-9)


def test_continues_from_the_last_command_while_it_moves(world):
    world.add_driver([0.8, 0.9])
    world.run(10, driver=True)
    for k in range(20):
        motion = world.run(target=world.target([0.8 + 0.01 * k, 0.9]), driver=True).output
    assert motion.q[0] > 0.9


def test_starts_at_the_measured_position_again_after_a_rest(world):
    world.add_driver([0.8, 0.9])
    world.run(10, driver=True)
    world.run(target=world.target([1.0, 1.0]), driver=True)
    held = world.run(int(2 * AT_REST / DT) + 50, driver=True).output
    assert held.q == near([1.0, 1.0])
    world.driver.position = [0.95, 0.97]
    assert world.run(5, driver=True).output.q == near([1.0, 1.0])
    assert world.run(target=world.target([0.95, 0.97]), driver=True).output.q == near([0.95, 0.97])


def test_logs_the_arrival_of_awaited_joint_states(world):
    world.add_driver([0.8, 0.9])
    outcome = world.run(3, target=world.target([0.9, 1.0]))
    assert outcome.message.startswith("waiting for joint states on /joint_states")
    assert not outcome.is_command
    world.run(3, driver=True)
    assert "received joint states on /joint_states: ready for targets" in world.node.lines


def test_logs_the_start_at_initial_positions_without_joint_states(world):
    world.now -= 2.0 * DISCOVERY_TIME
    assert world.run(3).message == "waiting for joint states on /joint_states"
    assert not world.run(int(0.9 * DISCOVERY_TIME / DT)).is_command
    assert world.run(int(1.1 * DISCOVERY_TIME / DT)).is_command
    (line,) = world.node.lines
    assert line.startswith("no node publishes joint states of these joints on /joint_states")


def test_waits_no_longer_than_discovery_time_for_other_drivers(world):
    world.add_driver([0.1], names=["gripper"])
    world.run(target=world.target([0.5, 0.5]), driver=True)
    assert not world.run(int(0.5 * DISCOVERY_TIME / DT), driver=True).is_command
    assert world.run(int(2.0 * DISCOVERY_TIME / DT), driver=True).output.q == near([0.5, 0.5])


def test_displays_the_last_measured_position_of_a_driver_that_exited(world):
    world.add_driver([0.8, 0.9])
    assert not world.run(10, driver=True).is_command
    world.node.publishers -= 1
    world.node.look_out()
    assert not world.node.listeners
    assert world.run(int(1.1 * READING_TIMEOUT / DT)).output.q == near([0.8, 0.9])


def test_ignores_its_own_joint_states(world):
    world.add_driver([0.1], names=["gripper"])
    world.run(int(2.0 * DISCOVERY_TIME / DT))
    for _ in range(100):
        outcome = world.run(driver=True)
        message = JointState(
            name=list(outcome.arm.robot.joint_names), position=outcome.output.q.tolist()
        )
        message.header.stamp.nanosec = int(world.now * 1e6) % 10**9
        world.echo.remember(message)
        world.states.store(message)
    assert world.states.latest(world.robot.joint_names, world.now) is None
    assert world.states.values() == {"gripper": 0.1}


def test_warns_once_about_a_driver_on_its_topic(world):
    world.add_driver([0.8, 0.9])
    world.run(50, target=world.target([0.9, 1.0]), driver=True)
    (line,) = world.node.lines
    assert "/joint_states" in line
    assert "output_topic" in line


def test_does_not_warn_about_a_driver_on_another_topic(monkeypatch):
    world = World(monkeypatch, shares=False)
    world.add_driver([0.8, 0.9])
    world.run(50, target=world.target([0.9, 1.0]), driver=True)
    assert world.node.lines == []


def test_current_state_is_measured_or_else_commanded(world):
    assert world.stream.current(world.arm) == {"joint1": 0.0, "joint2": 0.0}
    world.run(200, target=world.target([0.5, 0.7]))
    assert list(world.stream.current(world.arm).values()) == near([0.5, 0.7])
    world.add_driver([0.8, 0.9, 0.1], names=["joint1", "joint2", "gripper"])
    world.run(driver=True)
    expected = {"joint1": 0.8, "joint2": 0.9, "gripper": 0.1}
    assert world.stream.current(world.arm) == expected
    world.now += 2 * READING_TIMEOUT
    assert world.stream.current(world.arm)["joint1"] == near(0.5)
    assert world.stream.current(world.arm)["gripper"] == 0.1


def test_invalid_joint_states_are_ignored_and_logged(world):
    world.states.store(JointState(name=["joint1", "joint2"], position=[1.0]))
    world.states.store(JointState(name=["joint1"], position=[]))
    assert world.states.values() == {}
    world.states.store(JointState(name=["joint1", "joint2"], position=[0.5, math.nan]))
    assert world.states.values() == {"joint1": 0.5}
    world.states.store(JointState(name=["joint2", "joint2"], position=[0.5, 0.6]))
    assert world.states.values() == {"joint1": 0.5}
    lengths, value, name = world.node.lines
    assert "2 names and 1 positions" in lengths
    assert "joint2" in value
    assert "twice" in name


def test_joint_states_of_several_drivers_are_combined(world):
    world.states.store(JointState(name=["joint1"], position=[0.5]))
    world.states.store(JointState(name=["joint2"], position=[0.6]))
    assert world.states.latest(world.robot.joint_names, world.now).q == near([0.5, 0.6])
    world.now += 2 * READING_TIMEOUT
    world.states.store(JointState(name=["joint2"], position=[0.6]))
    assert world.states.latest(world.robot.joint_names, world.now) is None


def test_joint_names_of_a_driver_are_translated(world):
    world.states.rename({"a": "joint2", "joint2": "joint1"})
    world.states.store(JointState(name=["a", "joint2", "grip"], position=[0.5, 0.6, 0.1]))
    assert world.states.latest(world.robot.joint_names, world.now).q == near([0.6, 0.5])
    assert world.states.values() == {"joint2": 0.5, "joint1": 0.6, "grip": 0.1}


def test_renamed_joints_must_be_received_again_before_the_start(world):
    world.add_driver([0.8, 0.9])
    world.run(10, driver=True)
    world.states.rename({"joint1": "joint2", "joint2": "joint1"})
    assert not world.run(5, target=world.target([0.9, 0.8])).is_command
    first = world.run(driver=True).output
    assert first.q == near([0.9, 0.8])
    world.states.rename({"joint1": "joint2", "joint2": "joint1"})
    assert world.states.latest(world.robot.joint_names, world.now).q == near([0.9, 0.8])


class Followed:
    """Simulated arm with a lag, a required driver and a swinging target."""

    START = np.array([0.8, 0.9])

    def __init__(self, monkeypatch, delay=0.08, time_constant=0.12, **parameters):
        self.world = World(
            monkeypatch, feedback_mode="required", output_type="joint_trajectory", **parameters
        )
        dynamics = Dynamics(np.full(2, np.inf), delay, time_constant)
        self.arm = SimulatedArm(self.START, dynamics, 0, self.world.now)
        self.world.add_driver(self.START)
        self.world.run(5, driver=True)

    def run(self, seconds, heard=True, target=True):
        """Run cycles, whose commands the arm receives; return the outcome of the last cycle."""
        for _ in range(round(seconds / DT)):
            world = self.world
            swing = 0.3 * math.sin(2.0 * world.now) * np.array([1.0, -0.5])
            outcome = world.run(
                target=world.target(self.START + swing) if target else None, driver=heard
            )
            if outcome.output is not None:
                self.arm.command(standstill(outcome.output.q, world.now), world.now)
            self.arm.advance(world.now)
            world.driver.position = self.arm.q.tolist()
        return outcome


def test_the_lag_of_a_simulated_arm_is_its_delay_and_its_time_constant(monkeypatch):
    followed = Followed(monkeypatch)
    assert math.isnan(followed.world.stream.lag())
    followed.run(6.0)
    # Steps delay the command by half a cycle on average, and the measurement is one cycle late.
    assert followed.world.stream.lag() == pytest.approx(0.08 + 0.12 + 1.5 * DT, abs=0.5 * DT)


def test_after_a_reset_the_status_does_not_repeat_the_fault(monkeypatch):
    followed = Followed(monkeypatch, measurement_timeout=0.2)
    followed.run(1.0)
    fault = followed.run(0.4, heard=False)
    assert fault.state is ServoState.FAULT
    assert "no joint states received for 0.2 s, the last 0.2" in fault.message
    assert fault.message.count("no joint states") == 1
    assert fault.message.endswith("; target ignored")
    followed.world.stream.submit(Controller.reset)
    waits = followed.run(DT, heard=False)
    assert waits.state is ServoState.WAITING
    assert waits.message == "waiting for joint states on /joint_states"
    followed.run(1.0)
    assert followed.run(DT).state in (ServoState.FOLLOWING, ServoState.REACHED)
