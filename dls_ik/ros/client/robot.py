"""The robot that a running node serves, by its parameters or its topic.

Anybody in the ROS domain may publish these: their text is read as untrusted XML, and opens no file
but those of robots that are installed here.
"""

import time
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from dls_ik.errors import DlsIkError, RobotModelError
from dls_ik.model.files import PACKAGE_SCHEME, shipped_names
from dls_ik.model.load import find_tree, find_urdf, split_arguments
from dls_ik.model.robot import RobotModel
from dls_ik.ros.client.connection import NoAnswerError, ServiceMissingError
from dls_ik.ros.params.robot import RobotParameters
from dls_ik.ros.robot_source import robot_from_text
from dls_ik.text import quoted

PROGRAMS = (".xacro",)  # files whose expressions are run
POLL = 0.05  # [s]
DESCRIPTION_TIMEOUT = 2.0  # [s] for the description, once the node is there


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
    while not description() and time.monotonic() < deadline:
        time.sleep(POLL)
    if text := description():
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
