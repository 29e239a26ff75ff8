# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""``dls-ik info``: joints, reach and singular configurations of a robot."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from rich.console import Console
from rich.text import Text

from dls_ik.cli import output
from dls_ik.cli.collisions import pair_facts, random_facts, share_of_random
from dls_ik.cli.options import ROBOT_HELP, ChosenRobot, ChosenScene, robot_options, scene_options
from dls_ik.cli.terminal import figure, limit, stdout_console
from dls_ik.errors import RobotModelError
from dls_ik.model.ends import moving_tips
from dls_ik.model.robot import RobotModel
from dls_ik.model.tree import Tree
from dls_ik.tables import print_heading, print_note, print_pairs, print_table
from dls_ik.text import listing

if TYPE_CHECKING:
    from dls_ik.model.analysis import Singularity

MAX_TIPS = 4  # maximum number of tips that are described without --tip
MAX_FAMILIES = 10  # maximum number of families of singular configurations that are printed
MAX_POSITIONS = 4  # maximum number of joint positions of a family that are printed
NUM_COLLISION_SAMPLES = 2000  # random configurations checked for collisions
ANGLE_TOLERANCE = 1e-6  # [rad] rounding of angles that are given within half a turn
LIMIT_FIELDS = ("lower", "upper", "velocity")


@click.command(epilog=ROBOT_HELP, short_help="Show the joints, limits and reach of a robot.")
@robot_options
@scene_options
@click.option("--quick", is_flag=True, help="Omit slow results: reach and singularities.")
@output.json_option
def info(chosen: ChosenRobot, around: ChosenScene, quick: bool, as_json: bool) -> None:
    """Show joints and limits, tips, reach and singular configurations of a robot."""
    from dls_ik.model.load import find_tree

    tree = find_tree(chosen.name)
    chains = _chains(tree, chosen.base, chosen.tip)
    facts = _robot_facts(tree, chosen.name, chosen.base or tree.root)
    facts["chains"] = [_chain_facts(chain, around, quick) for chain in chains]
    output.print_json(facts) if as_json else _print_info(facts)


# Facts


def _chains(tree: Tree, base: str | None, tip: str | None) -> list[RobotModel]:
    """Return the chain to `tip`; without `tip`, return the chains to all tips.

    If there are more than MAX_TIPS tips and `tip` is not given, no chain is returned.
    """
    tips = _tips(tree, tree.require(base or tree.root, "base link"))
    if tip is None and 1 < len(tips):
        return [RobotModel.from_tree(tree, base, each) for each in tips if len(tips) <= MAX_TIPS]
    return [RobotModel.from_tree(tree, base, tip)]


def _tips(tree: Tree, base: str) -> tuple[str, ...]:
    """Return the names of the tip links of a base link; a default tip, if any, comes first."""
    tips = moving_tips(tree, base)
    try:
        default = RobotModel.from_tree(tree, base).tip
    except RobotModelError:
        return tips
    return (default, *(tip for tip in tips if tip != default))


def _robot_facts(tree: Tree, given: str, base: str) -> dict[str, Any]:
    """Return a JSON document with the name, the tips, the moving joints and the size of a robot.

    Args:
        tree: Kinematic tree of the robot.
        given: Name or file given on the command line.
        base: Name of the base link.
    """
    moving = [joint for joint in tree.joints if joint.kind != "fixed"]
    keys = ("name", "kind", "parent", "child", "lower", "upper", "velocity")
    return {
        "name": tree.name,
        "robot": given,
        "links": len(tree.links),
        "fixed_joints": len(tree.joints) - len(moving),
        "root": tree.root,
        "base": base,
        "tips": _tips(tree, base),
        "joints": [
            {**{key: getattr(joint, key) for key in keys}, "mimic": _mimic(tree, joint.name)}
            for joint in moving
        ],
    }


def _mimic(tree: Tree, name: str) -> dict[str, Any] | None:
    """Return the mimic relation of a joint as a dict, or None if it mimics no other joint."""
    drive = tree.mimic_of.get(name)
    if drive is None or drive.master == name:
        return None
    return {"joint": drive.master, "multiplier": drive.multiplier, "offset": drive.offset}


def _chain_facts(robot: RobotModel, around: ChosenScene, quick: bool) -> dict[str, Any]:
    """Return a JSON document with the joints, collisions, reach and singularities of one chain.

    Args:
        robot: Robot with the chain.
        around: Scene options of the command line; without them no collisions are reported.
        quick: Whether to omit reach, axes and singularities, which take long to compute.
    """
    facts: dict[str, Any] = {"base": robot.base, "tip": robot.tip, "joints": robot.joint_names}
    facts["velocity_known"] = bool(np.isfinite(robot.velocity).all())
    scene = around.read(robot)
    if scene is not None:
        found = random_facts(scene, NUM_COLLISION_SAMPLES, seed=0)
        facts["collisions"] = {**pair_facts(scene), "random": found}
    if quick:
        return facts
    from dls_ik.model.analysis import joint_axes
    from dls_ik.model.reach import tip_extent

    axes = joint_axes(robot)
    facts["axes"] = {
        name: [[robot.joint_names[i] for i in group] for group in getattr(axes, name)]
        for name in ("meeting", "parallel")
    }
    point, least, most, seen = tip_extent(robot)
    facts["reach"] = {"from": point, "at_least": least, "at_most": most, "seen": seen}
    return {**facts, **_dexterity(robot)}


def _dexterity(robot: RobotModel) -> dict[str, Any]:
    """Return a JSON document with rank, conditioning and singular configurations of a chain.

    The position is analysed instead of the pose if the orientation follows from it, and in
    addition to the pose if the chain cannot reach a pose in general.
    """
    from dls_ik.model.analysis import POSITION_ROWS, ROTATION_WEIGHT, analysed_rows, conditioning

    rows, *others = analysed_rows(robot)
    measured = conditioning(robot, rows=rows)
    facts = {
        "rank": measured.rank,
        "redundancy": robot.n - measured.rank,
        "conditioning": {
            "task": _task_name(rows),
            "metres_per_radian": ROTATION_WEIGHT,
            "samples": len(measured.least),
            "least_singular_value": _quantiles(measured.least),
            "condition_number": _quantiles(measured.condition),
        },
        "singularities": _singularities(robot, rows),
    }
    if others:
        facts["position_singularities"] = _singularities(robot, POSITION_ROWS)
    return facts


def _task_name(rows: int) -> str:
    """Return the name of the task that consists of the first `rows` rows of the Jacobian."""
    from dls_ik.model.analysis import POSITION_ROWS

    return "position" if rows == POSITION_ROWS else "pose"


def _singularities(robot: RobotModel, rows: int) -> dict[str, Any]:
    """Return a JSON document with the singular configurations of the pose or the position."""
    from dls_ik.model.analysis import singularities

    found = singularities(robot, rows)
    return {
        "task": _task_name(rows),
        "starts": found.starts,
        "families": [_family(robot, family) for family in found.families],
        "most_nearly_singular": {
            "q": robot.named(found.worst),
            "share_of_largest": found.least,
            **found.weak._asdict(),
        },
    }


def _quantiles(values: Any) -> dict[str, float]:
    """Return the 5 % quantile, the median and the 95 % quantile of values."""
    return dict(zip(("p5", "median", "p95"), np.quantile(values, (0.05, 0.5, 0.95)), strict=True))


def _family(robot: RobotModel, family: Singularity) -> dict[str, Any]:
    """Return a family of singular configurations as a JSON document.

    Angles are in (-pi, pi] where the joint limits allow it.

    A family is a set of singular configurations in which some joints have given positions and the
    other joints are free.
    """
    start = ANGLE_TOLERANCE - math.pi
    turned = np.remainder(family.q - start, 2.0 * math.pi) + start
    turned = np.where(robot.continuous, turned, robot.clip(turned))
    is_turned = np.abs(np.remainder(turned - family.q + 1.0, 2.0 * math.pi) - 1.0) < ANGLE_TOLERANCE
    is_angle = np.array([unit == "rad" for unit in robot.units])
    q = np.where(is_angle & is_turned, turned, family.q)
    q[np.abs(q) < 1e-9] = 0.0
    names = robot.joint_names
    return {
        "joints": {names[i]: float(q[i]) for i in family.joints},
        "tied": [names[i] for i in family.tied],
        "example": robot.named(q),
        "rank": family.rank,
        **family.loss._asdict(),
    }


# Print


def _print_info(facts: dict[str, Any]) -> None:
    """Print all results of the command as text."""
    console = stdout_console()
    moving = [joint for joint in facts["joints"] if joint["mimic"] is None]
    followers = len(facts["joints"]) - len(moving)
    also = f", {followers} mimic" if followers else ""
    console.print(Text(facts["name"], style="bold"))
    print_pairs(
        console,
        [
            ("joints", f"{len(moving)} moving{also}, {facts['fixed_joints']} fixed"),
            ("links", str(facts["links"])),
            ("base", facts["base"]),
            ("tips" if len(facts["tips"]) > 1 else "tip", listing(facts["tips"])),
        ],
    )
    print_heading(console, "Joints [rad, rad/s; prismatic: m, m/s]")
    _print_joints(console, facts["joints"])
    if not facts["chains"]:
        console.print("\nReach and singularities are computed for one tip; choose it by --tip.")
    for chain in facts["chains"]:
        _print_chain(console, chain, many=len(facts["tips"]) > 1)


def _print_joints(console: Console, joints: Sequence[dict[str, Any]]) -> None:
    """Print a table of the joints with their limits, and a line for each mimic joint."""
    rows = [
        [joint["name"], joint["kind"], *(limit(joint[key]) for key in LIMIT_FIELDS)]
        for joint in joints
    ]
    print_table(console, ["joint", "type", *LIMIT_FIELDS], rows, left=(0, 1))
    for joint in joints:
        if joint["mimic"] is not None:
            master, scale, offset = joint["mimic"].values()
            also = f" {offset:+g}" if offset else ""
            console.print(f"{joint['name']} mimics: {scale:g} x {master}{also}", soft_wrap=True)


def _print_chain(console: Console, chain: dict[str, Any], many: bool) -> None:
    """Print the results for the chain to one tip; `many` is whether the robot has several tips."""
    names = chain["joints"]
    where = f" of {chain['tip']}" if many else ""
    if many:
        print_heading(console, f"{chain['base']} to {chain['tip']}")
        print_pairs(console, [("joints", listing(names))])
    if "collisions" in chain:
        print_heading(console, f"Collisions{where}")
        print_pairs(console, _collisions(chain["collisions"]))
    if "rank" not in chain:
        return
    print_heading(console, f"Structure{where}")
    print_pairs(console, _structure(chain))
    print_heading(console, f"Singular configurations{where}")
    if chain["singularities"]["task"] == "position":
        print_note(
            console,
            "Of the position: the orientation follows from the position of this arm, so that it "
            "cannot reach a pose in general.",
            style="",
        )
    _print_singularities(console, chain, chain["singularities"])
    if "position_singularities" in chain:
        print_heading(console, f"Singular configurations of the position{where}")
        _print_singularities(console, chain, chain["position_singularities"])


def _collisions(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """Return titles and texts of the collision results of a chain, for printing."""
    things = f"{len(facts['links'])} links with geometry, {len(facts['objects'])} objects"
    most = facts["random"]["most_often"]
    often = [("most often", " - ".join(most[0]["pair"]))] if most else []
    return [
        ("checked", f"{len(facts['checked'])} pairs of {things}"),
        ("colliding", f"{share_of_random(facts['random'])} random configurations"),
        *often,
    ]


def _structure(chain: dict[str, Any]) -> list[tuple[str, str]]:
    """Return titles and texts of a chain's rank, axes, reach and conditioning, for printing."""
    n, rank, redundancy = len(chain["joints"]), chain["rank"], chain["redundancy"]
    moves = f"{n} joint{' moves' if n == 1 else 's move'} the tip in {rank} of 6 directions"
    spare = f"redundant by {redundancy}" if redundancy else "not redundant"
    reach, figures = chain["reach"], chain["conditioning"]
    seen = f"random configurations: {reach['seen'][0]:.3f} to {reach['seen'][1]:.3f} m"
    smallest, condition = figures["least_singular_value"], figures["condition_number"]
    is_pose = figures["task"] == "pose"
    weighs = f"1 rad weighs {figures['metres_per_radian']:g} m" if is_pose else "of the position"
    axes = [("axes", f"{', '.join(run)} meet in a point") for run in chain["axes"]["meeting"]]
    axes += [("axes", f"{', '.join(run)} are parallel") for run in chain["axes"]["parallel"]]
    return [
        ("rank", f"{moves}, {spare}"),
        *axes,
        ("reach", f"at least {reach['at_least']:.3f}, at most {reach['at_most']:.3f} m; {seen}"),
        ("", f"from the point {_vector(reach['from'])} m of the first axis, in {chain['base']}"),
        (
            "smallest singular value",
            f"median {smallest['median']:.3g}, 5 % below {smallest['p5']:.2g} ({weighs})",
        ),
        ("condition number", f"median {condition['median']:.3g}, 5 % above {condition['p95']:.3g}"),
    ]


def _print_singularities(console: Console, chain: dict[str, Any], found: dict[str, Any]) -> None:
    """Print the singular configurations of a chain, grouped into families with the same cause.

    If none were found, print the configuration that is closest to singular.

    Args:
        console: Console to print to.
        chain: Results of the analysis of the chain.
        found: Singular configurations of the 6-row Jacobian, or of its three position rows.
    """
    families = found["families"]
    if not families:
        worst = found["most_nearly_singular"]
        print_note(
            console,
            f"none found within the limits from {found['starts']} random starts: the smallest "
            f"singular value stays above {100.0 * worst['share_of_largest']:.3g} % of the largest, "
            f"at {_joint_values(worst['q'])}; hardest motion there: {_loss(worst)}",
            style="",
        )
        return
    groups: dict[Any, list[dict[str, Any]]] = {}
    for family in families:
        groups.setdefault((*family["joints"], *family["tied"]), []).append(family)
    for group in list(groups.values())[:MAX_FAMILIES]:
        console.print(Text(_condition(group)))
        rank = f"rank {group[0]['rank']}"
        print_pairs(console, [(rank, f"lost: {_loss(group[0])}")], indent=2)
    if len(groups) > MAX_FAMILIES:
        console.print(f"and {len(groups) - MAX_FAMILIES} more; --json prints all of them")
    print_note(
        console,
        f"Found from {found['starts']} random starts; joints that are not named may have any "
        f"position. The lost motion is that of one such configuration (see --json), in "
        f"{chain['base']}.",
    )


def _condition(group: list[dict[str, Any]]) -> str:
    """Return a text with the joint positions that define families of singular configurations.

    Args:
        group: Families that fix the same joints, at different positions.
    """
    names, tied = list(group[0]["joints"]), group[0]["tied"]
    if not names:
        return "everywhere"
    fixed = [name for name in names if name not in tied]
    positions = [{name: family["joints"][name] for name in fixed} for family in group]
    values = [{figure(each[name]): None for each in positions} for name in fixed]
    if math.prod(map(len, values)) == len(group):
        parts = [f"{n} = {' or '.join(v)}" for n, v in zip(fixed, values, strict=True)]
    else:
        shown = "; or ".join(map(_joint_values, positions[:MAX_POSITIONS]))
        more = len(positions) - MAX_POSITIONS
        parts = [f"{shown}; and {more} more" if more > 0 else shown]
    if tied:
        example = {name: group[0]["joints"][name] for name in tied}
        parts.append(f"{' and '.join(tied)} together, as {_joint_values(example)}")
    return ", ".join(parts)


def _loss(family: dict[str, Any]) -> str:
    """Return a text that describes the tip motion lost at a singular configuration."""
    if not np.any(family["force"]):
        return f"rotation about {_vector(family['moment'], 2)}"
    line = f"motion along {_vector(family['force'], 2)} through {_vector(family['point'], 2)} m"
    return line + (" with a rotation about it" if np.abs(family["moment"]).max() > 1e-4 else "")


def _joint_values(q: dict[str, float]) -> str:
    """Return joint names and positions as one line of text."""
    return ", ".join(f"{name} = {figure(value)}" for name, value in q.items())


def _vector(values: Any, digits: int = 3) -> str:
    """Return three numbers as text in parentheses; -0 is shown as 0."""
    return f"({', '.join(figure(float(value), digits) for value in values)})"
