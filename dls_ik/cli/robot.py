"""The robot that a command is about: its argument, and the ends of the chain."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dls_ik.model.files import shipped_names

if TYPE_CHECKING:
    from dls_ik.model.robot import RobotModel
    from dls_ik.model.tree import Tree

Command = TypeVar("Command", bound=Callable[..., Any])
ROBOT = (
    f"ROBOT is {', '.join(shipped_names())}, a URDF, xacro or DH file (.yaml), or "
    "package://NAME/PATH; with arguments of xacro in quotes: 'FILE.xacro NAME:=VALUE'."
)


def robot_options(command: Command) -> Command:
    """Give a command the argument ROBOT and the options --base and --tip.

    It is called with `robot`, `base` and `tip` as they were given; :func:`find_robot` takes them.
    """
    command = click.option(
        "--tip", metavar="LINK", help="Where the chain ends; found if there is no choice."
    )(command)
    command = click.option(
        "--base", metavar="LINK", help="Where the chain begins; default: the root."
    )(command)
    return click.argument("robot")(command)


def find_robot(robot: str, base: str | None = None, tip: str | None = None) -> RobotModel:
    """The robot of a name, a file or a package path, see :func:`dls_ik.model.load.find_tree`.

    Raises:
        RobotModelError: there is none, or it has no such base and tip.
    """
    from dls_ik.model.robot import RobotModel

    return RobotModel.from_tree(find_tree(robot), base, tip)


def find_tree(robot: str) -> Tree:
    """All links and joints of it, where no chain is chosen yet."""
    from dls_ik.model.load import find_tree

    return find_tree(robot)
