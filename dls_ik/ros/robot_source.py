"""Where the robot comes from: a parameter, or a topic on which it may come late."""

from collections.abc import Callable
from typing import Any

from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from std_msgs.msg import String

from dls_ik.exceptions import RobotModelError
from dls_ik.model.find import find_tree
from dls_ik.model.names import quoted
from dls_ik.model.robot import RobotModel
from dls_ik.ros.parameters.robot import RobotParameters

TOPIC = "robot_description"
PATIENCE = 5.0  # [s] between lines that say what is waited for
QOS = QoSProfile(
    depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL
)


def robot_from_parameters(parameters: RobotParameters) -> RobotModel | None:
    """The robot that the parameters name or describe; None where they do neither.

    Raises:
        RobotModelError: it is not a usable robot, or has no such base and tip.
    """
    ends = parameters.ends()
    if parameters.robot_description:
        return robot_from_text(parameters.robot_description, *ends)
    if not parameters.robot:
        return None
    return RobotModel.from_tree(find_tree(parameters.robot), *ends)


def robot_from_text(text: str, base: str | None, tip: str | None) -> RobotModel:
    """A robot from XML, never from a file on this machine that somebody else names.

    Raises:
        RobotModelError: as :func:`robot_from_parameters`.
    """
    if not text.lstrip("\ufeff \t\r\n").startswith("<"):
        raise RobotModelError(f"a robot description is XML, not {quoted(text)}")
    return RobotModel.from_urdf(text, base, tip)


class DescriptionTopic:
    """Takes robots from the topic as they come; says every few seconds that it waits for one.

    Args:
        take: called with each usable robot.
        refuse: called with what is wrong with each of the others.
        waiting: whether a robot is still missing.
        run: does the work of taking or refusing a robot, at once or beside.
    """

    def __init__(
        self,
        node: Node,
        parameters: RobotParameters,
        take: Callable[[RobotModel], None],
        refuse: Callable[[RobotModelError], None],
        waiting: Callable[[], bool],
        run: Callable[[Callable[[], None]], None] = lambda job: job(),
    ) -> None:
        self._ends = parameters.ends()
        self._take, self._refuse, self._waiting, self._run = take, refuse, waiting, run
        self._logger = node.get_logger()
        self._topic = node.resolve_topic_name(TOPIC)
        self._text = ""
        node.create_subscription(String, TOPIC, self._receive, QOS)
        node.create_timer(PATIENCE, self.remind, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def remind(self) -> None:
        """Say what is waited for, as long as it is."""
        if self._waiting():
            self._logger.info(
                f"waiting for a robot on {self._topic} (std_msgs/String, transient local); or "
                "start with one: -p robot:=wam, -p robot:=FILE.urdf, -p robot_description:=XML"
            )

    def _receive(self, message: Any) -> None:
        if message.data == self._text:
            return
        self._text = text = message.data
        self._run(lambda: self._read(text))

    def _read(self, text: str) -> None:
        try:
            robot = robot_from_text(text, *self._ends)
        except RobotModelError as error:
            self._refuse(error)
        else:
            self._take(robot)
