# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Robot of a running node, for commands that plot it, record it or show it on the web page."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from dls_ik.cli import output
from dls_ik.cli.options import ChosenRobot
from dls_ik.errors import ChainError
from dls_ik.text import listing, quoted

if TYPE_CHECKING:
    from dls_ik.model.robot import RobotModel
    from dls_ik.ros.client.target_publisher import TargetPublisher
    from dls_ik.ros.robot_source import DescribedRobot
    from dls_ik.ros.viewer_source import NodeSource

DESCRIPTION_POLL_PERIOD = 0.02  # [s] time between two checks for received joint positions


own_robot_option = click.option(
    "--robot", metavar="ROBOT", help="Robot (name or file), if the node read its own from a file."
)


class RobotPicture(NamedTuple):
    """Robot to draw, and the names of its n joints in the topic joint_states."""

    robot: RobotModel
    names: tuple[str, ...]  # (n,) names in joint_states


def robot_to_draw(publisher: TargetPublisher, named: str | None) -> RobotPicture:
    """Return the robot of a running node, or a named robot with base and tip of the node.

    Returns once all joint positions of the robot have been received.

    Args:
        publisher: Connection to the node.
        named: Name or file of the robot; None stands for the robot of the node.

    Raises:
        ServiceMissingError: If no node offers the service.
        NoAnswerError: If the node does not answer, or sends no joint positions.
        RobotModelError: If the robot of the node is not usable, or was read from a file of which
            `named` must give a copy on this machine.
    """
    from dls_ik.ros.robot_source import ForeignFileError, served_robot, subscribe_descriptions
    from dls_ik.ros.servo.outputs import arrange_joints
    from dls_ik.ros.viewer_source import NodeParameters

    texts: list[Any] = []
    subscribe_descriptions(publisher.node, texts.append)
    settings = NodeParameters(publisher.node, publisher.name)
    try:
        robot, _ = served_robot(
            lambda: settings.read(publisher.patience),
            lambda: texts[-1].data if texts else "",
            own_robot(named),
        )
    except ForeignFileError as error:
        raise ForeignFileError(f"{error}, by --robot FILE, for the picture") from None
    joints = arrange_joints(
        robot.joint_names, settings.current.output_joints, settings.current.output_names
    )
    called = {ours: theirs for theirs, ours in joints.robot_names.items()}
    found = RobotPicture(robot, tuple(called.get(name, name) for name in robot.joint_names))
    _wait_for_joints(publisher, found)
    return found


def _wait_for_joints(publisher: TargetPublisher, drawn: RobotPicture) -> None:
    """Wait until a position of each joint of a robot has been received.

    Raises:
        NoAnswerError: If a joint position is missing after the timeout of `publisher`.
    """
    from dls_ik.ros.client.connection import NoAnswerError

    deadline = time.monotonic() + publisher.patience
    while missing := [name for name in drawn.names if name not in publisher.monitor.q]:
        if time.monotonic() > deadline:
            topic = publisher.node.resolve_topic_name("joint_states")
            raise NoAnswerError(
                f"--plot needs the joint positions; no position of {listing(missing)} received on "
                f"{topic} within {publisher.patience:g} s"
            )
        time.sleep(DESCRIPTION_POLL_PERIOD)


def node_source(chosen: ChosenRobot | None, namespace: str, patience: float) -> NodeSource:
    """Connect the web page to a solver node, and return the connection.

    If no node is found within the timeout and a robot is chosen, a warning is printed, and the
    connection shows the chosen robot until the node starts.

    Args:
        chosen: Robot chosen on the command line; None stands for the robot of the node.
        namespace: ROS namespace of the node.
        patience: Timeout to find the node [s].
    """
    from dls_ik.ros.client.connection import NOT_THERE
    from dls_ik.ros.viewer_source import NodeSource

    if chosen is None:
        return NodeSource(None, namespace, patience)
    if chosen.base or chosen.tip:
        return NodeSource(_described(chosen), namespace, patience)
    name = chosen.name
    try:
        alone: DescribedRobot | None = _described(chosen)
    except ChainError:  # several links can be the tip; the node selects one
        alone = None
    try:
        return NodeSource(
            None, namespace, patience,
            own=lambda base, tip: _described(ChosenRobot(name, base, tip)),
        )  # fmt: skip
    except NOT_THERE as error:
        found = alone or _described(chosen)
        ends = f"base {quoted(found.robot.base)} and tip {quoted(found.robot.tip)}"
        output.warn(f"{error}; showing the robot with {ends} until the node starts")
        return NodeSource(found, namespace, patience)


def _described(chosen: ChosenRobot) -> DescribedRobot:
    """Return the robot model and the URDF of a robot chosen on the command line."""
    from dls_ik.model.load import find_urdf
    from dls_ik.ros.robot_source import DescribedRobot

    return DescribedRobot(chosen.read(), find_urdf(chosen.name))


def own_robot(named: str | None) -> Callable[[str | None, str | None], DescribedRobot] | None:
    """Return a function of base and tip that reads the robot named by --robot; None without it."""
    return None if named is None else lambda base, tip: _described(ChosenRobot(named, base, tip))
