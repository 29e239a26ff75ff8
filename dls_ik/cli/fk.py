"""``dls-ik fk``: where joint values take the tip, or other links."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import numpy as np

from dls_ik.cli.joints import joint_vector
from dls_ik.cli.options import ROBOT, find_robot, robot_options
from dls_ik.cli.output import json_option, print_json
from dls_ik.cli.pose import figures, pose_facts, pose_pairs
from dls_ik.cli.terminal import print_heading, print_pairs, stdout_console
from dls_ik.core.types import Array

if TYPE_CHECKING:
    from dls_ik.model.robot import RobotModel

MOST = 100_000  # random configurations

Posture = tuple[Array, dict[str, float]]  # values of the chain (n,), and of other joints by name


@click.command(epilog=ROBOT, short_help="Say where joint values take the tip.")
@robot_options
@click.option(
    "--q",
    "given",
    metavar="VALUES",
    multiple=True,
    help="Joint values [rad or m]: all from base to tip (0.1,0.2), or some by name (j1=0.1).",
)
@click.option("--deg", is_flag=True, help="Values of --q of joints that turn are in degrees.")
@click.option(
    "--random",
    "count",
    type=click.IntRange(1, MOST),
    metavar="N",
    help="So many configurations at random instead.",
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    metavar="N",
    show_default=True,
    help="Of --random.",
)
@click.option(
    "--link",
    "links",
    multiple=True,
    metavar="LINK",
    help="Link that is meant; more than once. Default: the tip.",
)
@json_option
def fk(
    robot: str,
    base: str | None,
    tip: str | None,
    given: tuple[str, ...],
    deg: bool,
    count: int | None,
    seed: int,
    links: tuple[str, ...],
    as_json: bool,
) -> None:
    """Say where joint values take the tip: xyz [m], rpy [rad], quaternion x y z w, and matrix."""
    if bool(given) == (count is not None):
        raise click.UsageError("give either --q or --random")
    model = find_robot(robot, base, tip)
    links = links or model.tips
    for link in links:
        model.tree.require(link)
    if count is None:
        postures = [joint_vector(model, given, "--q", deg)]
    else:
        postures = [(q, {}) for q in model.random(np.random.default_rng(seed), count)]
    answers = [_answer(model, posture, links) for posture in postures]
    if as_json:
        print_json(answers if count is not None else answers[0])
    else:
        _show(model, answers, many=count is not None)


def _answer(robot: RobotModel, posture: Posture, links: tuple[str, ...]) -> dict[str, Any]:
    q, others = posture
    poses = {link: pose_facts(robot.link_pose(link, q, others)) for link in links}
    joints = {**dict(zip(robot.joint_names, q.tolist(), strict=True)), **others}
    outside = (q < robot.lower) | (q > robot.upper)
    beyond = [robot.joint_names[i] for i in np.flatnonzero(outside)]
    return {"base": robot.base, "joints": joints, "beyond_limits": beyond, "poses": poses}


def _show(robot: RobotModel, answers: list[dict[str, Any]], many: bool) -> None:
    console = stdout_console()
    for i, answer in enumerate(answers):
        if i:
            console.print()
        if many:
            print_pairs(console, [("q", figures(answer["joints"].values()))])
        for link, pose in answer["poses"].items():
            if len(answer["poses"]) > 1:
                print_heading(console, link)
            print_pairs(console, pose_pairs(np.array(pose["matrix"])))
        if answer["beyond_limits"]:
            names = ", ".join(answer["beyond_limits"])
            click.echo(f"dls-ik: beyond their limits: {names}", err=True)
