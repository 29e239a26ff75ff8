"""The picture of a stream: which robot it shows, found before the arm moves, and the drawing."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import numpy as np

from dls_ik.cli.group import say
from dls_ik.model.names import listing
from dls_ik.model.rotations import inverse

if TYPE_CHECKING:
    from dls_ik.core.types import Array
    from dls_ik.model.robot import RobotModel
    from dls_ik.ros.client.robot import Described
    from dls_ik.ros.client.streamer import Outcome, Streamer

POLL = 0.02  # [s]


class Drawn(NamedTuple):
    """The robot of a picture, and what joint_states call the joints of its chain."""

    robot: RobotModel
    names: tuple[str, ...]  # (n,)


def robot_to_draw(streamer: Streamer, named: str | None) -> Drawn:
    """The robot of the node, or one that is named here, with the node's base, tip and joints.

    Raises:
        ServiceMissingError, NoAnswerError: the node does not say, or sends no values of the joints.
        RobotModelError: it is no usable robot, or a file, which has to be named here.
    """
    from dls_ik.cli.robot import find_robot
    from dls_ik.ros.client.robot import Described, ForeignFileError, served
    from dls_ik.ros.outputs.outputs import arrange
    from dls_ik.ros.robot_source import hear_descriptions
    from dls_ik.ros.viewer.monitor import Settings

    def own(base: str | None, tip: str | None) -> Described:
        return Described(find_robot(str(named), base, tip), None)

    texts: list[Any] = []
    hear_descriptions(streamer.node, texts.append)
    settings = Settings(streamer.node, streamer.name)
    try:
        robot, _ = served(
            lambda: settings.read(streamer.patience),
            lambda: texts[-1].data if texts else "",
            None if named is None else own,
        )
    except ForeignFileError as error:
        raise ForeignFileError(f"{error}, by --robot FILE, for the picture") from None
    joints = arrange(
        robot.joint_names, settings.current.output_joints, settings.current.output_names
    )
    called = {ours: theirs for theirs, ours in joints.robot_names.items()}
    found = Drawn(robot, tuple(called.get(name, name) for name in robot.joint_names))
    _wait_for_joints(streamer, found)
    return found


def _wait_for_joints(streamer: Streamer, drawn: Drawn) -> None:
    from dls_ik.ros.client.connection import NoAnswerError

    deadline = time.monotonic() + streamer.patience
    while missing := [name for name in drawn.names if name not in streamer.heard.q]:
        if time.monotonic() > deadline:
            topic = streamer.node.resolve_topic_name("joint_states")
            raise NoAnswerError(
                f"--plot draws the joints, and nothing comes on {topic} of {listing(missing)} "
                f"within {streamer.patience:g} s"
            )
        time.sleep(POLL)


def draw(path: str, drawn: Drawn, outcome: Outcome) -> None:
    """Draw the tip beside its targets, or the joints where there were none in the root frame.

    What is drawn begins with the first target that came back.
    """
    from dls_ik.cli.output import write_whole
    from dls_ik.plot import joint_bands, save_picture, tip_path

    rows = [row for row in outcome.rows if all(name in row.q for name in drawn.names)]
    rows = [row for row in rows if row.target is not None] or rows
    if len(rows) < 2:
        say("no picture: the stream ended before two cycles of the node were heard")
        return
    robot = drawn.robot
    times = [row.time - outcome.begin for row in rows]
    q = np.array([[row.q[name] for name in drawn.names] for row in rows])
    goals = [row.target for row in rows if row.target is not None]
    if len(goals) < len(rows) or rows[0].frame != robot.tree.root or len(robot.tips) > 1:
        figure = joint_bands(robot, times, q)
    else:
        figure = tip_path(robot, times, q, _in_base(robot, q, goals))
    write_whole(path, lambda part: save_picture(part, figure))
    click.echo(f"picture: {path}", err=True)


def _in_base(robot: RobotModel, q: Array, goals: list[Array]) -> Array:
    """Where targets (k, 4, 4) in the root frame are in that of the base, (k, 3) [m]."""
    roots = [
        inverse(robot.tree.pose(robot.base, dict(zip(robot.joint_names, row, strict=True))))
        for row in q.tolist()
    ]
    return np.array([(T @ goal)[:3, 3] for T, goal in zip(roots, goals, strict=True)])
