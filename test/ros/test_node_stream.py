# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The stream of the running node: targets in; joint states, status and diagnostics out."""

import math

import numpy as np
import pytest
from geometry_msgs.msg import Pose, Twist, Vector3
from moveit_msgs.srv import GetPositionIK
from out_of_grasp import out_of_grasp
from ros_client import Client, NodeProcess
from ros_streamer import HOME, PERIOD, Streamer, motion, positions, stamped
from ros_wam import WAM
from sensor_msgs.msg import JointState

pytestmark = [pytest.mark.ros, pytest.mark.installed]


@pytest.fixture
def streamer(client):
    return Streamer(client)


def figure_of_eight(t):
    T = WAM.fk(HOME).copy()
    s = math.sin(0.5 * math.pi * t)
    T[:3, 3] += [0.0, 0.12 * s, 0.12 * s * math.cos(0.5 * math.pi * t)]
    return T


def assert_calm(states, limit=WAM.velocity):
    """Inside the limits, and no faster than the joints may be."""
    stamps, q, v = motion(states)
    assert WAM.within_limits(q, 1e-9).all()
    assert (np.abs(v) <= limit * (1.0 + 1e-6)).all()
    assert (np.diff(stamps) > 0.0).all()
    ahead = np.searchsorted(stamps, stamps + 0.2)
    ahead = ahead[ahead < len(q)]
    moved, elapsed = np.abs(q[ahead] - q[: len(ahead)]), stamps[ahead] - stamps[: len(ahead)]
    assert (moved <= np.outer(elapsed + 4 * PERIOD, limit)).all()


def test_figure_of_eight_is_followed_within_limits(streamer):
    streamer.go(figure_of_eight(0.0))
    del streamer.states[:-1]  # the first target may be asked about before the first answer
    errors = streamer.stream(figure_of_eight, 4.0)
    assert np.quantile(errors, 0.25) < 0.02, "late at times, where the machine is busy"
    path = np.array([figure_of_eight(t)[:3, 3] for t in np.arange(0.0, 4.0, 0.02)])
    tips = WAM.fk(np.array([positions(state) for state in streamer.states]))[:, :3, 3]
    away = np.linalg.norm(tips[:, None] - path, axis=2)
    assert away.min(axis=1).max() < 0.05, "a machine that is busy makes it late, not stray"
    assert away.min(axis=0).max() < 0.05, "nor leave out a part"
    assert_calm(streamer.states)
    streamer.go(figure_of_eight(3.99))


def test_service_does_not_stop_the_stream(streamer, client):
    streamer.go(figure_of_eight(0.0))
    request = GetPositionIK.Request()
    request.ik_request.pose_stamped = stamped(out_of_grasp(WAM, np.random.default_rng(1)))
    request.ik_request.timeout.nanosec = 800_000_000
    streamer.states.clear()
    response = client.call_in_time(GetPositionIK, "compute_ik", request)
    assert response.error_code.val == -31
    assert len(streamer.states) > 10, "none come while the loop waits for the solver"


def test_a_twist_without_a_header_is_followed_and_other_types_are_told_once():
    with (
        NodeProcess("-r", "__ns:=/bare", "-p", "robot:=wam", "-p", "twist_frame:=wam_tip") as node,
        Client("bare") as client,
    ):
        node.wait_for_line("ready")
        heard = client.listen(JointState, "joint_states", 100)
        poses = client.node.create_publisher(Pose, "target_pose", 1)
        twists = client.publisher(Twist, "target_twist", 1)  # once the node reads this type
        node.wait_for_line("subscribed to /bare/target_twist as geometry_msgs/msg/Twist", "wam_tip")
        start = WAM.fk(positions(heard[-1])) if heard else None

        def moved():
            nonlocal start
            twists.publish(Twist(linear=Vector3(z=-0.1)))
            poses.publish(Pose())
            if not heard:
                return False
            T = WAM.fk(positions(heard[-1]))
            start = T if start is None else start
            way = start[:3, :3].T @ (T - start)[:3, 3]  # along the axes of the tool
            assert np.abs(way[:2]).max() < 0.01
            return way[2] < -0.05

        client.spin_until(moved, what="motion along the tool")
        node.wait_for_line("WARN", "test_client publishes geometry_msgs/msg/Pose on /bare/target")
        client.spin_for(2.5)
        assert node.count("its messages are lost") == 1
        assert node.count("this node subscribes to geometry_msgs/msg/PoseStamped") == 1
        assert node.end() == 0
