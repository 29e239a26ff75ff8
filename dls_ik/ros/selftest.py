"""Self-test of ROS: messages between two processes, and a node that starts and answers.

``python -m dls_ik.ros.selftest TOPIC`` publishes on the topic until its parent ends.
"""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from std_msgs.msg import String

from dls_ik.errors import DlsIkError
from dls_ik.ros.child import ChildProcess

PATIENCE, PERIOD = 20.0, 0.05  # [s]
START_PATIENCE = 120.0  # [s]


def hear_another_process() -> str:
    """Receive a message from another process; return a sentence about it.

    Raises:
        DlsIkError: no message came.
    """
    topic = f"dls_ik_selftest_{os.getpid()}"
    said: list[str] = []
    command = [sys.executable, "-m", "dls_ik.ros.selftest", topic]
    begin = time.monotonic()
    with ChildProcess(command, said.append) as other, _own_node() as (node, executor):
        heard: list[Any] = []
        node.create_subscription(String, topic, heard.append, 10)
        while not heard and other.is_running and time.monotonic() < begin + PATIENCE:
            executor.spin_once(timeout_sec=PERIOD)
        middleware = rclpy.get_rmw_implementation_identifier()
        if not heard:
            reason = said[-1] if said else f"nothing came within {PATIENCE:g} s"
            raise DlsIkError(f"two processes do not hear each other over {middleware}: {reason}")
    return f"a message from another process over {middleware}, {_age(begin)}"


def _age(begin: float) -> str:
    return f"{time.monotonic() - begin:.1f} s after the start"


@contextmanager
def _own_node() -> Iterator[tuple[Node, SingleThreadedExecutor]]:
    context = Context()
    rclpy.init(args=[], context=context, signal_handler_options=SignalHandlerOptions.NO)
    name = f"dls_ik_selftest_{os.getpid()}"
    node = Node(name, context=context, use_global_arguments=False)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    try:
        yield node, executor
    finally:
        executor.shutdown()
        node.destroy_node()
        context.try_shutdown()


def publish(topic: str) -> None:
    """Publish until this process, or its parent, is ended."""
    parent = os.getppid()
    with _own_node() as (node, executor):
        publisher = node.create_publisher(String, topic, 10)
        while os.getppid() == parent:
            publisher.publish(String(data="here"))
            executor.spin_once(timeout_sec=PERIOD)


def start_and_ask() -> str:
    """Start ``ik_node`` with the WAM and have it solve a pose; return a sentence about it.

    Raises:
        DlsIkError: it does not start, or answers wrongly.
    """
    import numpy as np  # here, because the publishing process needs none of these

    from dls_ik.model.robot import RobotModel
    from dls_ik.ros.client import IkClient

    namespace = f"dls_ik_selftest_{os.getpid()}"
    command = [sys.executable, "-m", "dls_ik.ros.node", "--ros-args"]
    command += ["-p", "robot:=wam", "-r", f"__ns:=/{namespace}"]
    robot = RobotModel.wam()
    T = robot.fk(np.full(robot.n, 0.3))
    said: list[str] = []
    begin = time.monotonic()
    with ChildProcess(command, said.append) as node, IkClient(namespace=namespace) as client:
        deadline = begin + START_PATIENCE
        while not client.is_served and node.is_running and time.monotonic() < deadline:
            time.sleep(PERIOD)
        ready = time.monotonic() - begin
        if not client.is_served:
            reason = said[-1] if said else f"no compute_ik within {START_PATIENCE:g} s"
            raise DlsIkError(f"ik_node does not start: {reason}")
        answer = client.solve(T, timeout=1.0)
    if not answer.success or not np.allclose(
        robot.fk(answer.array(robot.joint_names)), T, atol=1e-4
    ):
        raise DlsIkError(f"ik_node gives a wrong answer, code {answer.code} {answer.message}")
    return f"ready after {ready:.1f} s, solves a pose"


if __name__ == "__main__":
    publish(sys.argv[1])
