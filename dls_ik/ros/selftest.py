# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Self-test with ROS: a message between two processes, and an ``ik_node`` that solves a request.

``python -m dls_ik.ros.selftest TOPIC`` is the second process of the first test: it publishes on
TOPIC until its parent process ends.
"""

import os
import sys
import time
from contextlib import closing
from typing import Any

import rclpy
from std_msgs.msg import String

from dls_ik.errors import DlsIkError
from dls_ik.ros.client.connection import OwnNode, wait_until
from dls_ik.ros.util import ChildProcess

MESSAGE_TIMEOUT = 20.0  # [s] maximum time until a message of the second process arrives
PUBLISH_PERIOD = 0.05  # [s] period of the messages
NODE_START_TIMEOUT = 120.0  # [s] maximum time until the node offers compute_ik


def hear_another_process() -> str:
    """Test that a message from a second process arrives; return the result as text.

    Raises:
        DlsIkError: If no message arrives within MESSAGE_TIMEOUT.
    """
    topic = f"dls_ik_selftest_{os.getpid()}"
    said: list[str] = []
    command = [sys.executable, "-m", "dls_ik.ros.selftest", topic]
    start = time.monotonic()
    with ChildProcess(command, said.append) as other, closing(_own_node()) as host:
        heard: list[Any] = []
        host.node.create_subscription(String, topic, heard.append, 10)
        wait_until(lambda: heard or not other.is_running, start + MESSAGE_TIMEOUT)
        middleware = rclpy.get_rmw_implementation_identifier()
        if not heard:
            reason = said[-1] if said else f"no message arrived within {MESSAGE_TIMEOUT:g} s"
            raise DlsIkError(f"two processes cannot exchange messages over {middleware}: {reason}")
    age = time.monotonic() - start
    return f"a message from another process over {middleware}, {age:.1f} s after the start"


def _own_node() -> OwnNode:
    return OwnNode("", f"dls_ik_selftest_{os.getpid()}")


def publish(topic: str) -> None:
    """Publish a ``std_msgs/String`` on a topic repeatedly, until the parent process ends."""
    parent = os.getppid()
    with closing(_own_node()) as host:
        publisher = host.node.create_publisher(String, topic, 10)
        while os.getppid() == parent:
            publisher.publish(String(data="here"))
            time.sleep(PUBLISH_PERIOD)


def start_and_ask() -> str:
    """Test that ``ik_node`` starts with the WAM and solves a request; return the result as text.

    Raises:
        DlsIkError: If the node does not start, or its answer is wrong.
    """
    import numpy as np  # imported here, because the second process needs none of these packages

    from dls_ik.model.robot import RobotModel
    from dls_ik.ros.client import IkClient

    namespace = f"dls_ik_selftest_{os.getpid()}"
    command = [sys.executable, "-m", "dls_ik.ros.node", "--ros-args"]
    command += ["-p", "robot:=wam", "-r", f"__ns:=/{namespace}"]
    robot = RobotModel.wam()
    T = robot.fk(np.full(robot.n, 0.3))
    said: list[str] = []
    start = time.monotonic()
    with ChildProcess(command, said.append) as node, IkClient(namespace=namespace) as client:
        wait_until(lambda: client.is_served or not node.is_running, start + NODE_START_TIMEOUT)
        ready = time.monotonic() - start
        if not client.is_served:
            reason = said[-1] if said else f"no compute_ik within {NODE_START_TIMEOUT:g} s"
            raise DlsIkError(f"ik_node did not start: {reason}")
        answer = client.solve(T, timeout=1.0)
    if not answer.success or not np.allclose(
        robot.fk(answer.array(robot.joint_names)), T, atol=1e-4
    ):
        raise DlsIkError(f"ik_node gave a wrong answer: code {answer.code}, {answer.message}")
    return f"ik_node was ready after {ready:.1f} s and solved a pose"


if __name__ == "__main__":
    publish(sys.argv[1])
