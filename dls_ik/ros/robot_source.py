"""Sources of the robot: a parameter, or a topic on which it may come late."""

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
REMINDER_PERIOD = 5.0  # [s] between log lines while there is no robot
QOS = QoSProfile(
    depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL
)


class RefusedError(RobotModelError):
    """A robot that the node cannot use; the message names the parameter that mends it."""


def robot_from_parameters(parameters: RobotParameters) -> RobotModel | None:
    """Load the robot that the parameters name or describe; None: they do neither.

    Raises:
        RefusedError: it is not a usable robot, or has no such base and tip.
    """
    ends = parameters.ends()
    try:
        if parameters.robot_description:
            return robot_from_text(parameters.robot_description, *ends)
        if parameters.robot:
            return RobotModel.from_tree(find_tree(parameters.robot), *ends)
    except RobotModelError as error:
        raise _refused(error) from error
    return None


def _refused(error: RobotModelError) -> RefusedError:
    """Add the parameter that mends it to an error."""
    if isinstance(error, AmbiguousTipError):
        first, *others = error.tips
        also = f", or tip:={others[0]}, or any other link" if others else ""
        return RefusedError(f"{error}: add -p tip:={first}{also}")
    if isinstance(error, ChainError):
        return RefusedError(f"{error}: the chain is what -p base:=LINK and -p tip:=LINK say")
    return RefusedError(str(error))


def robot_from_text(text: str, base: str | None, tip: str | None) -> RobotModel:
    """Load a robot from XML; the text is never taken for the name of a file.

    Raises:
        RobotModelError: as :func:`robot_from_parameters`.
    """
    if not text.lstrip("\ufeff \t\r\n").startswith("<"):
        raise RobotModelError(f"a robot description is XML, not {quoted(text)}")
    return RobotModel.from_urdf(text, base, tip)


def subscribe_descriptions(node: Node, receive: Callable[[Any], None]) -> None:
    """Subscribe to robot descriptions; the last one published comes at once."""
    node.create_subscription(String, TOPIC, receive, QOS)


class DescriptionTopic:
    """Takes robots from the topic; logs every few seconds that it waits for one.

    Args:
        take: called with each usable robot.
        refuse: called with the error of each robot that is not usable.
        missing: returns why the last robot was refused; empty: none came; None: there is a robot.
        run: runs the job of taking or refusing a robot, at once or in another thread.
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
        node.create_timer(
            REMINDER_PERIOD, self.remind, clock=Clock(clock_type=ClockType.STEADY_TIME)
        )

    def remind(self) -> None:
        """Log what the node waits for, or why the robot was refused, while there is no robot."""
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
        """Take a serialized text; one that is too long is not read."""
        if len(data) > MAX_BYTES:
            message = f"the URDF is larger than {MAX_TEXT} bytes"
            self._run(lambda: self._refuse(RobotModelError(message)))
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
