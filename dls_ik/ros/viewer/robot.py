"""The robot of the node that is shown."""

import time
from pathlib import Path
from typing import NamedTuple

from dls_ik.exceptions import DlsIkError
from dls_ik.model.robot import RobotModel
from dls_ik.ros.client.errors import NoAnswerError, ServiceMissingError
from dls_ik.ros.robot_source import (
    robot_from_parameters,
    robot_from_text,
    urdf_from_parameters,
)
from dls_ik.ros.viewer.heard import Heard
from dls_ik.ros.viewer.settings import Settings

POLL = 0.05  # [s]
DESCRIBED = 2.0  # [s] for the description, once the node is there


class Described(NamedTuple):
    """A robot, and the file or the text that says what it looks like, if there is one."""

    robot: RobotModel
    urdf: Path | str | None


def robot_of_node(settings: Settings, heard: Heard, patience: float) -> Described:
    """What the node's parameters name or describe, or what the topic describes.

    Args:
        patience: for the node [s].

    Raises:
        ServiceMissingError, NoAnswerError: there is neither a node nor a description.
        RobotModelError: it is not a usable robot.
    """
    missing: DlsIkError | None = None
    try:
        parameters = settings.read(patience)
        robot, urdf = robot_from_parameters(parameters), urdf_from_parameters(parameters)
        if robot is not None:
            return Described(robot, urdf)
    except (ServiceMissingError, NoAnswerError) as error:
        missing = error
    deadline = time.monotonic() + (0.0 if missing else DESCRIBED)
    while not heard.description and time.monotonic() < deadline:
        time.sleep(POLL)
    if heard.description:
        text = heard.description
        return Described(robot_from_text(text, *settings.current.ends()), text)
    raise missing or NoAnswerError("the node has no robot yet")
