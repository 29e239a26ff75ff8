"""Options that commands share: the robot, the task, settings of the solver, lists of numbers."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import click
import numpy as np

from dls_ik.model.files import shipped_names

if TYPE_CHECKING:
    from dls_ik.model.robot import RobotModel
    from dls_ik.model.tree import Tree
    from dls_ik.solver.task import Task

Command = TypeVar("Command", bound=Callable[..., Any])
Vector = tuple[float, ...] | None  # what an option of numbers gives
ROBOT = (
    f"ROBOT is {', '.join(shipped_names())}, a URDF, xacro or DH file (.yaml), or "
    "package://NAME/PATH; with arguments of xacro in quotes: 'FILE.xacro NAME:=VALUE'."
)
TASKS = ("pose", "position", "pointing", "pointing-x", "pointing-y")
SWITCHES = {"true": True, "false": False, "none": None}


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


def task_option(command: Command) -> Command:
    """Give a command --task, one of TASKS; :func:`task_of` takes it."""
    return click.option(
        "--task",
        type=click.Choice(TASKS),
        default=TASKS[0],
        show_default=True,
        help="What counts: all; the position; the position and where the tool's z, x, y points.",
    )(command)


def settings_option(command: Command) -> Command:
    """Give a command --set NAME=VALUE, which becomes a dict `settings` of solver options."""
    return click.option(
        "--set",
        "settings",
        metavar="NAME=VALUE",
        multiple=True,
        callback=_settings,
        help="An option of the solver, such as position_tolerance=1e-4; more than once.",
    )(command)


def task_of(name: str) -> Task | None:
    """The task of one of TASKS, None for the full pose."""
    from dls_ik.solver.task import Task

    if name == "pose":
        return None
    return Task.position_only() if name == "position" else Task.pointing(name[8:].strip("-") or "z")


def _settings(context: Any, param: Any, given: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for words in given:
        name, equals, value = (part.strip() for part in words.partition("="))
        if not (name and equals and value):
            raise click.BadParameter(f"an option is given as NAME=VALUE, not {words!r}")
        found["lambda_" if name == "lambda" else name] = _value(value)
    return found


def _value(word: str) -> Any:
    """A switch, a number, several with commas, or the word itself."""
    if word.lower() in SWITCHES:
        return SWITCHES[word.lower()]
    if "," in word:
        return tuple(_value(each.strip()) for each in word.split(","))
    for kind in (int, float):
        with suppress(ValueError):
            return kind(word)
    return word


def numbers(*counts: int) -> Callable[[Any, Any, str | None], Vector]:
    """A callback of click that reads finite numbers, so many if that is said."""

    def read(context: Any, param: Any, given: str | None) -> Vector:
        return None if given is None else parsed_numbers(given, *counts)

    return read


def parsed_numbers(given: str, *counts: int) -> tuple[float, ...]:
    """Finite numbers with commas or spaces between them, so many if that is said.

    Raises:
        click.BadParameter: what is none, or too many or few.
    """
    words = given.translate(str.maketrans(",;[]", "    ")).split()
    found = tuple(as_number(word) for word in words)
    for word, number in zip(words, found, strict=True):
        if not np.isfinite(number):
            raise click.BadParameter(f"{word!r} is no finite number")
    if counts and len(found) not in counts:
        wanted = " or ".join(map(str, counts))
        raise click.BadParameter(f"{wanted} numbers are wanted, not {len(found)}")
    return found


def as_number(word: str) -> float:
    """The number that a word is, nan where it is none."""
    try:
        return float(word)
    except ValueError:
        return np.nan
