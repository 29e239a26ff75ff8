# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""``dls-ik fk``: poses of the tip or of other links at joint positions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import numpy as np

from dls_ik.cli import output
from dls_ik.cli.options import ROBOT_HELP, ChosenRobot, joint_vector, robot_options
from dls_ik.cli.pose import columns, pose_facts, pose_pairs
from dls_ik.cli.terminal import stdout_console
from dls_ik.core.types import Array
from dls_ik.tables import print_heading, print_pairs

if TYPE_CHECKING:
    from dls_ik.model.robot import RobotModel

MAX_RANDOM = 100_000  # maximum number of random configurations


@click.command(epilog=ROBOT_HELP, short_help="Show the pose of the tip at joint positions.")
@robot_options
@click.option(
    "--q",
    "given",
    metavar="VALUES",
    multiple=True,
    help="Joint positions [rad or m]: all from base to tip (0.1,0.2), or some by name (j1=0.1).",
)
@click.option("--deg", is_flag=True, help="Positions of revolute joints in --q are in degrees.")
@click.option(
    "--random",
    "count",
    type=click.IntRange(1, MAX_RANDOM),
    metavar="N",
    help="Use N random configurations instead of --q.",
)
@click.option("--seed", type=click.IntRange(0), default=0, metavar="N", help="Seed of --random.")
@click.option(
    "--link",
    "links",
    multiple=True,
    metavar="LINK",
    help="Link to use instead of the tip; may be repeated.",
)
@output.json_option
def fk(
    chosen: ChosenRobot,
    given: tuple[str, ...],
    deg: bool,
    count: int | None,
    seed: int,
    links: tuple[str, ...],
    as_json: bool,
) -> None:
    """Show the pose of the tip: xyz [m], rpy [rad], quaternion x y z w, and matrix."""
    if bool(given) == (count is not None):
        raise click.UsageError("give either --q or --random")
    robot = chosen.read()
    links = links or robot.tips
    for link in links:
        robot.tree.require(link)
    if count is None:
        answers = [_answer(robot, *joint_vector(robot, given, "--q", deg), links)]
    else:
        configurations = robot.random(count, np.random.default_rng(seed))
        answers = [_answer(robot, q, {}, links) for q in configurations]
    if as_json:
        output.print_json(answers[0] if count is None else answers)
    else:
        _print_answers(answers, with_joints=count is not None)


def _answer(
    robot: RobotModel, q: Array, others: dict[str, float], links: tuple[str, ...]
) -> dict[str, Any]:
    """Return the poses of links at one configuration as a JSON document.

    Args:
        robot: Robot.
        q: (n,) positions of the joints of the chain [rad or m].
        others: Positions of joints outside the chain, by name [rad or m].
        links: Names of the links.
    """
    outside = (q < robot.lower) | (q > robot.upper)
    return {
        "base": robot.base,
        "joints": {**robot.named(q), **others},
        "beyond_limits": [robot.joint_names[i] for i in np.flatnonzero(outside)],
        "poses": {link: pose_facts(robot.link_pose(link, q, others)) for link in links},
    }


def _print_answers(answers: list[dict[str, Any]], with_joints: bool) -> None:
    """Print the link poses at each configuration, and with `with_joints` the joint positions."""
    console = stdout_console()
    for i, answer in enumerate(answers):
        if i:
            console.print()
        if with_joints:
            print_pairs(console, [("q", columns(answer["joints"].values()))])
        for link, pose in answer["poses"].items():
            if len(answer["poses"]) > 1:
                print_heading(console, link)
            print_pairs(console, pose_pairs(pose))
        if answer["beyond_limits"]:
            output.warn(f"joints beyond their limits: {', '.join(answer['beyond_limits'])}")
