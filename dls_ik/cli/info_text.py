"""What ``dls-ik info`` prints for people."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.text import Text

from dls_ik.cli.tables import print_heading, print_note, print_pairs, print_table, stdout_console
from dls_ik.model.names import listing

MOST_FAMILIES = 10


def show_info(facts: dict[str, Any]) -> None:
    """Print the facts about a robot."""
    console = stdout_console()
    moving = [joint for joint in facts["joints"] if joint["mimic"] is None]
    followers = len(facts["joints"]) - len(moving)
    also = f", {followers} that follow others" if followers else ""
    pairs = [
        ("joints", f"{len(moving)} that move{also}, {facts['fixed_joints']} fixed"),
        ("links", str(facts["links"])),
        ("base", facts["base"]),
        ("tips" if len(facts["tips"]) > 1 else "tip", listing(facts["tips"])),
    ]
    console.print(Text(facts["name"], style="bold"))
    print_pairs(console, pairs)
    print_heading(console, "Joints [rad, rad/s; prismatic: m, m/s]")
    _show_joints(console, facts["joints"])
    if not facts["chains"]:
        console.print("\nReach and singularities are of one tip: choose it by --tip.")
    for chain in facts["chains"]:
        _show_chain(console, chain, many=len(facts["tips"]) > 1)


def _show_joints(console: Console, joints: Sequence[dict[str, Any]]) -> None:
    rows = [
        [
            joint["name"],
            joint["kind"],
            limit(joint["lower"]),
            limit(joint["upper"]),
            limit(joint["velocity"]),
        ]
        for joint in joints
    ]
    print_table(console, ["joint", "type", "lower", "upper", "velocity"], rows, left=(0, 1))
    for joint in joints:
        if joint["mimic"] is not None:
            master, scale, offset = joint["mimic"].values()
            also = f" {offset:+g}" if offset else ""
            console.print(f"{joint['name']} follows: {scale:g} x {master}{also}", soft_wrap=True)


def _show_chain(console: Console, chain: dict[str, Any], many: bool) -> None:
    names = chain["joints"]
    where = f" of {chain['tip']}" if many else ""
    if many:
        print_heading(console, f"{chain['base']} to {chain['tip']}")
        print_pairs(console, [("joints", listing(names))])
    if "rank" not in chain:
        return
    print_heading(console, f"Structure{where}")
    print_pairs(console, _structure(chain))
    print_heading(console, f"Singular configurations{where}")
    _show_singularities(console, chain)


def _structure(chain: dict[str, Any]) -> list[tuple[str, str]]:
    n, rank, redundancy = len(chain["joints"]), chain["rank"], chain["redundancy"]
    moves = f"{n} joint{' moves' if n == 1 else 's move'} the tip in {rank} of 6 directions"
    spare = f"{redundancy} to spare: redundant" if redundancy else "none to spare: not redundant"
    reach, figures = chain["reach"], chain["conditioning"]
    seen = f"random ones: {reach['seen'][0]:.3f} to {reach['seen'][1]:.3f} m"
    least, condition = figures["least_singular_value"], figures["condition_number"]
    axes = [("axes", f"{', '.join(run)} meet in a point") for run in chain["axes"]["meeting"]]
    axes += [("axes", f"{', '.join(run)} are parallel") for run in chain["axes"]["parallel"]]
    return [
        ("rank", f"{moves}, {spare}"),
        *axes,
        ("reach", f"never beyond {reach['at_least']:.3f} to {reach['at_most']:.3f} m; {seen}"),
        ("", f"from {vector(reach['from'])} m in {chain['base']}, on the first axis"),
        (
            "least singular value",
            f"median {least['median']:.3g}, 5 % below {least['p5']:.2g} "
            f"(1 rad as {figures['metres_per_radian']:g} m)",
        ),
        ("condition number", f"median {condition['median']:.3g}, 5 % above {condition['p95']:.3g}"),
    ]


def _show_singularities(console: Console, chain: dict[str, Any]) -> None:
    found = chain["singularities"]
    families = found["families"]
    if not families:
        worst = found["most_nearly_singular"]
        print_note(
            console,
            f"none within the limits, from {found['starts']} random starts: the least singular "
            f"value stays above {100.0 * worst['share_of_largest']:.3g} % of the largest, where "
            f"{joint_values(worst['q'])}; hardest there: {_loss(worst)}",
            style="",
        )
        return
    groups: dict[Any, list[dict[str, Any]]] = {}
    for family in families:
        groups.setdefault((*family["joints"], family["tied"]), []).append(family)
    for group in list(groups.values())[:MOST_FAMILIES]:
        console.print(Text(_condition(group)), soft_wrap=True)
        rank = f"rank {group[0]['rank']}"
        print_pairs(console, [(rank, f"lost: {_loss(group[0])}")], indent=2)
    if len(groups) > MOST_FAMILIES:
        console.print(f"and {len(groups) - MOST_FAMILIES} more: --json has all of them")
    note = (
        f"Found from {found['starts']} random starts. Whatever the joints do that are not named; "
        f"what is lost is of one such configuration (--json has it), in {chain['base']}."
    )
    print_note(console, note)


def _condition(group: list[dict[str, Any]]) -> str:
    """Where the joints of families that differ in values have to stand."""
    names = list(group[0]["joints"])
    if not names:
        return "everywhere"
    if group[0]["tied"]:
        return f"{' and '.join(names)} together, as {joint_values(group[0]['joints'])}"
    values = [{figure(family["joints"][name]): None for family in group} for name in names]
    if math.prod(map(len, values)) == len(group):
        return ", ".join(f"{n} = {' or '.join(v)}" for n, v in zip(names, values, strict=True))
    return "; or ".join(joint_values(family["joints"]) for family in group)


def _loss(family: dict[str, Any]) -> str:
    if not np.any(family["force"]):
        return f"turning about {vector(family['moment'], 2)}"
    line = f"motion along {vector(family['force'], 2)} through {vector(family['point'], 2)} m"
    return line + (" with a turn about it" if np.abs(family["moment"]).max() > 1e-4 else "")


def joint_values(q: dict[str, float]) -> str:
    """Values by name in one line."""
    return ", ".join(f"{name} = {figure(value)}" for name, value in q.items())


def figure(value: float, digits: int = 3) -> str:
    """A number with so many digits, never -0."""
    return f"{round(value, digits) + 0.0:.{digits}f}"


def vector(values: Any, digits: int = 3) -> str:
    """Three numbers in parentheses, none of them -0."""
    return f"({', '.join(figure(float(value), digits) for value in values)})"


def limit(value: float) -> str:
    """A limit as figures of one width, or that there is none."""
    return f"{value:.4f}" if math.isfinite(value) else "none"
