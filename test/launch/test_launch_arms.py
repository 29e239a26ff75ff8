"""Arms that move under the launch files: one that is simulated, two at the same time."""

import time
from collections.abc import Callable

import numpy as np
import pytest

pytest.importorskip("launch_ros", reason="needs launch and launch_ros, which come with ROS 2")
pytest.importorskip("rclpy", reason="needs rclpy")
pytest.importorskip("moveit_msgs", reason="needs moveit_msgs")
pytest.importorskip("dls_ik.ros", reason="needs the node")

import rclpy
from ament_prefix import RECORDER, Launch, Prefix
from geometry_msgs.msg import PoseStamped
from rclpy.node import Node
from robots import URDF
from sensor_msgs.msg import JointState
from visualization_msgs.msg import InteractiveMarker
from visualization_msgs.srv import GetInteractiveMarkers

from dls_ik import RobotModel
from dls_ik.ros.frames import matrix_from_pose, pose_from_matrix

pytestmark = [pytest.mark.ros, pytest.mark.installed]

PATIENCE = 300.0  # [s], the kernels may have to be compiled
HOME = np.array([0.0, 0.6, 0.0, 1.8, 0.0, 0.6, 0.0])
SIDES = ("left", "right")


class Joints:
    """The positions of all joints on a topic, of whoever publishes them."""

    def __init__(self, client: Node, topic: str) -> None:
        self.positions: dict[str, float] = {}
        self.seen: list[tuple[str, ...]] = []  # the names in each message
        client.create_subscription(JointState, topic, self._store, 50)

    def _store(self, message: JointState) -> None:
        self.seen.append(tuple(message.name))
        self.positions.update(zip(message.name, message.position, strict=True))

    def tip(self, arm: RobotModel) -> np.ndarray:
        """(4, 4) where the tip is; NaN before its joints were heard of."""
        q = [self.positions.get(name, np.nan) for name in arm.joint_names]
        return arm.fk(q) if np.isfinite(q).all() else np.full((4, 4), np.nan)


def stamped(T: np.ndarray, frame: str = "") -> PoseStamped:
    message = PoseStamped(pose=pose_from_matrix(T))
    message.header.frame_id = frame
    return message


def follow(
    client: Node,
    launch: Launch,
    targets: dict[str, PoseStamped],
    is_there: Callable[[], bool],
) -> None:
    """Publish targets by their topics, until something holds."""
    publishers = {topic: client.create_publisher(PoseStamped, topic, 1) for topic in targets}
    deadline = time.monotonic() + PATIENCE
    while not is_there():
        launch.check()
        assert time.monotonic() < deadline, launch.output()
        for topic, message in targets.items():
            publishers[topic].publish(message)
        rclpy.spin_once(client, timeout_sec=0.02)
    for publisher in publishers.values():
        client.destroy_publisher(publisher)


def test_the_wam_is_driven_as_a_simulated_arm(start: Callable[..., Launch], client: Node) -> None:
    launch = start("wam.launch.py", "sim:=true", "namespace:=alone")
    wam, joints = RobotModel.wam(), Joints(client, "alone/joint_states")
    for offset in (0.2, -0.1):
        T = wam.fk(HOME + offset)
        follow(
            client,
            launch,
            {"alone/target_pose": stamped(T)},
            lambda T=T: np.abs(joints.tip(wam) - T).max() < 1e-4,
        )
    assert client.count_publishers("alone/joint_states") == 1
    assert launch.interrupted() == 0
    assert "[WARN]" not in launch.output(), launch.output()
    assert launch.output().count("process has finished cleanly") == 3, launch.output()


@pytest.mark.parametrize("sim", ["false", "true"])
def test_two_wams_follow_a_target_each_at_the_same_time(
    sim: str, start: Callable[..., Launch], client: Node
) -> None:
    launch = start("two_wams.launch.py", f"sim:={sim}")
    arms = {
        side: RobotModel.from_urdf(URDF / "two_wams.urdf", "base", f"{side}_wam_tip")
        for side in SIDES
    }
    joints = Joints(client, "joint_states")

    def error(goals: dict[str, np.ndarray]) -> float:
        """The largest difference of a tip from its goal; NaN before all joints were heard of."""
        return np.max([np.abs(joints.tip(arms[side]) - T) for side, T in goals.items()])

    offsets = {"left": 0.2, "right": -0.15}
    for sign in (1.0, -1.0):
        goals = {side: arms[side].fk(HOME + sign * offsets[side]) for side in SIDES}
        targets = {f"{side}/target_pose": stamped(T) for side, T in goals.items()}
        follow(client, launch, targets, lambda goals=goals: error(goals) < 1e-4)
    assert set(joints.seen) == {arms[side].joint_names for side in SIDES}

    # Each hears the joints of the other: a target 20 cm beside where the right tip really is.
    T_right_goal = np.eye(4)
    T_right_goal[:3, 3] = (0.0, 0.2, 0.0)
    goal = joints.tip(arms["right"]) @ T_right_goal
    target = {"left/target_pose": stamped(T_right_goal, "right_wam_tip")}
    follow(client, launch, target, lambda: error({"left": goal}) < 2e-3)
    assert error({"right": goals["right"]}) < 2e-3  # which has not moved
    assert launch.interrupted() == 0
    assert "[WARN]" not in launch.output(), launch.output()


def test_two_wams_have_handles_in_rviz_each_at_its_own_tip(
    prefix: Prefix, start: Callable[..., Launch], client: Node
) -> None:
    pytest.importorskip("interactive_markers", reason="needs interactive_markers, as RViz does")
    prefix.add("rviz2", "rviz2", RECORDER)
    launch = start("two_wams.launch.py", "rviz:=true")
    for side in SIDES:
        arm = RobotModel.from_urdf(URDF / "two_wams.urdf", "base", f"{side}_wam_tip")
        [marker] = handles(client, launch, f"{side}/dls_ik/target/get_interactive_markers")
        assert marker.header.frame_id == "base"
        np.testing.assert_allclose(matrix_from_pose(marker.pose), arm.fk(HOME), atol=1e-6)
    assert launch.interrupted() == 0


def handles(client: Node, launch: Launch, service: str) -> list[InteractiveMarker]:
    """The markers of a server, once there are any."""
    caller = client.create_client(GetInteractiveMarkers, service)
    deadline = time.monotonic() + PATIENCE
    markers: list[InteractiveMarker] = []
    while not markers:
        launch.check()
        assert time.monotonic() < deadline, launch.output()
        if caller.wait_for_service(timeout_sec=0.5):
            future = caller.call_async(GetInteractiveMarkers.Request())
            rclpy.spin_until_future_complete(client, future, timeout_sec=10.0)
            markers = future.result().markers if future.done() else []
    return markers
