# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Outputs: received messages, the order and names of joints, and topics."""

from contextlib import nullcontext

import numpy as np
import pytest
from rclpy.serialization import deserialize_message, serialize_message

from dls_ik import RobotModel
from dls_ik.errors import OptionError
from dls_ik.ros.params import Parameters
from dls_ik.ros.servo.outputs import OUTPUT_CLASSES, Outputs, OutputSpec, arrange_joints
from dls_ik.ros.servo.state_monitor import MAX_OWN_MESSAGES, Echo
from dls_ik.servo.knots import trajectory_knots
from dls_ik.servo.limiter import AccelerationLimiter
from dls_ik.servo.ticks import tick_scale

Q, VELOCITY = np.array([0.1, -0.2]), np.array([1.0, 2.0])
PERIOD = 0.008
ARM = RobotModel.from_dh(2 * [{"a": 1.0, "kind": "continuous", "velocity": 5.0}])


def make(kind):
    return OUTPUT_CLASSES[kind](OutputSpec(("a", "b"), PERIOD))


def stopping(q, velocity, acceleration=np.inf, count=0, robot=ARM):
    """Return the knots of a command q (n,), velocity (n,) and of the stop that follows."""
    acceleration = np.broadcast_to(acceleration, 2) * 1.0
    limiter = AccelerationLimiter(robot, acceleration)
    limiter.reset(q, velocity)
    stop = limiter.stop_path(PERIOD)
    return trajectory_knots(limiter.motion(), stop, acceleration, PERIOD, count)


def sent(output, *fills):
    """Fill a reused message several times; return the last one as received."""
    messages = [output.fill(*fill) for fill in fills]
    assert all(message is messages[0] for message in messages)
    return deserialize_message(serialize_message(messages[-1]), type(messages[-1]))


def times(trajectory):
    starts = [point.time_from_start for point in trajectory.points]
    return [start.sec + 1e-9 * start.nanosec for start in starts]


def test_joint_state_has_names_stamp_positions_and_velocities():
    received = sent(make("joint_state"), (VELOCITY, Q, 5), (Q, VELOCITY, 3 * 10**9 + 7))
    assert received.name == ["a", "b"]
    assert (received.header.stamp.sec, received.header.stamp.nanosec) == (3, 7)
    assert list(received.position) == Q.tolist()
    assert list(received.velocity) == VELOCITY.tolist()
    assert len(received.effort) == 0


def test_single_point_joint_trajectory_has_positions_after_one_period():
    received = sent(make("joint_trajectory"), (VELOCITY, Q, 5), (Q, VELOCITY, 6))
    assert received.joint_names == ["a", "b"]
    assert (received.header.stamp.sec, received.header.stamp.nanosec) == (0, 0)
    (point,) = received.points
    assert list(point.positions) == Q.tolist()
    assert len(point.velocities) == 0
    assert (point.time_from_start.sec, point.time_from_start.nanosec) == (0, 8_000_000)


def test_joint_trajectory_has_points_at_the_command_and_at_rest():
    fills = [
        (VELOCITY, Q, 5, stopping(VELOCITY, Q, 8.0)),
        (Q, VELOCITY, 6, stopping(Q, VELOCITY, 8.0)),
    ]
    received = sent(make("joint_trajectory"), *fills)
    assert times(received) == pytest.approx([0.008, 0.264])  # 2 / 8 s, in whole periods
    first, last = received.points
    assert list(first.positions) == Q.tolist()
    assert list(first.velocities) == VELOCITY.tolist()
    assert list(last.positions) == pytest.approx(Q + 0.128 * VELOCITY)
    assert list(last.velocities) == [0.0, 0.0]


def test_points_without_an_acceleration_limit_have_no_velocities():
    received = sent(make("joint_trajectory"), (Q, VELOCITY, 6, stopping(Q, VELOCITY)))
    assert times(received) == pytest.approx([0.008, 0.016])
    assert [len(point.velocities) for point in received.points] == [0, 0]
    assert list(received.points[1].positions) == pytest.approx(Q + 0.004 * VELOCITY)


def test_one_message_is_filled_with_fewer_and_more_points():
    output = make("joint_trajectory")
    more = stopping(Q, VELOCITY, 8.0, count=12)
    assert len(sent(output, (Q, VELOCITY, 5, more)).points) == 12
    assert times(sent(output, (Q, VELOCITY, 5, more)))[:3] == pytest.approx([0.008, 0.016, 0.024])
    assert len(sent(output, (Q, 0.0 * Q, 6, stopping(Q, 0.0 * Q, 8.0))).points) == 1
    assert len(sent(output, (Q, VELOCITY, 7, None)).points[0].velocities) == 0


def test_a_joint_that_stops_earlier_at_its_limit_adds_a_point():
    robot = RobotModel.from_dh(
        [
            {"a": 1.0, "lower": -3.0, "upper": 1.0, "velocity": 2.0},
            {"a": 1.0, "kind": "continuous", "velocity": 5.0},
        ]
    )
    knots = stopping(np.array([0.98, 0.0]), np.array([1.0, 2.0]), [50.0, 2.0], robot=robot)
    received = sent(make("joint_trajectory"), (knots.q[0], knots.v[0], 5, knots))
    assert times(received) == pytest.approx([0.008, 0.048, 1.008])
    assert received.points[1].positions[0] == pytest.approx(1.0, abs=1e-12)
    assert received.points[1].velocities[0] == 0.0


def test_position_array_has_the_commanded_positions():
    received = sent(make("position_array"), (VELOCITY, Q, 5), (Q, VELOCITY, 6))
    assert list(received.data) == Q.tolist()


def test_servo_ticks_are_whole_numbers_in_one_message():
    limits = np.array([-0.15, -1.0]), np.array([0.12, 1.0])
    scale = tick_scale(("a", "b"), limits, (0.1, 0.01), (10.0, 0.0), (1.0, -1.0))
    output = OUTPUT_CLASSES["servo_ticks"](OutputSpec(("a", "b"), PERIOD, ticks=scale))
    received = sent(output, (VELOCITY, Q, 5), (np.array([0.119, -0.2]), VELOCITY, 6))
    assert list(received.data) == [11, 20]
    with pytest.raises(OptionError, match="needs servo_resolution"):
        make("servo_ticks")


def test_echo_recognises_own_messages():
    echo = Echo()
    output = make("joint_state")
    for stamp in range(MAX_OWN_MESSAGES + 1):
        message = output.fill(Q * stamp, VELOCITY, stamp)
        echo.remember(message)
    assert echo.is_own(message)
    assert echo.is_own(output.fill(Q * 5, VELOCITY, 5))
    assert not echo.is_own(output.fill(Q * 5, VELOCITY, 6))
    assert not echo.is_own(output.fill(Q * 5 + 1e-15, VELOCITY, 5))
    assert not echo.is_own(output.fill(Q * 0, VELOCITY, 0))


def test_echo_distinguishes_two_arms():
    """Stamps of two arms may be equal, as simulated time may stand still."""
    echo = Echo()
    left, right = (
        OUTPUT_CLASSES["joint_state"](OutputSpec((f"{side}_a", f"{side}_b"), 0.01))
        for side in ("left", "right")
    )
    for k in range(3):
        echo.remember(left.fill(Q * k, VELOCITY, 7))
    assert all(echo.is_own(left.fill(Q * k, VELOCITY, 7)) for k in range(3))
    assert not echo.is_own(right.fill(Q, VELOCITY, 7))


@pytest.mark.parametrize(
    ("kind", "topic", "words"),
    [
        (
            "joint_trajectory",
            "joint_states",
            "/joint_states, .* subscribes to JointState",
        ),
        (
            "position_array",
            "/target_pose",
            "/target_pose, .* subscribes to PoseStamped",
        ),
        ("joint_state", "target_twist", "such as joint_states"),
        ("joint_state", "joint_states", None),
        ("joint_state, joint_trajectory", "joint_states, elsewhere", None),
    ],
)
def test_an_output_must_not_have_the_topic_of_another_type(node, kind, topic, words):
    parameters = Parameters().changed({"output_type": kind, "output_topic": topic})
    with pytest.raises(OptionError, match=words) if words else nullcontext():
        Outputs(node, parameters)


CHAIN = ("j1", "j2", "j3")


@pytest.mark.parametrize(
    ("given", "order", "names", "robot_names"),
    [
        ((), [0, 1, 2], CHAIN, {}),
        (((), ("a", "b", "c")), [0, 1, 2], ("a", "b", "c"), {"a": "j1", "b": "j2", "c": "j3"}),
        (
            (("j3", "j1", "j2"), ("c", "a", "j2")),
            [2, 0, 1],
            ("c", "a", "j2"),
            {"c": "j3", "a": "j1"},
        ),
    ],
)
def test_output_joints_have_the_given_order_and_names(given, order, names, robot_names):
    joints = arrange_joints(CHAIN, *given)
    assert joints.order.tolist() == order
    assert (joints.names, joints.robot_names) == (names, robot_names)


@pytest.mark.parametrize(
    ("joints", "names", "words"),
    [
        (("j1", "j2"), (), "joints: j1, j2, j3"),
        (("j1", "j2", "j3", "grip"), (), "grip.*joints: j1, j2, j3"),
        (("j1", "j2", "x"), (), "j1, j2, x.*joints: j1, j2, j3"),
        ((), ("a", "b"), "2 names .a, b. for 3 joints"),
        (CHAIN, ("a", "b", "c", "d"), "4 names .* for 3 joints .j1, j2, j3."),
    ],
)
def test_joints_other_than_those_of_the_chain_are_rejected(joints, names, words):
    with pytest.raises(OptionError, match=words):
        arrange_joints(CHAIN, joints, names)


@pytest.mark.parametrize(
    ("name", "given", "kept"),
    [
        ("output_type", "joint_state", ("joint_state",)),
        ("output_type", "position_array, joint_state", ("position_array", "joint_state")),
        ("output_type", ["joint_trajectory"] * 2, ("joint_trajectory",) * 2),
        ("output_topic", "commands", ("commands",)),
        ("output_topic", "", ()),
        ("output_names", "wam_j1,wam_j2", ("wam_j1", "wam_j2")),
        ("trajectory_points", 100, 100),
        ("trail", 0, 0.0),
    ],
)
def test_valid_output_parameters_are_accepted(name, given, kept):
    assert getattr(Parameters().changed({name: given}), name) == kept


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"output_type": ""}, "output_type must contain at least one type"),
        ({"output_type": "joint_state, pose"}, "joint_state, joint_trajectory, position_array"),
        (
            {"output_type": ["joint_state"] * 2, "output_topic": "a"},
            "one topic for each output_type .joint_state, joint_state.; got a",
        ),
        ({"output_topic": "a, b"}, "one topic for each output_type .joint_state.; got a, b"),
        ({"output_joints": "a, b, a"}, "output_joints contains a more than once"),
        ({"output_names": ["b", "b"]}, "output_names contains b more than once"),
        ({"output_type": "servo_ticks"}, "servo_resolution must be positive"),
        (
            {"output_type": "servo_ticks", "servo_resolution": [0.1], "servo_direction": [0.0]},
            "servo_direction must contain 1 and -1 only",
        ),
        ({"trajectory_points": -1}, "from 0 to 100"),
        ({"trajectory_points": 101}, "from 0 to 100"),
        ({"trajectory_points": 2.0}, "whole number"),
        ({"trail": 61.0}, "from 0 to 60 \\[s\\]"),
    ],
)
def test_invalid_output_parameters_are_rejected(given, words):
    with pytest.raises(OptionError, match=words):
        Parameters().changed(given)
