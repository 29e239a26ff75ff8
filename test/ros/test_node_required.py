"""The running node with a driver that is required: nothing moves without it, nor against it."""

import math

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs rclpy")
moveit = pytest.importorskip("moveit_msgs.msg", reason="needs moveit_msgs")
if not hasattr(moveit, "ServoStatus"):
    pytest.skip("this moveit_msgs has no ServoStatus", allow_module_level=True)

from hypothesis import given, settings
from hypothesis import strategies as st
from ros_streamer import HOME, Driver
from ros_wam import WAM
from ros_watched import Watched, pose, shifted, twist
from sensor_msgs.msg import JointState

pytestmark = [pytest.mark.ros, pytest.mark.slow]

START = HOME + 0.05
FAR = 1.5 * np.eye(WAM.n)[0]  # [rad] turned about the base
few = settings(max_examples=12, deadline=None, derandomize=True, database=None)


class Arm(Driver):
    """A driver that goes where it is commanded, unless it is stuck."""

    def __init__(self, arm, values):
        super().__init__(arm.client, WAM.joint_names, values)
        self._arm, self.stuck = arm, False

    def _publish(self):
        if self._arm.commands and not self.stuck:
            self.message.position = self._arm.commands[-1].position
        super()._publish()


@pytest.fixture
def required():
    limits = {"measurement_timeout": 2.0, "max_deviation": 0.5}  # a busy machine is no fault
    with Watched("required", feedback_mode="required", **limits) as arm:
        yield arm
        assert "Traceback" not in arm.node.output, arm.node.output
        assert arm.node.end() == 0


def test_waits_faults_and_recovers(required):
    arm = required
    arm.says("waiting for joint states", "/required/joint_states")
    arm.stream(lambda _: twist((0.0, 0.2, 0.0)), 0.2)
    arm.client.spin_for(0.5)
    assert not arm.commands

    driver = Arm(arm, START)
    arm.says("no target yet")
    arm.client.spin_for(0.5)
    assert not arm.commands, "a twist of long ago moves nothing"
    T = WAM.fk(START).copy()
    T[:3, 3] += 0.0, 0.2, 0.0
    arm.goes(T)
    arm.assert_calm(start=START)

    driver.stop()
    arm.says("fault", "no joint states", "2 s")
    arm.node.wait_for_line("no joint states")
    arm.stands()
    held = arm.q
    arm.send(pose(T))
    arm.says("passed over")
    driver = Arm(arm, START)
    arm.client.spin_for(0.3)
    np.testing.assert_array_equal(arm.q, held)
    arm.assert_calm()

    assert arm.reset().success
    arm.says("no target yet")
    driver.message.position = START.tolist()
    del arm.heard[:]
    arm.client.spin_for(0.5)
    arm.goes(T)
    arm.assert_calm()

    driver.stuck = True
    arm.send_alone(pose(WAM.fk(HOME + FAR)))
    arm.says("fault", "max_deviation", "commanded to")
    arm.stands()
    arm.assert_calm()
    driver.stuck = False
    arm.client.spin_for(0.3)
    assert arm.reset().success
    arm.says("no target yet")
    arm.goes(WAM.fk(HOME))
    arm.assert_calm()


def test_target_of_a_pause_is_passed_over_before_there_is_a_driver_too(required):
    arm = required
    assert arm.pause().success
    arm.says("paused")
    arm.send(pose(shifted(0.0, 0.1, 0.0)))
    arm.says("passed over")
    assert arm.pause(False).success
    arm.says("waiting for joint states")
    driver = Arm(arm, START)
    arm.says("no target yet")
    arm.client.spin_for(0.5)
    assert not arm.commands
    arm.send(pose(shifted(0.0, 0.1, 0.0)))
    arm.says("at the target")
    arm.assert_calm(start=START)
    driver.stop()


ODD = [1e9, 1.7e308, -1.7e308, math.nan, math.inf, -math.inf]
NAMES = list(WAM.joint_names)


@pytest.fixture(scope="module")
def heard():
    """A node that has a driver, and somebody else who sends joint states as well."""
    with Watched("heard", feedback_mode="auto") as arm:
        arm.driver = Arm(arm, HOME)
        arm.other = arm.client.publisher(JointState, "joint_states", 10)
        arm.client.spin_for(1.0)
        yield arm
        assert arm.node.process.poll() is None
        assert "Traceback" not in arm.node.output, arm.node.output


def joint_state(names, values):
    message = JointState(name=names, position=values)
    message.header.frame_id = "driver"
    return message


def said(arm, names, values, *words):
    """A message of joint states that is explained in the log, and moves nothing."""
    arm.other.publish(joint_state(names, values))
    arm.node.wait_for_line("WARN", *words, timeout=60.0)
    arm.goes(WAM.fk(HOME))
    arm.assert_calm()


def test_joint_states_that_are_not_valid_are_explained(heard):
    said(heard, NAMES, [0.0] * 6, "7 names and 6 positions")
    said(heard, [*NAMES, NAMES[2]], [0.0] * 8, "twice", NAMES[2])
    said(heard, NAMES, [*HOME[:6].tolist(), math.nan], "not finite", NAMES[6])
    said(heard, [], [])  # such as a driver sends that has nothing to say
    said(heard, ["gripper", ""], [1.0, 2.0])


values = st.lists(st.sampled_from(ODD), max_size=9)
names = st.lists(st.sampled_from([*NAMES, "", "x" * 300, "\u00e9"]), max_size=9)


@given(names | st.just(NAMES), values)
@few
def test_any_joint_states(heard, names, values):
    """While the arm is held by a target, nothing that is measured moves it."""
    arm = heard
    message = joint_state(names, values)
    message.velocity = message.effort = values
    message.header.stamp.sec = -1
    for _ in range(3):
        arm.other.publish(message)
    arm.client.spin_for(0.03)
    arm.goes(WAM.fk(HOME), 1e-3)
    arm.assert_calm()


def test_joint_states_in_a_flood_and_with_ten_thousand_joints(heard):
    many = joint_state([f"j{k}" for k in range(10_000)], [0.0] * 10_000)
    for _ in range(5):
        heard.other.publish(many)
    for _ in range(2000):
        heard.other.publish(joint_state(NAMES, HOME.tolist()))
    heard.goes(shifted(0.0, 0.1, 0.0))
    heard.goes(WAM.fk(HOME))
    heard.assert_calm()


@pytest.mark.parametrize(
    ("parameter", "words"),
    [
        ("feedback_mode:=maybe", ["feedback_mode", "auto, required, none"]),
        ("acceleration:=[1.0, 2.0]", ["acceleration", "7", "given: 2"]),
        ("acceleration:=[-1.0]", ["acceleration", "-1"]),
        ("acceleration:=[.nan]", ["acceleration", "finite"]),
        ("acceleration:=fast", ["acceleration", "list of numbers"]),
        ("jerk:=[10.0]", ["jerk", "acceleration"]),
        ("when_stuck:=panic", ["when_stuck", "joint_motion, hold"]),
        ("feed_forward:=1", ["feed_forward", "BOOL"]),
        ("target_timeout:=0.0", ["target_timeout"]),
        ("stamp_tolerance:=-1.0", ["stamp_tolerance"]),
        ("trajectory_period:=0.0", ["trajectory_period"]),
        ("max_deviation:=.inf", ["max_deviation"]),
        ("measurement_timeout:=-0.5", ["measurement_timeout"]),
    ],
)
def test_parameter_is_refused_in_one_line(parameter, words):
    from ros_client import READY, NodeProcess

    with NodeProcess("-p", "robot:=wam", "-p", parameter) as node:
        assert node.wait_for_end(READY) == 1
        node.wait_for_line("FATAL", "cannot start", *words)
        assert "Traceback" not in node.output
