# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Sources of the robot: parameters, the topic ``robot_description``, or another node.

Any node in the ROS domain may publish descriptions or offer parameters. Therefore a description
from another node is parsed as untrusted XML, and only files of robots that are installed on this
machine are opened for it.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from std_msgs.msg import String

from dls_ik.errors import AmbiguousTipError, ChainError, DlsIkError, RobotModelError
from dls_ik.model.files import PACKAGE_SCHEME, shipped_names
from dls_ik.model.load import find_tree, find_urdf, split_arguments
from dls_ik.model.robot import RobotModel
from dls_ik.model.xml import MAX_XML_BYTES as MAX_URDF_BYTES
from dls_ik.ros.client.connection import NoAnswerError, ServiceMissingError, wait_until
from dls_ik.ros.params import GroupsParameters, RobotParameters
from dls_ik.ros.subscriptions import call_every, read_bytes
from dls_ik.ros.util import Throttle
from dls_ik.text import escape, listing, quoted

DESCRIPTION_TOPIC = "robot_description"
MAX_DESCRIPTION_BYTES = MAX_URDF_BYTES + 16  # [bytes] serialized String
REMINDER_PERIOD = 5.0  # [s] period of log lines while the node waits for a robot
EXECUTABLE_SUFFIXES = (".xacro",)  # files with expressions that are executed when they are read
DESCRIPTION_TIMEOUT = 2.0  # [s] maximum time to wait for the description of a node that answers
DESCRIPTION_QOS = QoSProfile(
    depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL
)


class RefusedError(RobotModelError):
    """Error that is raised for a robot that the node cannot use.

    The message names the parameter to change.
    """


def robot_from_parameters(parameters: RobotParameters) -> RobotModel | None:
    """Return the robot that the parameters select; None if they select no robot.

    Raises:
        RefusedError: If the robot is not usable, or does not have the base or the tip.
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
    """Return an error like `error`, whose message also names the parameter to change."""
    preset = getattr(parameters, "preset", "")
    if isinstance(error, AmbiguousTipError):
        first, *others = error.tips
        also = f", or tip:={others[0]}, or any other link" if others else ""
        tips = listing(error.tips)
        return RefusedError(f"several links could be the tip: {tips}: add -p tip:={first}{also}")
    if isinstance(error, ChainError):
        origin = f", which the preset {preset} sets by default" if preset else ""
        group = parameters.followed_group() if isinstance(parameters, GroupsParameters) else None
        of = f"group.{group.name}." if group is not None else ""
        return RefusedError(
            f"{error}; set the chain by -p {of}base:=LINK and -p {of}tip:=LINK{origin}"
        )
    return RefusedError(str(error))


def robot_from_text(text: str, base: str | None, tip: str | Sequence[str] | None) -> RobotModel:
    """Return the robot that a URDF text describes; the text is never used as a file name.

    Args:
        text: URDF as XML.
        base: First link of the chain; None: the default of the robot.
        tip: Last link of the chain, or several; None: the default of the robot.

    Raises:
        RobotModelError: If the text is not XML, or the robot is not usable.
    """
    if not text.lstrip("\ufeff \t\r\n").startswith("<"):
        raise RobotModelError(f"a robot description must be XML; got {quoted(text)}")
    return RobotModel.from_urdf(text, base, tip)


def subscribe_descriptions(node: Node, receive: Callable[[Any], None]) -> None:
    """Subscribe to the topic ``robot_description``; also receive the last published description.

    Args:
        node: ROS node.
        receive: Function that is called with each ``std_msgs/String`` message.
    """
    node.create_subscription(String, DESCRIPTION_TOPIC, receive, DESCRIPTION_QOS)


class DescriptionTopic:
    """Receiver of robots from the topic ``robot_description``.

    It logs refused robots, and a reminder every REMINDER_PERIOD while the node has no robot.

    Args:
        node: ROS node.
        parameters: Parameters with the names of base and tip.
        take: Function that is called with each usable robot; it raises a DlsIkError to refuse the
            robot.
        has_robot: Function that returns whether the node has a robot.
        reason: Reason why the robot of the parameters was refused; empty if it was not refused.
        run: Function that runs a job, immediately or in another thread; the job loads a robot and
            calls `take`.

    Attributes:
        reason: Reason why the last robot was refused; empty if it was not refused.
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
        self.reason, self._logged_reason = reason, ""
        self._parameters, self._ends = parameters, parameters.ends()
        self._take, self._has_robot, self._run = take, has_robot, run
        self._node, self._log, self._logger = node, Throttle(node), node.get_logger()
        self._topic = node.resolve_topic_name(DESCRIPTION_TOPIC)
        self._data = b""  # latest serialized message
        topic, qos = DESCRIPTION_TOPIC, DESCRIPTION_QOS
        node.create_subscription(String, topic, self._receive, qos, raw=True)
        call_every(node, REMINDER_PERIOD, self.remind)

    def remind(self) -> None:
        """Log that the node waits for a robot, or once the reason why a robot was refused.

        Do nothing if the node has a robot.
        """
        if self._has_robot():
            return
        if self.reason:
            if self.reason != self._logged_reason:
                self._logged_reason = self.reason
                self._logger.error(
                    f"there is no robot: {escape(self.reason)}; correct this and restart the node, "
                    f"or publish another robot on {self._topic}"
                )
        else:
            self._logger.info(
                f"waiting for a robot on {self._topic} (std_msgs/String, transient local); to "
                "select a robot at the start: -p robot:=wam, -p robot:=FILE.urdf, or "
                "-p robot_description:=XML"
            )

    def _receive(self, data: bytes) -> None:
        """Receive a serialized description; load the robot, or refuse it if too large.

        Do nothing if the description equals the previous description.
        """
        if len(data) > MAX_DESCRIPTION_BYTES:
            message = f"the URDF is larger than {MAX_URDF_BYTES} bytes; got {len(data)} bytes"
            self._run(lambda: self._refuse(RobotModelError(message)))
        elif data != self._data:
            self._data = data
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
        self.reason = self._logged_reason = str(error)
        self._logger.error(f"robot refused: {escape(self.reason)}")


class DescribedRobot(NamedTuple):
    """Robot, and the URDF that describes the shapes of the links, if there is a URDF."""

    robot: RobotModel
    urdf: Path | str | None  # file or text; None: no URDF


class ForeignFileError(RobotModelError):
    """Error that is raised instead of opening a local file that another node names."""


def served_robot(
    read_parameters: Callable[[], RobotParameters],
    description: Callable[[], str],
    own: Callable[[str | None, str | None], DescribedRobot] | None = None,
) -> DescribedRobot:
    """Return the robot that another node uses.

    The parameters of the node select the robot; if they select no robot, it is the robot of the
    topic ``robot_description``.

    Args:
        read_parameters: Function that reads the parameters of the node; it raises a
            ServiceMissingError or a NoAnswerError if the node does not answer.
        description: Function that returns the latest description from the topic, or an empty text
            before the first description.
        own: Function that returns a robot that the user has chosen instead of the robot of the
            node; it is called with the names of the base and the tip of the node.

    Raises:
        ServiceMissingError, NoAnswerError: If the node does not answer and there is no description,
            or if the node answers but has no robot yet.
        ForeignFileError: If the node names a file that is not opened for security.
        RobotModelError: If the robot is not usable.
    """
    missing: DlsIkError | None = None
    parameters = RobotParameters()
    try:
        parameters = read_parameters()
        if own is not None:
            return own(*first_ends(parameters))
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
        return DescribedRobot(robot_from_text(text, *first_ends(parameters)), text)
    raise missing or NoAnswerError("the node has no robot yet")


def named_robot(parameters: RobotParameters) -> DescribedRobot | None:
    """Return the robot that the parameters of another node select; None if they select no robot.

    Raises:
        ForeignFileError: If the parameters name a file that is not in an installed package, or that
            contains expressions that are executed when the file is read.
        RobotModelError: If the robot is not usable.
    """
    ends, name = first_ends(parameters), parameters.robot
    if text := parameters.robot_description:
        return DescribedRobot(robot_from_text(text, *ends), text)
    if not name:
        return None
    if name not in shipped_names() and not _is_installed(name):
        raise ForeignFileError(
            f"the robot of the node is the file {quoted(name)}; for security, files that a node "
            "names are not opened; give the file yourself if you trust it"
        )
    return DescribedRobot(RobotModel.from_tree(find_tree(name), *ends), find_urdf(name))


def first_ends(parameters: RobotParameters) -> tuple[str | None, str | None]:
    """Return the names of the base and the tip; the first tip if there are several."""
    base, tip = parameters.ends()
    return base, tip[0] if isinstance(tip, tuple) else tip


def _is_installed(name: str) -> bool:
    """Return whether a name is a file in an installed package that contains no expressions."""
    file, arguments = split_arguments(name)
    path = PurePosixPath(file.removeprefix(PACKAGE_SCHEME))
    inside = ".." not in path.parts and path.suffix.lower() not in EXECUTABLE_SUFFIXES
    return file.startswith(PACKAGE_SCHEME) and inside and not arguments
