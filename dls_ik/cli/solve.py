"""``dls-ik solve``: joint values for a pose, by one method or by several side by side."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import numpy as np
from rich.console import Console

from dls_ik.cli.options import (
    ROBOT,
    TIMEOUT,
    find_robot,
    joint_vector,
    parse_task,
    robot_options,
    settings_option,
    task_option,
)
from dls_ik.cli.output import (
    NO_SOLUTION,
    check_plot,
    check_writable,
    json_option,
    plot_option,
    print_json,
    save_plot,
    warn,
)
from dls_ik.cli.pose import POSE_OPTIONS, given_pose, pose_facts, pose_options, warn_far_poses
from dls_ik.cli.terminal import figure, limit, print_note, print_pairs, print_table, stdout_console
from dls_ik.core.types import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dls_ik.model.robot import RobotModel
    from dls_ik.solver.result import IkResult
    from dls_ik.solver.solver import IkSolver
    from dls_ik.solver.stepper import Trace
    from dls_ik.solver.task import Task

EPILOG = f"{ROBOT} Exit codes: 0 every method reached the pose, 1 one or more did not, 2 bad input."
MAX_STEPS = 5000  # that are drawn


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
    metavar="A,B,...",
    help="One method, or several to compare; docs/methods.md has all.",
)
@click.option("--timeout", type=TIMEOUT, metavar="S", help="For each [s]. Default: 0.05.")
@click.option(
    "--solve-type",
    type=click.Choice(["speed", "distance", "manipulability"]),
    help="Choice: the first (default), the nearest to the seed, the most dextrous.",
)
@task_option
@click.option(
    "--all", "count", type=click.IntRange(1, 10_000), metavar="N", help="List up to N solutions."
)
@click.option("--approximate", is_flag=True, help="Accept the nearest that is found.")
@settings_option
@plot_option("the comparison")
@json_option
def solve(
    robot: str,
    base: str | None,
    tip: str | None,
    seed: tuple[str, ...],
    methods: str,
    task: str,
    settings: dict[str, Any],
    count: int | None,
    plot_path: str | None,
    as_json: bool,
    **asked: Any,
) -> None:
    """Find joint values that bring the tip to a pose, by one method or by several."""
    is_deg = asked["deg"]
    pose = given_pose(**{name: asked.pop(name) for name in POSE_OPTIONS})
    if pose is None:
        raise click.UsageError("give a pose: --xyz, with --rpy or --quat, or --matrix")
    names = [name.strip() for name in methods.split(",") if name.strip()]
    if not names or (count is not None and len(names) > 1):
        raise click.UsageError("--method names a method, or several; with --all one")
    check_plot(plot_path)
    check_writable(plot_path)
    model = find_robot(robot, base, tip)
    warn_far_poses("the pose", pose, model)
    start = joint_vector(model, seed, "--seed", is_deg)[0] if seed else None
    question = Question(model, pose, start, parse_task(task), settings, asked)
    if count is None:
        messages = _compare(question, names, plot_path, as_json)
    else:
        messages = _list_solutions(question, names[0], count, as_json)
    for message in messages:
        warn(message)
    sys.exit(NO_SOLUTION if messages else 0)


class Question(NamedTuple):
    """A pose to reach, and the options of its solver."""

    robot: RobotModel
    T: Array  # (4, 4) [m]
    seed: Array | None  # (n,) [rad or m]
    task: Task | None
    settings: dict[str, Any]  # options of the solver
    asked: dict[str, Any]  # timeout, solve_type, approximate

    def solver(self, method: str) -> IkSolver:
        """Return a solver by a method."""
        from dls_ik.solver.solver import IkSolver

        return IkSolver(self.robot, method, **self.settings)

    def facts(self) -> dict[str, Any]:
        """Return the question as a document."""
        return {
            "robot": self.robot.name,
            "base": self.robot.base,
            "tip": self.robot.tip,
            "target": pose_facts(self.T),
            "seed": None if self.seed is None else self.named(self.seed),
        }

    def named(self, q: Array) -> dict[str, float]:
        """Return values (n,) by the names of joints."""
        return dict(zip(self.robot.joint_names, q.tolist(), strict=True))

    def limit_margin(self, q: Array) -> Array:
        """Return the distance (n,) to the nearest limit [rad or m], below 0 beyond it."""
        return np.minimum(q - self.robot.lower, self.robot.upper - q)

    def largest_change(self, q: Array) -> float | None:
        """Return the largest change of a joint from the seed [rad or m]; None without a seed."""
        return None if self.seed is None else float(np.abs(q - self.seed).max())


# All solutions by one method


def _list_solutions(question: Question, method: str, count: int, as_json: bool) -> list[str]:
    solver = question.solver(method)
    found = solver.solve_all(question.T, count, question.seed, question.task)
    if as_json:
        joints = [question.named(q) for q in found]
        print_json({**question.facts(), "method": solver.method, "solutions": joints})
    else:
        rows = [[str(i), *(figure(x, 4) for x in q)] for i, q in enumerate(found, start=1)]
        print_table(stdout_console(), ["", *question.robot.joint_names], rows, left=())
    return [] if len(found) else ["no solution was found"]


# Methods side by side


def _compare(
    question: Question, methods: list[str], plot_path: str | None, as_json: bool
) -> list[str]:
    results = solve_by_each(question, methods)
    if plot_path is not None:
        save_plot(plot_path, draw_comparison(question, results))
    if as_json:
        answers = [_answer_facts(question, name, each) for name, each in results.items()]
        print_json({**question.facts(), "answers": answers})
    else:
        _print_results(stdout_console(), question, results)
    return _failures(question, results)


def solve_by_each(question: Question, methods: Sequence[str]) -> dict[str, IkResult]:
    """Solve once by each method, with its kernels loaded, so that times compare."""
    return {
        solver.method: _solve_once(solver, question) for solver in map(question.solver, methods)
    }


def _solve_once(solver: IkSolver, question: Question) -> IkResult:
    given = {name: value for name, value in question.asked.items() if value not in (None, False)}
    solver.solve(question.T, question.seed, timeout=0.0, task=question.task)  # loads kernels
    return solver.solve(question.T, question.seed, task=question.task, **given)


def _answer_facts(question: Question, method: str, result: IkResult) -> dict[str, Any]:
    return {
        "method": method,
        "success": result.success,
        "status": str(result.status),
        "explanation": result.status.explanation,
        "joints": question.named(result.q),
        "distance_to_limit": question.named(question.limit_margin(result.q)),
        "position_error": result.position_error,
        "rotation_error": result.rotation_error,
        "iterations": result.iterations,
        "restarts": result.restarts,
        "duration": result.duration,
        "largest_change": question.largest_change(result.q),
    }


def _failures(question: Question, results: dict[str, IkResult]) -> list[str]:
    """Return a line for each method that did not reach the pose."""
    from dls_ik.solver.task import too_few_joints

    few = too_few_joints(question.robot, question.task)
    hint = f"; {few}: --task position or --task pointing asks for less" if few else ""
    return [
        f"{name + ': ' if len(results) > 1 else ''}{result.status}: {result.status.explanation}; "
        f"{_nearest(question, result)}{hint}"
        for name, result in results.items()
        if not result.success
    ]


def _nearest(question: Question, result: IkResult) -> str:
    """Return the errors of the best that was found, or its joints beyond their limits."""
    from dls_ik.solver.result import Status

    margins = question.named(question.limit_margin(result.q))
    beyond = [f"{name} by {-margin:.3g}" for name, margin in margins.items() if margin < 0.0]
    if result.status == Status.OUTSIDE_LIMITS and beyond:
        return f"beyond them: {', '.join(beyond)}"
    return f"nearest found: {result.position_error:.3g} m and {result.rotation_error:.3g} rad off"


def _print_results(console: Console, question: Question, results: dict[str, IkResult]) -> None:
    if len(results) > 1:
        _print_comparison(console, question, results)
        return
    from dls_ik.plot.canvas import short

    ((method, result),) = results.items()
    _print_joints(console, question, result.q)
    console.print()
    errors = f"{short(result.position_error)} m, {short(result.rotation_error)} rad"
    work = f"{result.iterations} iterations, {result.restarts} restarts"
    print_pairs(
        console,
        [
            (method, f"{result.status}: {result.status.explanation}"),
            ("error", errors),
            ("work", f"{work}, {short(1e3 * result.duration, 3)} ms"),
        ],
    )


def _print_joints(console: Console, question: Question, q: Array) -> None:
    robot = question.robot
    headings = ["joint", "value", "lower", "upper", "to limit"]
    values = zip(
        robot.joint_names, q, robot.lower, robot.upper, question.limit_margin(q), strict=True
    )
    rows = [[name, figure(x, 6), *map(limit, limits)] for name, x, *limits in values]
    if question.seed is not None:
        headings.append("change")
        for row, change in zip(rows, q - question.seed, strict=True):
            row.append(f"{round(change, 4) + 0.0:+.4f}")
    print_table(console, headings, rows)


def _print_comparison(console: Console, question: Question, results: dict[str, IkResult]) -> None:
    from dls_ik.plot.canvas import short

    headings = [
        "method",
        "status",
        "error [m]",
        "error [rad]",
        "iterations",
        "restarts",
        "time [ms]",
    ]
    rows = [
        [
            method,
            str(result.status),
            f"{result.position_error:.1e}",
            f"{result.rotation_error:.1e}",
            str(result.iterations),
            str(result.restarts),
            short(1e3 * result.duration, 3),
        ]
        for method, result in results.items()
    ]
    if question.seed is not None:
        headings.append("change")
        for row, result in zip(rows, results.values(), strict=True):
            row.append(figure(question.largest_change(result.q) or 0.0))
    print_table(console, headings, rows, left=(0, 1))
    if question.seed is not None:
        print_note(console, "change: largest of a joint from the seed [rad or m]")


# Picture


def draw_comparison(question: Question, results: dict[str, IkResult]) -> Figure:
    """Draw all results, and error and step of each iteration of methods that step."""
    from dls_ik.plot import compare_methods
    from dls_ik.solver.method import KDL

    traces = {name: _trace(question, name) for name in results if name not in KDL}
    lengths = {name: _attempt(question, name, results[name], each) for name, each in traces.items()}
    title = "One pose by several methods" if len(results) > 1 else "One pose"
    return compare_methods(
        traces,
        results,
        f"{title}: {question.robot.name}",
        {name: words for name, words in lengths.items() if words},
    )


def _attempt(question: Question, method: str, result: IkResult, trace: Trace) -> str:
    """Return which part of the method's work is drawn, where it is not all."""
    # Without a seed the solver may begin near the pose, which is not drawn.
    if question.seed is None and question.solver(method).options.starts == "table":
        return "an attempt from mid-range"
    if result.restarts:
        return f"attempt 1 of {result.restarts + 1}"
    steps = len(trace.q) - 1
    return f"the first {steps} of {result.iterations}" if steps < result.iterations else ""


def _trace(question: Question, method: str) -> Trace:
    """Return the first attempt from the seed or from mid-range, to where the solver ends it."""
    from dls_ik.solver.stepper import Stepper

    question = question._replace(settings={**question.settings, "max_restarts": 0})
    stepper = Stepper(
        question.robot, method, question.seed, task=question.task, **question.settings
    )
    first = question.solver(method).solve(question.T, stepper.q, task=question.task)
    return stepper.run(question.T, max(1, min(first.iterations, MAX_STEPS)))
