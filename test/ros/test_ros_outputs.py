"""Commands as messages, as they come out on the other side."""

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs rclpy")

from rclpy.serialization import deserialize_message, serialize_message

from dls_ik.ros.echo import MEMORY, Echo
from dls_ik.ros.outputs import OUTPUTS

Q, VELOCITY = np.array([0.1, -0.2]), np.array([1.0, 2.0])


def sent(kind, *fills):
    """What arrives of the last of some messages, which is one that was filled before."""
    output = OUTPUTS[kind](["a", "b"], 0.008)
    for fill in fills:
        message = output.fill(*fill)
    return deserialize_message(serialize_message(message), type(message))


def test_joint_state():
    received = sent("joint_state", (VELOCITY, Q, 5), (Q, VELOCITY, 3 * 10**9 + 7))
    assert received.name == ["a", "b"]
    assert (received.header.stamp.sec, received.header.stamp.nanosec) == (3, 7)
    assert list(received.position) == Q.tolist()
    assert list(received.velocity) == VELOCITY.tolist()
    assert len(received.effort) == 0


def test_joint_trajectory():
    received = sent("joint_trajectory", (VELOCITY, Q, 5), (Q, VELOCITY, 6))
    assert received.joint_names == ["a", "b"]
    assert (received.header.stamp.sec, received.header.stamp.nanosec) == (0, 0)
    (point,) = received.points
    assert list(point.positions) == Q.tolist()
    assert len(point.velocities) == 0
    assert (point.time_from_start.sec, point.time_from_start.nanosec) == (0, 8_000_000)


def test_position_array():
    assert list(sent("position_array", (VELOCITY, Q, 5), (Q, VELOCITY, 6)).data) == Q.tolist()


def test_echo_knows_its_own_messages():
    echo = Echo()
    output = OUTPUTS["joint_state"](["a", "b"], 0.01)
    for stamp in range(MEMORY + 1):
        message = output.fill(Q * stamp, VELOCITY, stamp)
        echo.remember(message)
    assert echo.is_own(message)
    assert echo.is_own(output.fill(Q * 5, VELOCITY, 5))
    assert not echo.is_own(output.fill(Q * 5, VELOCITY, 6))
    assert not echo.is_own(output.fill(Q * 5 + 1e-15, VELOCITY, 5))
    assert not echo.is_own(output.fill(Q * 0, VELOCITY, 0))


def test_echo_knows_all_messages_of_one_stamp():
    """Simulated time may stand still for several cycles."""
    echo = Echo()
    output = OUTPUTS["joint_state"](["a", "b"], 0.01)
    for k in range(3):
        echo.remember(output.fill(Q * k, VELOCITY, 7))
    assert all(echo.is_own(output.fill(Q * k, VELOCITY, 7)) for k in range(3))


def test_echo_does_not_take_another_arm_for_itself():
    """Two arms in the same place may say so under the same stamp of simulated time."""
    echo = Echo()
    echo.remember(OUTPUTS["joint_state"](["left_a", "left_b"], 0.01).fill(Q, VELOCITY, 7))
    assert not echo.is_own(
        OUTPUTS["joint_state"](["right_a", "right_b"], 0.01).fill(Q, VELOCITY, 7)
    )
