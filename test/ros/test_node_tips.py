# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The node follows targets of two tips over DDS, and a relative pose of the second tip."""

import numpy as np
import pytest
from geometry_msgs.msg import PoseStamped
from ros_client import Client, NodeProcess
from ros_streamer import stamped
from sensor_msgs.msg import JointState

from dls_ik import RobotModel
from dls_ik.model.files import share_file
from dls_ik.ros.frames import matrix_from_pose

moveit = pytest.importorskip("moveit_msgs.msg")
pytestmark = [pytest.mark.ros, pytest.mark.slow]

TIPS = LEFT, RIGHT = "left_wam_tip", "right_wam_tip"
BOTH = RobotModel.from_urdf(share_file("urdf", "two_wams.urdf"), tip=TIPS)
HOME = np.tile([0.0, 0.6, 0.0, 1.8, 0.0, 0.6, 0.0], 2)
T_LEFT, T_RIGHT = BOTH.fk(HOME)
GRIP = np.linalg.inv(T_LEFT) @ T_RIGHT


class Arms:
    """Node of two arms, with publishers of their targets and its commands."""

    def __init__(self):
        given = {
            "robot": str(share_file("urdf", "two_wams.urdf")), "groups": "[both]",
            "group.both.tip": f"[{LEFT},{RIGHT}]", "stream_group": "both",
            "acceleration": "[5.0]", "feedback_mode": "none",
            "initial_positions": HOME.tolist(), "stream_avoid_collisions": "none",
        }  # fmt: skip
        words = ["-r", "__ns:=/tips"]
        for name, value in given.items():
            words += ["-p", f"{name}:={value}"]
        self.node, self.client = NodeProcess(*words), Client("tips")
        self.commands = self.client.listen(JointState, "joint_states", 1000)
        self.statuses = self.client.listen(moveit.ServoStatus, "dls_ik/status", 1000)
        self.topics = {}

    def __enter__(self):
        self.node.wait_for_line("ready")
        for name in (*(f"target_pose/{tip}" for tip in TIPS), "target_relative"):
            self.topics[name] = self.client.publisher(PoseStamped, name, 1)
        self.client.spin_until(lambda: self.statuses, what="a status")
        return self

    def __exit__(self, *failure):
        self.client.__exit__()
        self.node.__exit__(*failure)

    @property
    def hands(self):
        return BOTH.fk(np.array(self.commands[-1].position))

    @property
    def grip(self):
        left, right = self.hands
        return np.linalg.inv(left) @ right

    @property
    def stands(self):
        """Whether the last two commands are equal."""
        last = np.array([message.position for message in self.commands[-2:]])
        return bool(np.ptp(last, axis=0).max() < 1e-7)

    def send(self, **poses):
        """Publish poses by the last part of their topic."""
        for name, T in poses.items():
            topic = next(t for t in self.topics if t.split("/")[-1].endswith(name))
            self.topics[topic].publish(stamped(T))

    def stream(self, condition, what, **poses):
        """Publish poses until a condition holds."""

        def send():
            self.send(**poses)

        self.client.send_until(send, condition, what)

    def status(self, *words):
        """Return whether the newest status has all words."""
        return bool(self.statuses) and all(w in self.statuses[-1].message for w in words)


@pytest.fixture(scope="module")
def arms():
    with Arms() as started:
        yield started


@pytest.fixture(autouse=True)
def plain(arms):
    """Start each test without a relative pose, and with arms that stand."""
    assert arms.client.set_parameters(relative_pose=[]).successful
    arms.stream(
        lambda: arms.commands and arms.stands and is_at(arms.hands, [T_LEFT, T_RIGHT]),
        "the arms at their first poses", left_wam_tip=T_LEFT, right_wam_tip=T_RIGHT,
    )  # fmt: skip


def moved(T, *by):
    T = T.copy()
    T[:3, 3] += by
    return T


def is_at(T, target, tolerance=1e-3):
    return bool(np.abs(T - target).max() < tolerance)


def test_each_tip_follows_its_topic_and_holds_when_its_stream_ends(arms):
    assert arms.node.count("/tips/target_pose/left_wam_tip", "/tips/target_relative")
    poses = arms.client.listen(PoseStamped, f"dls_ik/tip_pose/{RIGHT}", 10)
    left, right = moved(T_LEFT, 0.05, 0.0, 0.1), moved(T_RIGHT, 0.0, 0.1, 0.05)
    arms.stream(
        lambda: is_at(arms.hands[0], left) and is_at(arms.hands[1], right),
        "both tips at their targets", left_wam_tip=left, right_wam_tip=right,
    )  # fmt: skip
    arms.stream(lambda: arms.status(f"{LEFT}: at the target"), "a status", left_wam_tip=left)
    assert f"{RIGHT}: at the target" in arms.statuses[-1].message
    other = moved(T_LEFT, 0.05, 0.05, 0.1)
    arms.stream(lambda: is_at(arms.hands[0], other), "the left tip alone", left_wam_tip=other)
    assert is_at(arms.hands[1], right, 1e-5)
    arms.client.spin_until(lambda: poses, what="poses of the right tip")
    assert is_at(matrix_from_pose(poses[-1].pose), right)


def test_relative_pose_stands_above_the_targets(arms):
    start = arms.grip
    other = moved(start, 0.0, 0.05, 0.0)
    arms.stream(
        lambda: arms.stands and is_at(arms.grip, other, 1e-5), "the relative pose", relative=other
    )
    value = arms.client.get_parameter("relative_pose").double_array_value
    assert list(value)[:3] == pytest.approx(other[:3, 3], abs=1e-9)
    first = len(arms.commands)
    far = moved(T_LEFT, 0.0, 0.0, 0.15)
    arms.stream(lambda: is_at(arms.hands[0], far), "the object", left_wam_tip=far)
    q = np.array([message.position for message in arms.commands[first:]])
    T = BOTH.fk(q)
    error = np.linalg.inv(T[:, 0]) @ T[:, 1] - other
    assert np.linalg.norm(error[:, :3, 3], axis=1).max() < 1e-4
    assert arms.status(f"{RIGHT} in {LEFT}: ")


def test_targets_that_fit_no_tip_are_ignored_and_say_why(arms):
    assert arms.client.set_parameters(relative_pose=[*GRIP[:3, 3].tolist(), 0.0, 0.0, 0.0, 1.0])
    still = arms.hands[0]
    arms.stream(
        lambda: arms.node.count("target ignored", "'right_wam_tip' is free"),
        "the reason", right_wam_tip=T_RIGHT,
    )  # fmt: skip
    assert is_at(arms.hands[0], still, 0.2)
    message = stamped(GRIP)
    message.header.frame_id = RIGHT
    arms.client.send_until(
        lambda: arms.topics["target_relative"].publish(message),
        lambda: arms.node.count("are in the frame of 'left_wam_tip'"), "the frame",
    )  # fmt: skip
    result = arms.client.set_parameters(relative_pose=[1.0])
    assert not result.successful
    assert "unit quaternion" in result.reason
    assert arms.client.set_parameters(relative_pose=[]).successful
