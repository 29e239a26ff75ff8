"""Options of commands that solve: method, task, solver options by name."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from dls_ik.solver.task import Task

Command = TypeVar("Command", bound=Callable[..., Any])
TASKS = ("pose", "position", "pointing", "pointing-x", "pointing-y")
SWITCHES = {"true": True, "false": False, "none": None}


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
