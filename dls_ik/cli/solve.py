"""``dls-ik solve``: joint values for a pose, by one method or by several side by side."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dls_ik.cli.exits import NO_SOLUTION, say
from dls_ik.cli.joints import joint_vector
from dls_ik.cli.options import (
    ROBOT,
    find_robot,
    robot_options,
    settings_option,
    task_of,
    task_option,
)
from dls_ik.cli.output import STDOUT, check_writable, json_option, print_json, write_whole
from dls_ik.cli.pose import FORMS, doubt_distance, given_pose, pose_options

if TYPE_CHECKING:
    from dls_ik.cli.answers import Answers

EPILOG = f"{ROBOT} Exit codes: 0 every method reached the pose, 1 one or more did not, 2 bad input."


@click.command(epilog=EPILOG, short_help="Find joint values for a pose; compare methods.")
@robot_options
@pose_options
@click.option(
    "--seed",
    metavar="VALUES",
    multiple=True,
    help="Where to begin [rad or m]: all values (0.1,0.2), or some by name (j1=0.1).",
)
@click.option(
    "--method",
    "methods",
    default="auto",
    show_default=True,
    metavar="A,B,...",
    help="One method, or several to compare; docs/methods.md has all.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(0.0, 3600.0),
    metavar="S",
    help="For each [s]. Default: 0.05.",
)
@click.option(
    "--solve-type",
    type=click.Choice(["speed", "distance", "manipulability"]),
    help="Which solution: the first (default), the nearest the seed, the most dextrous.",
)
@task_option
@click.option(
    "--all", "count", type=click.IntRange(1, 10_000), metavar="N", help="List up to N solutions."
)
@click.option("--approximate", is_flag=True, help="The nearest that is found counts as an answer.")
@settings_option
@click.option("--plot", "plot_path", metavar="FILE", help="Draw the comparison: .png, .svg, .pdf.")
@json_option
def solve(
    robot: str,
    base: str | None,
    tip: str | None,
    seed: tuple[str, ...],
    methods: str,
    count: int | None,
    plot_path: str | None,
    as_json: bool,
    **asked: Any,
) -> None:
    """Find joint values that bring the tip to a pose, by one method or by several."""
    is_deg = asked["deg"]
    pose = given_pose(**{form: asked.pop(form) for form in FORMS})
    if pose is None:
        raise click.UsageError("give a pose: --xyz, with --rpy or --quat, or --matrix")
    names = [name.strip() for name in methods.split(",") if name.strip()]
    if not names or (count is not None and len(names) > 1):
        raise click.UsageError("--method names a method, or several; with --all one")
    _check_plot(plot_path)
    from dls_ik.cli.answers import Question, all_solutions, answers_of

    model = find_robot(robot, base, tip)
    doubt_distance("the pose", pose, model)
    start = joint_vector(model, seed, "--seed", is_deg)[0] if seed else None
    task = task_of(asked.pop("task"))
    question = Question(model, pose, start, task, asked.pop("settings"), asked)
    if count is not None:
        _end_all(all_solutions(question, names[0], count), as_json)
    answers = answers_of(question, names)
    if plot_path is not None:
        _draw(plot_path, answers)
    _end(answers, as_json)


def _check_plot(path: str | None) -> None:
    """Refuse before the work begins what could not be drawn after it."""
    if path is None:
        return
    from dls_ik.plot import check_picture

    if path == STDOUT:
        raise click.UsageError("--plot takes a file, not standard output")
    check_picture(Path(path))
    check_writable([path])


def _draw(path: str, answers: Answers) -> None:
    from dls_ik.cli.answers import comparison
    from dls_ik.plot import save_picture

    figure = comparison(answers)
    write_whole(path, lambda part: save_picture(part, figure))
    click.echo(f"picture: {path}", err=True)


def _end(answers: Answers, as_json: bool) -> None:
    from dls_ik.cli.answers import show_answers

    if as_json:
        print_json(answers.facts())
    else:
        show_answers(answers)
    reasons = answers.reasons()
    for reason in reasons:
        say(reason)
    sys.exit(NO_SOLUTION if reasons else 0)


def _end_all(found: Any, as_json: bool) -> None:
    from dls_ik.cli.answers import show_solutions

    if as_json:
        print_json(found.facts())
    else:
        show_solutions(found)
    if not len(found.solutions):
        say("no solution was found")
    sys.exit(0 if len(found.solutions) else NO_SOLUTION)
