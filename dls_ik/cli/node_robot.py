"""The robot of a running node, for commands that draw it, record it or show its page."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dls_ik.cli import output
from dls_ik.cli.options import ChosenRobot
from dls_ik.errors import ChainError, DlsIkError
from dls_ik.text import listing

if TYPE_CHECKING:
    from dls_ik.model.robot import RobotModel
    from dls_ik.ros.client.target_publisher import TargetPublisher
    from dls_ik.ros.robot_source import DescribedRobot
    from dls_ik.ros.viewer_source import NodeParameters, NodeSource

POLL = 0.02  # [s]
BRIEF = 1.0  # [s] for a node that only confirms base and tip


class RobotPicture(NamedTuple):
    """Robot to draw, and the names of its joints in joint_states."""

    robot: RobotModel
    names: tuple[str, ...]  # (n,)


def robot_to_draw(publisher: TargetPublisher, named: str | None) -> RobotPicture:
    """Return the robot of the node, or one named here, with the node's base, tip and joints.

    Raises:
        ServiceMissingError: If no node offers the service.
        NoAnswerError: If the node does not answer, or sends no joint positions.
        RobotModelError: If the robot of the node is not usable, or is a file that must be named
            here.
    """
    from dls_ik.ros.servo.outputs import arrange_joints

    (robot, _), settings = _described_robot(publisher, named, "picture")
    joints = arrange_joints(
        robot.joint_names, settings.current.output_joints, settings.current.output_names
    )
    called = {ours: theirs for theirs, ours in joints.robot_names.items()}
    found = RobotPicture(robot, tuple(called.get(name, name) for name in robot.joint_names))
    _wait_for_joints(publisher, found)
    return found


def described_urdf(publisher: TargetPublisher, named: str | None) -> Path | str | None:
    """Return the description of the node's robot, or of one named here; None, with a warning: none.

    Raises:
        RobotModelError: If the robot is not usable.
    """
    if named is not None:
        from dls_ik.model.load import find_urdf

        return find_urdf(named)
    try:
        (_, urdf), _ = _described_robot(publisher, None, "bag")
    except DlsIkError as error:
        output.warn(f"no robot_description in the bag: {error}")
        return None
    return urdf


def _described_robot(
    publisher: TargetPublisher, named: str | None, use: str
) -> tuple[DescribedRobot, NodeParameters]:
    """Return the robot of the node, or one named here, and the parameters of the node."""
    from dls_ik.ros.robot_source import ForeignFileError, served_robot, subscribe_descriptions
    from dls_ik.ros.viewer_source import NodeParameters

    texts: list[Any] = []
    subscribe_descriptions(publisher.node, texts.append)
    settings = NodeParameters(publisher.node, publisher.name)
    try:
        found = served_robot(
            lambda: settings.read(publisher.patience),
            lambda: texts[-1].data if texts else "",
            None if named is None else lambda base, tip: _described(ChosenRobot(named, base, tip)),
        )
    except ForeignFileError as error:
        raise ForeignFileError(f"{error}, by --robot FILE, for the {use}") from None
    return found, settings


def _wait_for_joints(publisher: TargetPublisher, drawn: RobotPicture) -> None:
    from dls_ik.ros.client.connection import NoAnswerError

    deadline = time.monotonic() + publisher.patience
    while missing := [name for name in drawn.names if name not in publisher.monitor.q]:
        if time.monotonic() > deadline:
            topic = publisher.node.resolve_topic_name("joint_states")
            raise NoAnswerError(
                f"--plot draws the joints, and nothing comes on {topic} of {listing(missing)} "
                f"within {publisher.patience:g} s"
            )
        time.sleep(POLL)


def node_source(chosen: ChosenRobot | None, namespace: str, patience: float) -> NodeSource:
    """Return the node as a source of the page; it may start later where its robot is chosen."""
    from dls_ik.ros.client.connection import NOT_THERE
    from dls_ik.ros.viewer_source import NodeSource

    if chosen is None:
        return NodeSource(None, namespace, patience)
    if chosen.base or chosen.tip:
        return NodeSource(_described(chosen), namespace, patience)
    name = chosen.name
    try:
        alone: DescribedRobot | None = _described(chosen)
    except ChainError:  # several links could be the tip: the node knows which
        alone = None
    try:
        return NodeSource(
            None, namespace, BRIEF if alone else patience,
            own=lambda base, tip: _described(ChosenRobot(name, base, tip)),
        )  # fmt: skip
    except NOT_THERE:
        return NodeSource(alone or _described(chosen), namespace, patience)


def _described(chosen: ChosenRobot) -> DescribedRobot:
    from dls_ik.model.load import find_urdf
    from dls_ik.ros.robot_source import DescribedRobot

    return DescribedRobot(chosen.read(), find_urdf(chosen.name))
