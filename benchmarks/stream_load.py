"""Work for a node beside its stream: ``python -m benchmarks.stream_load requests`` or ``flood``.

requests: compute_ik at 200 Hz, one after the other. flood: target_pose at 5 kHz.
"""

import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import rclpy
from geometry_msgs.msg import PoseStamped
from moveit_msgs.srv import GetPositionIK
from rclpy.node import Node

from dls_ik import RobotModel
from dls_ik.ros.client.ik_client import stamped_pose

RATES = {"requests": 200.0, "flood": 5000.0}  # [Hz]


def requests(node: Node, poses: list[Any]) -> Callable[[int], None]:
    """Ask for joint values; a request waits for the answer to the one before."""
    client = node.create_client(GetPositionIK, "compute_ik")
    client.wait_for_service()

    def ask(k: int) -> None:
        request = GetPositionIK.Request()
        request.ik_request.pose_stamped = poses[k % len(poses)]
        rclpy.spin_until_future_complete(node, client.call_async(request))

    return ask


def flood(node: Node, poses: list[Any]) -> Callable[[int], None]:
    """Send targets, all the same but for a millimetre."""
    publisher = node.create_publisher(PoseStamped, "target_pose", 1)
    message, x = poses[0], poses[0].pose.position.x

    def send(k: int) -> None:
        message.pose.position.x = x + 1e-3 * np.sin(1e-3 * k)
        publisher.publish(message)

    return send


def main() -> None:
    """Work at the rate until a signal."""
    signal.signal(signal.SIGINT, lambda *_: sys.exit(0))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    kind = sys.argv[1]
    rclpy.init()
    node = Node("load")
    robot = RobotModel.wam()
    Ts = robot.fk(robot.random(np.random.default_rng(0), 100))
    poses = [stamped_pose(T, "") for T in Ts]
    work = {"requests": requests, "flood": flood}[kind](node, poses)
    print("ready", flush=True)
    begin, k = time.monotonic(), 0
    while True:
        work(k)
        k = max(k + 1, int((time.monotonic() - begin) * RATES[kind]))
        time.sleep(max(0.0, begin + k / RATES[kind] - time.monotonic()))


if __name__ == "__main__":
    main()
