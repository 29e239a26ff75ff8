# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Measured pose and twist of the tip, from the joint states of a driver."""

import math

import numpy as np
import pytest
from geometry_msgs.msg import PoseStamped, TwistStamped
from robots import joint, urdf
from ros_client import Client, NodeProcess
from ros_streamer import HOME
from ros_wam import WAM
from sensor_msgs.msg import JointState

from dls_ik import RobotModel
from dls_ik.core.se3 import difference
from dls_ik.ros.frames import matrix_from_pose
from dls_ik.ros.servo.measured_tip import MeasuredTip, joint_velocities
from dls_ik.ros.servo.state_monitor import JointReading
from dls_ik.ros.servo.tip import Tip

pytestmark = pytest.mark.ros

STEP = 20_000_000  # [ns] period of joint states
V = np.array([0.05, -0.04, 0.03, 0.02, -0.06, 0.05, 0.04])  # [rad/s]
EPOCH = 1000 * 10**9  # [ns]


def reading(position, time=0.0, velocity=math.nan, stamp=0):
    return JointReading(position, time, time, velocity, stamp)


def test_joint_velocities_come_from_messages_stamps_or_arrival_times():
    sent = (reading(0.0, 1.0, 0.1), reading(9.0, 1.1, 0.3))
    stamped = (reading(0.0, 1.0, stamp=EPOCH), reading(0.2, 7.0, stamp=EPOCH + 10**8))
    bare = (reading(0.0, 1.0), reading(0.1, 1.1), reading(0.4, 1.2))
    np.testing.assert_allclose(
        joint_velocities([sent, stamped, bare], [False] * 3), [0.3, 2.0, 2.0]
    )
    assert joint_velocities([sent, bare[:1]], [False] * 2) is None
    assert joint_velocities([(bare[0], reading(0.1, 1.0))], [False]) is None


def test_velocity_of_a_continuous_joint_is_modulo_a_turn():
    turned = (reading(3.1, 0.0), reading(-3.1, 0.1))
    (v,) = joint_velocities([turned], [True])
    assert v == pytest.approx((2 * math.pi - 6.2) / 0.1)
    (v,) = joint_velocities([turned], [False])
    assert v == pytest.approx(-62.0)


CARRIED = urdf(
    "world rail foot arm hand",
    joint("slide", "prismatic", "world", "rail", axis="0 1 0"),
    joint("stand", "fixed", "rail", "foot", '<origin xyz="0 0 0.5" rpy="0.3 0.2 1.0"/>'),
    joint("turn", "revolute", "foot", "arm", '<limit lower="-2" upper="2" velocity="1"/>'),
    joint("end", "fixed", "arm", "hand", '<origin xyz="1 0 0.2"/>'),
)


@pytest.mark.parametrize("robot", [WAM, RobotModel.from_urdf(CARRIED, "foot", "hand")])
def test_the_twist_is_the_derivative_of_the_pose(robot):
    tip, rng = Tip(robot, dict), np.random.default_rng(5)
    for _ in range(20):
        q, v, dt = robot.random(rng=rng), rng.normal(size=robot.n), 1e-6
        before, after = tip.poses(q - 0.5 * dt * v), tip.poses(q + 0.5 * dt * v)
        np.testing.assert_allclose(tip.twist(q, v), difference(before, after) / dt, atol=1e-6)


def test_measured_tip_is_not_computed_without_subscribers(node):
    asked = []
    tip = MeasuredTip(node, lambda names, now: asked.append(names))
    tip.publish(Tip(WAM, dict), 1.0, 0)
    assert asked == []
    node.create_subscription(PoseStamped, "current_pose", asked.append, 1)
    tip.publish(Tip(WAM, dict), 2.0, 0)
    assert asked == [WAM.joint_names]


class MovingDriver:
    """Joint states of an arm at a constant velocity, with stamps at a constant interval."""

    def __init__(self, client):
        self._publisher = client.publisher(JointState, "joint_states", 10)
        self._k = 0

    def q(self, stamp):
        return HOME + 1e-9 * (stamp - EPOCH) * V

    def publish(self, velocity=()):
        self._k += 1
        message = JointState(name=list(WAM.joint_names), velocity=list(map(float, velocity)))
        message.position = self.q(EPOCH + self._k * STEP).tolist()
        stamp = message.header.stamp
        stamp.sec, stamp.nanosec = divmod(EPOCH + self._k * STEP, 10**9)
        self._publisher.publish(message)


def stamp_of(message):
    return message.header.stamp.sec * 10**9 + message.header.stamp.nanosec


def vector(twist):
    v, w = twist.linear, twist.angular
    return np.array([v.x, v.y, v.z, w.x, w.y, w.z])


@pytest.mark.slow
@pytest.mark.parametrize("sends_velocity", [False, True])
def test_the_node_publishes_pose_and_twist_of_each_measurement(sends_velocity):
    with (
        NodeProcess("-r", "__ns:=/seen", "-p", "robot:=wam", "-p", "output_topic:=cmd") as node,
        Client("seen") as client,
    ):
        node.wait_for_line("ready")
        driver, sent = MovingDriver(client), 3.0 * V if sends_velocity else ()
        poses = client.listen(PoseStamped, "current_pose")
        twists = client.listen(TwistStamped, "current_twist")

        def is_heard():
            driver.publish(sent)
            client.spin_for(1e-9 * STEP)
            return len(poses) > 20 and len(twists) > 20

        client.spin_until(is_heard, what="measured poses and twists")
        for message in poses:
            assert message.header.frame_id == WAM.tree.root
            T = WAM.fk(driver.q(stamp_of(message)))
            np.testing.assert_allclose(matrix_from_pose(message.pose), T, atol=1e-9)
        for message in twists:
            assert message.header.frame_id == WAM.tree.root
            J = WAM.jacobian(driver.q(stamp_of(message)))
            v = 3.0 * V if sends_velocity else V
            np.testing.assert_allclose(vector(message.twist), J @ v, atol=1e-6)
        for messages in (poses, twists):
            stamps = [stamp_of(message) for message in messages]
            assert stamps == sorted(set(stamps)), "each measurement once, in order"
        assert node.end() == 0
        assert "Traceback" not in node.output
