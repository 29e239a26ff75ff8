# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""``dls-ik collisions``: checked pairs of links, the closest pair, and collision statistics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from rich.console import Console

from dls_ik.cli import output
from dls_ik.cli.options import (
    ROBOT_HELP,
    ChosenRobot,
    ChosenScene,
    joint_vector,
    robot_options,
    scene_options,
)
from dls_ik.cli.pose import columns
from dls_ik.cli.terminal import stdout_console
from dls_ik.core.types import Array
from dls_ik.tables import print_heading, print_note, print_pairs, print_table
from dls_ik.text import escape, listing

if TYPE_CHECKING:
    from dls_ik.model.robot import RobotModel
    from dls_ik.scene.planning_scene import PlanningScene
    from dls_ik.scene.srdf import Pair

MAX_SAMPLES = 100_000
MAX_COUNTED = 200  # maximum colliding configurations whose colliding pairs are counted
MAX_SHOWN = 5  # maximum number of frequently colliding pairs that are shown
SCENE_REASON = "Scene"  # shown as the reason of pairs that may touch according to a scene file
MEANING = {
    "Adjacent": "connected by a joint",
    "Default": "in collision with all joints at 0",
    "Always": "in collision almost everywhere",
    "Never": "never found in collision",
    SCENE_REASON: "allowed by the scene",
}


@click.command(
    epilog=ROBOT_HELP, short_help="Show collision pairs, the closest pair, and statistics."
)
@robot_options
@scene_options
@click.option(
    "--q",
    "given",
    metavar="VALUES",
    multiple=True,
    help="Current joint positions [rad or m], as for fk; default: 0, or the limit closest to 0.",
)
@click.option("--deg", is_flag=True, help="Positions of revolute joints in --q are in degrees.")
@click.option(
    "--samples",
    type=click.IntRange(0, MAX_SAMPLES),
    default=2000,
    metavar="N",
    help="Number of random configurations.",
)
@click.option("--seed", type=click.IntRange(0), default=0, metavar="N", help="Seed of --samples.")
@click.option(
    "--write-srdf", "target", metavar="FILE", help="Write an SRDF with the pairs that may touch."
)
@output.json_option
def collisions(
    chosen: ChosenRobot,
    around: ChosenScene,
    given: tuple[str, ...],
    deg: bool,
    samples: int,
    seed: int,
    target: str | None,
    as_json: bool,
) -> None:
    """Show the pairs of links that may touch, the closest pair, and how often links collide."""
    output.check_outputs(target)
    robot = _whole_robot(chosen)
    scene = around.read_always(robot)
    q, others = robot.clip(np.zeros(robot.n)), dict[str, float]()
    if given:
        q, others = joint_vector(robot, given, "--q", deg)
    scene.set_joints(others)
    if target is not None:
        output.write_text(target, _srdf_text(scene))
        click.echo(f"SRDF: {target}", err=True)
    facts = {
        "robot": robot.name,
        "joints": {**robot.named(q), **others},
        **pair_facts(scene),
        "now": _facts_at(scene, q),
        "random": random_facts(scene, samples, seed),
    }
    output.print_json(facts) if as_json else _print_facts(facts)


def _whole_robot(chosen: ChosenRobot) -> RobotModel:
    """Return the robot given on the command line; if --tip is omitted, with all its tip links."""
    from dls_ik.model.ends import moving_tips
    from dls_ik.model.load import find_tree
    from dls_ik.model.robot import RobotModel

    tree = find_tree(chosen.name)
    tips = moving_tips(tree, tree.require(chosen.base or tree.root, "base link"))
    several = tips if chosen.tip is None and len(tips) > 1 else chosen.tip
    return RobotModel.from_tree(tree, chosen.base, several)


# Facts


def _srdf_text(scene: PlanningScene) -> str:
    """Return an SRDF whose pairs of links that may touch are determined anew by sampling.

    If the scene has an SRDF, everything else is copied from it; otherwise a group of joints is
    added for each tip.
    """
    from dls_ik.scene.pairs import default_pairs
    from dls_ik.scene.srdf import JointGroup, Srdf, srdf_text

    robot, srdf = scene.robot, scene.srdf
    if srdf is None:
        names = ["arm"] if len(robot.tips) == 1 else [f"to_{tip}" for tip in robot.tips]
        tips = zip(names, robot.tips, strict=True)
        groups = {name: JointGroup(chains=((robot.base, tip),)) for name, tip in tips}
        return srdf_text(Srdf(robot.name, groups, disabled=scene.pairs))
    return srdf_text(srdf.with_pairs(default_pairs(robot.tree, scene.snapshot.links)))


def pair_facts(scene: PlanningScene) -> dict[str, Any]:
    """Return a JSON document of links with geometry, objects, allowed pairs and checked pairs.

    An allowed pair may touch, and is not checked for collisions.
    """
    now = scene.snapshot
    may_touch = [
        [*pair, scene.pairs.get(pair, SCENE_REASON)]
        for pair, allowed in now.allowed.items()
        if allowed
    ]
    return {
        "links": [*now.links],
        "objects": [*now.objects],
        "attached": {name: each.link for name, each in now.attached.items()},
        "may_touch": sorted(may_touch),
        "checked": [[*pair] for pair in sorted({*now.names})],
    }


def _facts_at(scene: PlanningScene, q: Array) -> dict[str, Any]:
    """Return a JSON document of the contacts and the closest pair at a configuration q (n,)."""
    closest = scene.distance(q)
    contacts = [each._asdict() for each in scene.contacts(q)]
    return {
        "in_collision": bool(contacts),
        "contacts": contacts,
        "closest": None if closest is None else closest._asdict(),
    }


def random_facts(scene: PlanningScene, samples: int, seed: int) -> dict[str, Any] | None:
    """Return collision statistics of random configurations as a JSON document; None for 0 samples.

    The statistics are the share of configurations in collision, and the most frequently colliding
    pairs.
    """
    if samples == 0:
        return None
    q = scene.robot.random(samples, np.random.default_rng(seed))
    colliding = np.flatnonzero(scene.in_collision(q))
    counted: Counter[Pair] = Counter()
    for i in colliding[:MAX_COUNTED]:
        counted.update(scene.snapshot.touching_pairs(q[i]))
    num_counted = min(len(colliding), MAX_COUNTED)
    return {
        "samples": samples,
        "seed": seed,
        "colliding": len(colliding),
        "share": len(colliding) / samples,
        "most_often": [
            {"pair": [*pair], "share_of_colliding": count / num_counted}
            for pair, count in counted.most_common(MAX_SHOWN)
        ],
    }


# Print


def _print_facts(facts: Mapping[str, Any]) -> None:
    """Print all results of the command as text."""
    console = stdout_console()
    rows = [
        ("links", f"{len(facts['links'])} with collision geometry: {listing(facts['links'])}"),
    ]
    if facts["objects"]:
        rows.append(("objects", f"{len(facts['objects'])}: {listing(facts['objects'])}"))
    if facts["attached"]:
        held = (f"{name} on {link}" for name, link in facts["attached"].items())
        rows.append(("attached", listing(held)))
    print_pairs(console, [*rows, ("checked", f"{len(facts['checked'])} pairs")])
    _print_pairs_not_checked(console, facts["may_touch"])
    _print_now(console, facts["now"], facts["joints"])
    if facts["random"] is not None:
        _print_random(console, facts["random"])


def _print_pairs_not_checked(console: Console, rows: list[list[str]]) -> None:
    """Print the pairs of bodies that are not checked for collisions, grouped by reason.

    Args:
        console: Console to print to.
        rows: [name of the first body, name of the second body, reason] for each pair.
    """
    print_heading(console, f"{len(rows)} pairs that are not checked")
    by_reason: dict[str, list[str]] = {}
    for link, other, reason in rows:
        by_reason.setdefault(reason or "without reason", []).append(f"{link} - {other}")
    for reason, pairs in by_reason.items():
        meaning = f", {MEANING[reason]}" if reason in MEANING else ""
        print_pairs(console, [(escape(reason), f"{len(pairs)}{meaning}: {listing(pairs)}")])


def _print_now(console: Console, now: Mapping[str, Any], joints: Mapping[str, float]) -> None:
    """Print the joint positions, and the contacts; without contacts, print the closest pair."""
    closest = now["closest"]
    print_heading(console, "In collision now" if now["in_collision"] else "Now")
    print_pairs(console, [("q", columns(joints.values()))])
    if now["contacts"]:
        rows = [
            (*each["names"], f"{1e3 * each['depth']:.1f}", columns(each["point"]))
            for each in now["contacts"]
        ]
        print_table(console, ("first", "second", "depth [mm]", "point [m]"), rows, left=(0, 1))
    elif closest is not None:
        first, second = closest["names"]
        print_pairs(
            console,
            [
                ("closest", f"{escape(first)} - {escape(second)}"),
                ("distance", f"{1e3 * closest['distance']:.1f} mm"),
                ("between", f"{columns(closest['points'][0])} and {columns(closest['points'][1])}"),
            ],
        )
    else:
        print_note(console, "no pair is checked")


def share_of_random(random: Mapping[str, Any]) -> str:
    """Return a text with the share of random configurations that are in collision."""
    return f"{random['share']:.1%} of {random['samples']} (seed {random['seed']})"


def _print_random(console: Console, random: Mapping[str, Any]) -> None:
    """Print the collision statistics of random configurations."""
    print_heading(console, "Random configurations")
    print_pairs(console, [("colliding", share_of_random(random))])
    rows = [(*each["pair"], f"{each['share_of_colliding']:.0%}") for each in random["most_often"]]
    if rows:
        print_table(console, ("first", "second", "of these"), rows, left=(0, 1))
