"""The robot that a running node serves, as its parameters or the topic say."""

import time
from typing import Any

from rcl_interfaces.srv import GetParameters
from rclpy.node import Node
from std_msgs.msg import String

from dls_ik.model.robot import RobotModel
from dls_ik.ros.client.errors import NoAnswerError
from dls_ik.ros.parameters.robot import RobotParameters
from dls_ik.ros.robot_source import QOS, TOPIC, robot_from_parameters

NAMES = ("robot", "robot_description", "base", "tip")
POLL = 0.01  # [s]


def robot_of(node: Node, name: str, patience: float = 5.0) -> RobotModel:
    """The robot of the node of that name; the callbacks of `node` are run by another thread.

    Raises:
        NoAnswerError: the node does not say, within the patience [s].
        RobotModelError: its file is not on this machine, or no usable robot.
    """
    deadline = time.monotonic() + patience
    inbox: list[Any] = []
    node.create_subscription(String, TOPIC, inbox.append, QOS)
    client = node.create_client(GetParameters, f"{name}/get_parameters")
    future = None
    while time.monotonic() < deadline:
        if future is None and client.service_is_ready():
            future = client.call_async(GetParameters.Request(names=list(NAMES)))
        if future is not None and future.done():
            values = dict(zip(NAMES, (v.string_value for v in future.result().values), strict=True))
            robot = robot_from_parameters(RobotParameters(**values))
            if robot is not None:
                return robot
            if inbox:
                described = {**values, "robot_description": inbox[-1].data}
                found = robot_from_parameters(RobotParameters(**described))
                if found is not None:
                    return found
        time.sleep(POLL)
    raise NoAnswerError(f"{name} does not say which robot it serves; give it by --robot")
