"""Where the robot comes from: a parameter, or a topic on which it may come late."""

from collections.abc import Callable
from typing import Any

from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message
from std_msgs.msg import String

from dls_ik.errors import AmbiguousTipError, ChainError, RobotModelError
from dls_ik.model.load import find_tree
from dls_ik.model.robot import RobotModel
from dls_ik.model.urdf import MAX_BYTES as MAX_TEXT
from dls_ik.ros.params.robot import RobotParameters
from dls_ik.text import escape, quoted

TOPIC = "robot_description"
MAX_BYTES = MAX_TEXT + 16  # of a serialized text
PATIENCE = 5.0  # [s] between lines that say what is waited for
QOS = QoSProfile(
    depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL
)


class RefusedError(RobotModelError):
    """A robot that a node cannot use: why, and the parameter that mends it."""


def robot_from_parameters(parameters: RobotParameters) -> RobotModel | None:
    """The robot that the parameters name or describe; None where they do neither.

    Raises:
        RefusedError: it is not a usable robot, or has no such base and tip.
    """
    try:
        return _robot_from_parameters(parameters)
    except RobotModelError as error:
        raise _refused(error) from error


def _refused(error: RobotModelError) -> RefusedError:
    """The same error, with the parameter that mends it."""
    if isinstance(error, AmbiguousTipError):
        first, *others = error.tips
        also = f", or tip:={others[0]}, or any other link" if others else ""
        return RefusedError(f"{error}: add -p tip:={first}{also}")
    if isinstance(error, ChainError):
        return RefusedError(f"{error}: the chain is what -p base:=LINK and -p tip:=LINK say")
    return RefusedError(str(error))


def _robot_from_parameters(parameters: RobotParameters) -> RobotModel | None:
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


def hear_descriptions(node: Node, receive: Callable[[Any], None]) -> None:
    """Have each message with a robot description received, the last one at once."""
    node.create_subscription(String, TOPIC, receive, QOS)


class DescriptionTopic:
    """Takes robots from the topic as they come; says every few seconds that it waits for one.

    Args:
        take: called with each usable robot.
        refuse: called with what is wrong with each of the others.
        missing: why there is no robot yet: an empty text where none came; None: there is one.
        run: does the work of taking or refusing a robot, at once or beside.
    """

    def __init__(
        self,
        node: Node,
        parameters: RobotParameters,
        take: Callable[[RobotModel], None],
        refuse: Callable[[RobotModelError], None],
        missing: Callable[[], str | None],
        run: Callable[[Callable[[], None]], None] = lambda job: job(),
    ) -> None:
        self._ends = parameters.ends()
        self._take, self._refuse, self._missing, self._run = take, refuse, missing, run
        self._logger = node.get_logger()
        self._topic = node.resolve_topic_name(TOPIC)
        self._text = b""  # serialized
        node.create_subscription(String, TOPIC, self._receive, QOS, raw=True)
        node.create_timer(PATIENCE, self.remind, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def remind(self) -> None:
        """Say what is waited for, or what is wrong with the robot given, as long as it is so."""
        reason = self._missing()
        if reason:
            self._logger.error(
                f"there is no robot: {escape(reason)}; start again with that mended, or publish "
                f"another robot on {self._topic}"
            )
        elif reason is not None:
            self._logger.info(
                f"waiting for a robot on {self._topic} (std_msgs/String, transient local); or "
                "start with one: -p robot:=wam, -p robot:=FILE.urdf, -p robot_description:=XML"
            )

    def _receive(self, data: bytes) -> None:
        """Take a serialized text, which is read only if it is not too long."""
        if len(data) > MAX_BYTES:
            words = f"the URDF is larger than {MAX_TEXT} bytes"
            self._run(lambda: self._refuse(RobotModelError(words)))
        elif data != self._text:
            self._text = data
            self._run(lambda: self._read(deserialize_message(data, String).data))

    def _read(self, text: str) -> None:
        try:
            robot = robot_from_text(text, *self._ends)
        except RobotModelError as error:
            self._refuse(_refused(error))
        else:
            self._take(robot)
