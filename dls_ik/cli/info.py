"""``dls-ik info``: what a robot is, how far it reaches, and where it is singular."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from dls_ik.cli.document import json_option, print_json
from dls_ik.cli.robot import ROBOT, find_tree, robot_options

if TYPE_CHECKING:
    from dls_ik.model.robot import RobotModel
    from dls_ik.model.tree import Tree

MOST_TIPS = 4  # that are described without being asked for


@click.command(epilog=ROBOT, short_help="Say what a robot is and how far it reaches.")
@robot_options
@click.option("--quick", is_flag=True, help="Leave out what takes computing: reach, singularities.")
@json_option
def info(robot: str, base: str | None, tip: str | None, quick: bool, as_json: bool) -> None:
    """Say what a robot is: joints and limits, tips, reach, singular configurations."""
    from dls_ik.cli.info_facts import chain_facts, robot_facts

    tree = find_tree(robot)
    chains = _chains(tree, base, tip)
    facts = robot_facts(tree, robot, base or tree.root)
    facts["chains"] = [chain_facts(chain, quick) for chain in chains]
    if as_json:
        print_json(facts)
    else:
        from dls_ik.cli.info_text import show_info

        show_info(facts)


def _chains(tree: Tree, base: str | None, tip: str | None) -> list[RobotModel]:
    """The chain that is asked for, or those to each tip where there are but a few."""
    from dls_ik.model.robot import RobotModel
    from dls_ik.model.tips import moving_tips

    tips = moving_tips(tree, tree.require(base or tree.root, "base link"))
    if tip is None and 1 < len(tips):
        return [RobotModel.from_tree(tree, base, each) for each in tips if len(tips) <= MOST_TIPS]
    return [RobotModel.from_tree(tree, base, tip)]
