# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Trivial nodes for comparison: ``python -m benchmarks.trivial_nodes serve`` or ``echo``.

serve: answers compute_ik at once, with joint values that are always the same.
echo: publishes joint_states as soon as a target_pose arrives, its position as joint values.

Messages, names and quality of service are those of ik_node; nothing is computed or checked.
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
    """Pass targets on."""
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
    """Run one of them until a signal ends it."""
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
