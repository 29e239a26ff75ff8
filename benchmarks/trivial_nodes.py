# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Trivial nodes for comparison: ``python -m benchmarks.trivial_nodes serve`` or ``echo``.

serve: answers compute_ik at once, always with the same joint positions.
echo: publishes joint_states on each target_pose, with its position as joint positions.

Messages, names and quality of service are those of ik_node. The nodes compute and check nothing.
"""

import signal
import sys
from contextlib import suppress
from typing import Any

import rclpy
from geometry_msgs.msg import PoseStamped
from moveit_msgs.srv import GetPositionIK
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState

NAMES = [f"joint_{i}" for i in range(1, 8)]
SUCCESS = 1


def serve(node: Node) -> None:
    """Answer requests."""

    def answer(request: Any, response: Any) -> Any:
        response.solution.joint_state.name = NAMES
        response.solution.joint_state.position = [0.1] * len(NAMES)
        response.error_code.val = SUCCESS
        return response

    node.create_service(GetPositionIK, "compute_ik", answer)


def echo(node: Node) -> None:
    """Publish the targets as joint states."""
    publisher = node.create_publisher(JointState, "joint_states", 1)
    message = JointState(name=NAMES, position=[0.0] * 7, velocity=[0.0] * 7)

    def receive(target: Any) -> None:
        p = target.pose.position
        message.header.stamp = node.get_clock().now().to_msg()
        message.position[0], message.position[1], message.position[2] = p.x, p.y, p.z
        publisher.publish(message)

    best_effort = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
    node.create_subscription(PoseStamped, "target_pose", receive, best_effort)


def main() -> None:
    """Run one of the nodes until a signal stops it."""
    signal.signal(signal.SIGINT, lambda *_: None)  # rclpy ends the spin
    rclpy.init()
    kind = {"serve": serve, "echo": echo}[sys.argv[1]]
    node = Node(f"trivial_{sys.argv[1]}")
    kind(node)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    print("ready", flush=True)
    with suppress(ExternalShutdownException):
        executor.spin()
    rclpy.try_shutdown()


if __name__ == "__main__":
    main()
