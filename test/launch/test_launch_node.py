"""The launch files for real: nodes come up, answer in their namespace and end cleanly."""

import time
from collections.abc import Callable

import numpy as np
import pytest

pytest.importorskip("launch_ros", reason="needs launch and launch_ros, which come with ROS 2")
pytest.importorskip("rclpy", reason="needs rclpy")
pytest.importorskip("moveit_msgs", reason="needs moveit_msgs")
pytest.importorskip("dls_ik.ros", reason="needs the node")

import rclpy
from ament_prefix import Launch
from moveit_msgs.msg import MoveItErrorCodes
from moveit_msgs.srv import GetPositionFK, GetPositionIK
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from robots import URDF
from std_msgs.msg import String

from dls_ik import RobotModel

pytestmark = [pytest.mark.ros, pytest.mark.installed]

PATIENCE = 300.0  # [s], the kernels may have to be compiled
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


def call(client: Node, launch: Launch, service: type, name: str, request: object) -> object:
    """Ask until it is answered: what goes to a node that was killed, or is found late, is lost."""
    caller = client.create_client(service, name)
    deadline = time.monotonic() + PATIENCE
    while True:
        launch.check()
        assert time.monotonic() < deadline, f"no answer from {name}: {launch.output()}"
        if not caller.wait_for_service(timeout_sec=0.5):
            continue
        future = caller.call_async(request)
        rclpy.spin_until_future_complete(client, future, timeout_sec=5.0)
        if future.done():
            return future.result()


def received_description(client: Node, topic: str) -> str:
    future = rclpy.task.Future()
    subscription = client.create_subscription(String, topic, future.set_result, LATCHED)
    rclpy.spin_until_future_complete(client, future, timeout_sec=PATIENCE)
    client.destroy_subscription(subscription)
    return future.result().data


def assert_solves(client: Node, launch: Launch, namespace: str, robot: RobotModel) -> None:
    """Let the node say where the tip is at some joint positions, and bring it there."""
    q = robot.random(np.random.default_rng(1))
    where = GetPositionFK.Request(fk_link_names=[robot.tip])
    where.robot_state.joint_state.name = list(robot.joint_names)
    where.robot_state.joint_state.position = q.tolist()
    how = GetPositionIK.Request()
    how.ik_request.timeout.sec = 1
    deadline = time.monotonic() + PATIENCE
    answer = call(client, launch, GetPositionFK, f"{namespace}/compute_fk", where)
    while answer.error_code.val == MoveItErrorCodes.FAILURE:  # a robot from a topic comes late
        assert time.monotonic() < deadline, answer.error_code.message
        answer = call(client, launch, GetPositionFK, f"{namespace}/compute_fk", where)
    [how.ik_request.pose_stamped] = answer.pose_stamped
    answer = call(client, launch, GetPositionIK, f"{namespace}/compute_ik", how)
    assert answer.error_code.val == MoveItErrorCodes.SUCCESS
    found = answer.solution.joint_state
    assert tuple(found.name) == robot.joint_names
    np.testing.assert_allclose(robot.fk(found.position), robot.fk(q), atol=1e-5)


def test_wam_answers_in_its_namespace_and_ends_cleanly(
    start: Callable[..., Launch], client: Node
) -> None:
    launch = start("wam.launch.py", "namespace:=left")
    assert_solves(client, launch, "left", RobotModel.wam())
    urdf = (URDF / "wam7.urdf").read_text()
    assert received_description(client, "left/robot_description") == urdf
    assert client.count_subscribers("left/target_pose") == 1
    assert launch.interrupted() == 0
    assert launch.output().count("process has finished cleanly") == 2, launch.output()


def test_the_robot_may_come_from_the_topic(start: Callable[..., Launch], client: Node) -> None:
    launch = start("ik.launch.py", "namespace:=other")
    publisher = client.create_publisher(String, "other/robot_description", LATCHED)
    publisher.publish(String(data=(URDF / "puma560.urdf").read_text()))
    assert_solves(client, launch, "other", RobotModel.from_name("puma560"))


def test_a_node_that_was_killed_is_started_again_if_asked_for(
    start: Callable[..., Launch], client: Node
) -> None:
    launch = start("wam.launch.py", "respawn:=true", "namespace:=again")
    assert_solves(client, launch, "again", RobotModel.wam())
    launch.kill("ik_node")
    deadline = time.monotonic() + PATIENCE
    while launch.output().count("ready after") < 2:
        launch.check()
        assert time.monotonic() < deadline, launch.output()
        rclpy.spin_once(client, timeout_sec=0.1)
    assert_solves(client, launch, "again", RobotModel.wam())
    assert launch.interrupted() == 0
    assert launch.output().count("process has finished cleanly") == 2, launch.output()
