# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The stream of the running node: targets in; joint states, status and diagnostics out."""

import math

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import Pose, Twist, Vector3
from moveit_msgs import msg as moveit
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


def test_figure_is_followed(streamer):
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


def test_status_is_published(streamer, client):
    if not hasattr(moveit, "ServoStatus"):
        pytest.skip("this moveit_msgs has no ServoStatus")
    statuses = client.listen(moveit.ServoStatus, "dls_ik/status")
    streamer.go(figure_of_eight(0.0))
    client.spin_until(lambda: statuses and statuses[-1].code == 0)
    bad = stamped(np.eye(4))
    bad.pose.position.x = math.nan
    streamer.targets.publish(bad)
    client.spin_until(lambda: statuses[-1].code == -1)
    assert "invalid target" in statuses[-1].message
    streamer.targets.publish(stamped(figure_of_eight(0.0)))
    client.spin_until(lambda: statuses[-1].code == 0)


def test_service_does_not_stop_the_stream(streamer, client):
    streamer.go(figure_of_eight(0.0))
    request = GetPositionIK.Request()
    request.ik_request.pose_stamped = stamped(out_of_grasp(WAM, np.random.default_rng(1)))
    request.ik_request.timeout.nanosec = 800_000_000
    streamer.states.clear()
    response = client.call(GetPositionIK, "compute_ik", request)
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


def listen_to_status(client, name):
    """What one node says on the topic that all nodes of a domain share."""
    heard = []

    def hear(array):
        heard.extend(status for status in array.status if status.name == name)

    client.node.create_subscription(DiagnosticArray, "/diagnostics", hear, 10)
    return heard


def values(status):
    return {item.key: item.value for item in status.values}


def test_diagnostics(wam_node, client):
    heard = listen_to_status(client, "/dls_ik: stream")
    streamer = Streamer(client)
    T = WAM.fk(HOME)
    streamer.go(T)
    heard.clear()
    client.spin_until(lambda: len(heard) >= 2, what="diagnostics")
    status, seen = heard[-1], values(heard[-1])
    assert status.hardware_id == WAM.name
    assert status.level in (DiagnosticStatus.OK, DiagnosticStatus.WARN)
    assert status.message
    assert seen["rate asked [Hz]"] == "100"
    assert 0.0 < float(seen["rate measured [Hz]"]) < 130.0
    assert int(seen["cycles"]) > int(values(heard[0])["cycles"])
    assert float(seen["position error [m]"]) < 1e-3
    assert float(seen["worst cycle time [ms]"]) >= float(seen["mean cycle time [ms]"]) > 0.0
    for name, low, high in zip(WAM.joint_names, WAM.lower, WAM.upper, strict=True):
        distance = float(seen[f"distance to a limit, {name} [rad or m]"])
        assert 0.0 <= distance <= 0.5 * (high - low) + 1e-4
    assert seen["joint nearest to a limit"] in WAM.joint_names

    bad = stamped(T)
    bad.header.frame_id = "nowhere"
    streamer.targets.publish(bad)
    client.spin_until(lambda: heard[-1].level == DiagnosticStatus.ERROR, what="an error")
    streamer.go(T)
