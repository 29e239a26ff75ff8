"""Sources of the robot: parameters, a topic on which it may come late, or another node.

Anybody in the ROS domain may publish descriptions or serve parameters: their text is read as
untrusted XML, and opens no file but those of robots that are installed here.
"""

import time
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from std_msgs.msg import String

from dls_ik.errors import AmbiguousTipError, ChainError, DlsIkError, RobotModelError
from dls_ik.model.files import PACKAGE_SCHEME, shipped_names
from dls_ik.model.load import find_tree, find_urdf, split_arguments
from dls_ik.model.robot import RobotModel
from dls_ik.model.xml import MAX_BYTES as MAX_TEXT
from dls_ik.ros.client.connection import NoAnswerError, ServiceMissingError, wait_until
from dls_ik.ros.params import GroupsParameters, RobotParameters
from dls_ik.ros.subscriptions import call_every, read_bytes
from dls_ik.ros.util import Throttle
from dls_ik.text import escape, listing, quoted

TOPIC = "robot_description"
MAX_BYTES = MAX_TEXT + 16  # of a serialized text
REMINDER_PERIOD = 5.0  # [s] between log lines while there is no robot
PROGRAMS = (".xacro",)  # files whose expressions are run
DESCRIPTION_TIMEOUT = 2.0  # [s] for the description, once the node is there
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
        raise _refused(error, parameters) from error
    return None


def _refused(error: RobotModelError, parameters: RobotParameters) -> RefusedError:
    """Add the parameter that mends it to an error."""
    preset = getattr(parameters, "preset", "")
    if isinstance(error, AmbiguousTipError):
        first, *others = error.tips
        also = f", or tip:={others[0]}, or any other link" if others else ""
        tips = listing(error.tips)
        return RefusedError(f"several links could be the tip: {tips}: add -p tip:={first}{also}")
    if isinstance(error, ChainError):
        origin = f", or else the preset {preset}" if preset else ""
        group = parameters.followed_group() if isinstance(parameters, GroupsParameters) else None
        of = f"group.{group.name}." if group is not None else ""
        return RefusedError(
            f"{error}: the chain is what -p {of}base:=LINK and -p {of}tip:=LINK say{origin}"
        )
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
    """Takes robots from the topic; logs each refusal once, and repeatedly that it waits for one.

    Args:
        take: called with each usable robot; may raise DlsIkError to refuse it.
        has_robot: tests if there is a robot.
        reason: the reason why an earlier robot was refused.
        run: runs the job of taking or refusing a robot, at once or in another thread.

    Attributes:
        reason: why the last robot was refused; empty: none was.
    """

    def __init__(
        self,
        node: Node,
        parameters: RobotParameters,
        take: Callable[[RobotModel], None],
        has_robot: Callable[[], bool],
        reason: str = "",
        run: Callable[[Callable[[], None]], None] = lambda job: job(),
    ) -> None:
        self.reason, self._told = reason, ""  # why a robot was refused; the same as logged last
        self._parameters, self._ends = parameters, parameters.ends()
        self._take, self._has_robot, self._run = take, has_robot, run
        self._node, self._log, self._logger = node, Throttle(node), node.get_logger()
        self._topic = node.resolve_topic_name(TOPIC)
        self._text = b""  # serialized
        node.create_subscription(String, TOPIC, self._receive, QOS, raw=True)
        call_every(node, REMINDER_PERIOD, self.remind)

    def remind(self) -> None:
        """Log what the node waits for, or once why the robot was refused, while there is none."""
        if self._has_robot():
            return
        if self.reason:
            if self.reason != self._told:
                self._told = self.reason
                self._logger.error(
                    f"there is no robot: {escape(self.reason)}; start again with that mended, or "
                    f"publish another robot on {self._topic}"
                )
        else:
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
            content = read_bytes(self._node, data, String, self._topic, self._log)
            if content is not None:
                self._run(lambda: self._read(content.data))

    def _read(self, text: str) -> None:
        try:
            robot = robot_from_text(text, *self._ends)
        except RobotModelError as error:
            self._refuse(_refused(error, self._parameters))
            return
        try:
            self._take(robot)
        except DlsIkError as error:
            self._refuse(error)

    def _refuse(self, error: DlsIkError) -> None:
        self.reason = self._told = str(error)
        self._logger.error(f"robot refused: {escape(self.reason)}")


class DescribedRobot(NamedTuple):
    """A robot, and the file or the text that describes its shapes, if any."""

    robot: RobotModel
    urdf: Path | str | None


class ForeignFileError(RobotModelError):
    """A node names a file of this machine, which is not opened because a node names it."""


def served_robot(
    read_parameters: Callable[[], RobotParameters],
    description: Callable[[], str],
    own: Callable[[str | None, str | None], DescribedRobot] | None = None,
) -> DescribedRobot:
    """Find the robot of a node by its parameters, or else by the topic.

    Args:
        read_parameters: asks the node, or raises an error if it does not answer.
        description: returns the newest description, empty until there is one.
        own: returns a robot that is chosen here, from the base to the tip of the node.

    Raises:
        ServiceMissingError, NoAnswerError: there is neither a node nor a description.
        RobotModelError: as :func:`named_robot`, or it is no usable robot.
    """
    missing: DlsIkError | None = None
    parameters = RobotParameters()
    try:
        parameters = read_parameters()
        if own is not None:
            return own(*parameters.ends())
        found = named_robot(parameters)
        if found is not None:
            return found
    except (ServiceMissingError, NoAnswerError) as error:
        missing = error
        if own is not None:
            raise
    deadline = time.monotonic() + (0.0 if missing else DESCRIPTION_TIMEOUT)
    if wait_until(description, deadline):
        text = description()
        return DescribedRobot(robot_from_text(text, *parameters.ends()), text)
    raise missing or NoAnswerError("the node has no robot yet")


def named_robot(parameters: RobotParameters) -> DescribedRobot | None:
    """Load the robot that the parameters of another node name or describe; None: they do neither.

    Raises:
        ForeignFileError: they name a file that no package here has, or one that is a program.
        RobotModelError: it is not a usable robot.
    """
    ends, name = parameters.ends(), parameters.robot
    if text := parameters.robot_description:
        return DescribedRobot(robot_from_text(text, *ends), text)
    if not name:
        return None
    if name not in shipped_names() and not _is_installed(name):
        raise ForeignFileError(
            f"the robot of the node is {quoted(name)}, and files are not opened because a node "
            "names them: name it yourself if you trust it"
        )
    return DescribedRobot(RobotModel.from_tree(find_tree(name), *ends), find_urdf(name))


def _is_installed(name: str) -> bool:
    """Return whether it is a file of a package, and no program, which alone takes arguments."""
    file, arguments = split_arguments(name)
    path = PurePosixPath(file.removeprefix(PACKAGE_SCHEME))
    inside = ".." not in path.parts and path.suffix.lower() not in PROGRAMS
    return file.startswith(PACKAGE_SCHEME) and inside and not arguments
