"""What the running node publishes for those who watch."""

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs rclpy")
pytest.importorskip("moveit_msgs", reason="needs moveit_msgs")

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import PoseStamped
from ros_client import Client, NodeProcess
from ros_streamer import HOME, Streamer, stamped
from ros_wam import WAM
from visualization_msgs.msg import Marker, MarkerArray

from dls_ik.ros.frames import matrix_from_pose

pytestmark = [pytest.mark.ros, pytest.mark.installed]


def listen_to_status(client, name):
    """What one node says on the topic that all nodes of a domain share."""
    heard = []

    def hear(array):
        heard.extend(status for status in array.status if status.name == name)

    client.node.create_subscription(DiagnosticArray, "/diagnostics", hear, 10)
    return heard


def values(status):
    return {item.key: item.value for item in status.values}


def near(message, T):
    return np.abs(matrix_from_pose(message.pose) - T).max() < 1e-4


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


def test_diagnostics_before_there_is_a_robot_or_a_target():
    with NodeProcess("-r", "__ns:=/idle") as node, Client("idle") as client:
        heard = listen_to_status(client, "/idle/dls_ik: stream")
        node.wait_for_line("waiting for a robot")
        client.spin_until(lambda: len(heard) >= 2)
        assert heard[-1].level == DiagnosticStatus.STALE
        assert heard[-1].message == "no robot yet"
        assert node.end() == 0


def stamp_of(message):
    return message.header.stamp.sec, message.header.stamp.nanosec


def test_tip_pose_is_that_of_the_command(wam_node, client):
    tips = client.listen(PoseStamped, "dls_ik/tip_pose")
    streamer = Streamer(client)
    T = WAM.fk(HOME)
    streamer.go(T)

    def pairs():
        """Poses of the tip, each with the command of the same time."""
        states = {stamp_of(state): state for state in streamer.states}
        return [(m, states[stamp_of(m)]) for m in tips if stamp_of(m) in states]

    client.spin_until(lambda: len(pairs()) > 5 and near(tips[-1], T))
    assert tips[-1].header.frame_id == WAM.tree.root
    stamps = [stamp_of(m) for m in tips]
    assert stamps == sorted(set(stamps))
    for tip, state in pairs():
        assert matrix_from_pose(tip.pose) == pytest.approx(WAM.fk(np.array(state.position)))


def test_markers_of_target_tip_and_trail(wam_node, client):
    arrays = client.listen(MarkerArray, "dls_ik/markers")
    streamer = Streamer(client)
    T = WAM.fk(HOME)
    streamer.go(WAM.fk(HOME + 0.2))
    streamer.go(T)
    client.spin_until(lambda: arrays and near(by_name(arrays[-1])["tip"], T))
    markers = by_name(arrays[-1])
    assert set(markers) == {"target", "tip", "trail"}
    assert all(m.header.frame_id == WAM.tree.root for m in markers.values())
    assert all(m.action == Marker.ADD for m in markers.values())
    assert near(markers["target"], T)
    trail = np.array([[p.x, p.y, p.z] for p in markers["trail"].points])
    assert np.linalg.norm(trail[-1] - T[:3, 3]) < 0.05
    assert np.linalg.norm(trail - WAM.fk(HOME + 0.2)[:3, 3], axis=1).min() < 0.05


def by_name(array):
    return {marker.ns: marker for marker in array.markers}
