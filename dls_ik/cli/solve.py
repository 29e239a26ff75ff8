# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""``dls-ik solve``: joint positions for a pose, by one method, or by several methods to compare."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import numpy as np
from rich.console import Console

from dls_ik.cli import output
from dls_ik.cli.options import (
    ROBOT_HELP,
    TIMEOUT_RANGE,
    ChosenRobot,
    ChosenScene,
    parse_task,
    plugin_option,
    robot_options,
    scene_options,
    seed_option,
    settings_option,
    start_values,
    task_option,
)
from dls_ik.cli.pose import ChosenPose, pose_facts, pose_options, warn_far_poses
from dls_ik.cli.redundancy import ChosenRedundancy, level_facts, redundancy_options, tip_task
from dls_ik.cli.terminal import figure, limit, print_method_table, stdout_console
from dls_ik.core.types import Array
from dls_ik.tables import print_note, print_pairs, print_table
from dls_ik.text import short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dls_ik.model.robot import RobotModel
    from dls_ik.scene.planning_scene import PlanningScene
    from dls_ik.solver.result import IkResult
    from dls_ik.solver.solver import IkSolver
    from dls_ik.solver.stepper import Trace
    from dls_ik.solver.task import Task
    from dls_ik.solver.task_stack import TaskStack

EPILOG = (
    f"{ROBOT_HELP} Exit codes: 0 every method reached the pose, 1 a method did not, 2 bad input."
)
COMPARISON = (
    "method", "status", "error [m]", "error [rad]", "iterations", "restarts", "time [ms]", "change",
)  # fmt: skip
CLEARANCE_HEADING = "clearance [mm]"
SOLVE_TYPE_NAMES = ("speed", "distance", "nearest", "manipulability", "clearance")
SAME_FAMILY = (
    "solutions with the same family number are connected by self-motion within the joint limits"
)
MAX_DRAWN_STEPS = 5000  # maximum number of steps that are drawn
NEAREST_RULES = ("nearest", "distance")
NEAR_MISS = 1e-3, 0.01  # [m], [rad] maximum errors for which looser tolerances are suggested
DEFAULT_TOLERANCE = 1e-6  # [m or rad] default of both tolerances


@click.command(epilog=EPILOG, short_help="Find joint positions for a pose; compare methods.")
@robot_options
@pose_options
@seed_option
@click.option(
    "--method",
    "methods",
    default="auto",
    metavar="A,B,...",
    help="One method, or several to compare; see dls-ik methods.",
)
@click.option(
    "--timeout", type=TIMEOUT_RANGE, metavar="S", help="Timeout of each [s]. Default: 0.05."
)
@click.option(
    "--solve-type",
    type=click.Choice(SOLVE_TYPE_NAMES),
    metavar="RULE",
    help="Solution to return: speed (the first, default), distance or nearest (closest to the "
    "seed), manipulability (most dexterous), clearance (farthest from collisions).",
)
@task_option
@redundancy_options
@scene_options
@click.option(
    "--all", "count", type=click.IntRange(1, 10_000), metavar="N", help="List up to N solutions."
)
@click.option("--approximate", is_flag=True, help="Accept the closest configuration.")
@plugin_option
@settings_option
@output.plot_option("the comparison")
@output.json_option
def solve(
    chosen: ChosenRobot,
    pose: ChosenPose,
    seed: tuple[str, ...],
    methods: str,
    task: str,
    freedom: ChosenRedundancy,
    around: ChosenScene,
    settings: dict[str, Any],
    count: int | None,
    plot: str | None,
    as_json: bool,
    **asked: Any,
) -> None:
    """Find joint positions that bring the tip to a pose, by one or several methods."""
    if pose.T is None:
        raise click.UsageError("give a pose by --xyz (with --rpy or --quat) or --matrix")
    names = [name.strip() for name in methods.split(",") if name.strip()]
    if not names or (count is not None and len(names) > 1):
        raise click.UsageError("--method must be one or more methods; exactly one with --all")
    if asked["solve_type"] == "clearance" and not (around.srdf or around.files):
        raise click.UsageError("--solve-type clearance needs --srdf auto or --scene FILE")
    is_nearest = asked["solve_type"] in NEAREST_RULES or settings.get("solve_type") in NEAREST_RULES
    if freedom.weights and not (freedom.posture or is_nearest or count):
        raise click.UsageError(
            "--weights has no effect without --posture, --solve-type nearest or --all"
        )
    if plot is not None and freedom.stack_option:
        raise click.UsageError(
            "--plot draws single steps of methods, which know no levels of a task stack; leave out "
            f"--plot or {freedom.stack_option}"
        )
    output.check_outputs(plot=plot)
    robot = chosen.read()
    warn_far_poses("the pose", pose.T, robot)
    start = start_values(robot, seed, pose.deg)
    scene = around.read(robot)
    stack = freedom.read_stack(robot, task, pose.deg)
    question = Question(
        robot,
        pose.T,
        start,
        tip_task(stack, parse_task(task)),
        freedom.with_weights(robot, settings),
        asked,
        scene,
        stack,
        freedom.freeze(robot, start, pose.deg),
    )
    if count is None:
        messages = _compare(question, names, plot, as_json)
    else:
        messages = _list_solutions(question, names[0], count, as_json)
    for message in messages:
        output.warn(message)
    sys.exit(output.EXIT_NO_SOLUTION if messages else 0)


class Question(NamedTuple):
    """Pose to reach from the command line, with robot, scene and solver options."""

    robot: RobotModel
    T: Array  # (4, 4) [m]
    seed: Array | None  # (n,) [rad or m]
    task: Task | None
    settings: dict[str, Any]  # solver options
    asked: dict[str, Any]  # the arguments timeout, solve_type and approximate of a solve
    scene: PlanningScene | None = None
    stack: TaskStack | None = None  # its tips have the task `task`
    arm: RobotModel | None = None  # robot with frozen joints, if it differs from `robot`

    @property
    def wanted(self) -> Task | TaskStack | None:
        """The stack, or the task of the tip without a stack."""
        return self.task if self.stack is None else self.stack

    def solver(self, method: str) -> IkSolver:
        """Return a solver that uses a method with the given solver options."""
        from dls_ik.solver.solver import IkSolver

        return IkSolver(self.arm or self.robot, method, scene=self.scene, **self.settings)

    def facts(self) -> dict[str, Any]:
        """Return robot, target pose and seed as a JSON document."""
        return {
            "robot": self.robot.name,
            "base": self.robot.base,
            "tip": self.robot.tip,
            "target": pose_facts(self.T),
            "seed": None if self.seed is None else self.robot.named(self.seed),
        }


# All solutions of one method


def _list_solutions(question: Question, method: str, count: int, as_json: bool) -> list[str]:
    """Print up to `count` solutions of the pose; return an error message if none was found."""
    solver = question.solver(method)
    found = solver.solve_all(question.T, count, question.seed, question.wanted)
    levels = (
        () if question.stack is None else level_facts(question.stack, found.level_errors.T.tolist())
    )
    if as_json:
        joints = [question.robot.named(q) for q in found]
        errors = {
            "families": found.families,
            "position_errors": found.position_error,
            "rotation_errors": found.rotation_error,
            **({"levels": levels} if levels else {}),
        }
        document = {**question.facts(), "method": solver.method, "solutions": joints, **errors}
        output.print_json(document)
    else:
        rows = [
            [
                str(i + 1),
                str(family),
                *(figure(x, 4) for x in q),
                *(short(level["error"][i]) for level in levels),
            ]
            for i, (q, family) in enumerate(zip(found, found.families, strict=True))
        ]
        headings = ["", "family", *question.robot.joint_names]
        headings += [f"level {k}" for k in range(1, len(levels) + 1)]
        print_table(stdout_console(), headings, rows, left=())
        if found:
            print_note(stdout_console(), SAME_FAMILY)
    return [] if len(found) else ["no solution found"]


# Comparison of methods


def _compare(question: Question, methods: list[str], plot: str | None, as_json: bool) -> list[str]:
    """Print the result of each method; return a message for each method that missed the pose."""
    results = solve_by_each(question, methods)
    if plot is not None:
        output.save_plot(plot, draw_comparison(question, results))
    answers = [_answer(question, name, each) for name, each in results.items()]
    if as_json:
        output.print_json({**question.facts(), "answers": answers})
    elif len(answers) > 1:
        _print_comparison(stdout_console(), answers)
    else:
        _print_answer(stdout_console(), question, answers[0])
    return _failures(question, answers)


def solve_by_each(question: Question, methods: Sequence[str]) -> dict[str, IkResult]:
    """Solve the pose once with each method, and return the results by name of the method.

    The kernels of a method are loaded before, so that the times are comparable.
    """
    given = {name: value for name, value in question.asked.items() if value not in (None, False)}
    results = {}
    for solver in map(question.solver, methods):
        solver.solve(question.T, question.seed, timeout=0.0, task=question.wanted)  # loads kernels
        results[solver.method] = solver.solve(
            question.T, question.seed, task=question.wanted, **given
        )
    return results


def _answer(question: Question, method: str, result: IkResult) -> dict[str, Any]:
    """Return the result of one method as a JSON document."""
    q, robot, seed = result.q, question.robot, question.seed
    return {
        "method": method,
        "success": result.success,
        "status": str(result.status),
        "explanation": result.status.explanation,
        "joints": robot.named(q),
        "distance_to_limit": robot.named(np.minimum(q - robot.lower, robot.upper - q)),
        "position_error": result.position_error,
        "rotation_error": result.rotation_error,
        "iterations": result.iterations,
        "restarts": result.restarts,
        "duration": result.duration,
        **_level_facts(question.stack, result),
        "largest_change": None if seed is None else float(np.abs(q - seed).max()),
        **({} if question.scene is None else _clearance_facts(question.scene, result)),
    }


def _level_facts(stack: TaskStack | None, result: IkResult) -> dict[str, Any]:
    """Return a dict with the tasks and errors of the levels of a stack; empty without a stack."""
    return {} if stack is None else {"levels": level_facts(stack, result.level_errors)}


def _clearance_facts(scene: PlanningScene, result: IkResult) -> dict[str, Any]:
    """Return a dict with the closest pair at a result, and the pair that most often collided."""
    closest = scene.distance(result.q) if np.isfinite(result.q).all() else None
    return {
        "clearance": np.nan if closest is None else closest.distance,
        "closest": None if closest is None else [*closest.names],
        "pair_in_the_way": result.pair_in_the_way,
    }


def _failures(question: Question, answers: list[dict[str, Any]]) -> list[str]:
    """Return a message for each method that missed the pose.

    Args:
        question: Pose to reach.
        answers: Results of the methods, see :func:`_answer`.
    """
    from dls_ik.solver.solver import IkSolver
    from dls_ik.solver.task import too_few_joints

    few = too_few_joints(question.robot, question.task)
    hint = ""
    if few and not all(answer["success"] for answer in answers):
        solver = IkSolver(question.arm or question.robot, scene=question.scene)
        reached = solver.reached_tasks(question.T)
        names = " or ".join(
            f"--task {name.partition('_')[0].partition('(')[0]}" for name in reached
        )
        hint = f"; {few}: {names or 'neither position nor pointing'} reaches this target"
    return [
        f"{answer['method'] + ': ' if len(answers) > 1 else ''}{answer['status']}: "
        f"{answer['explanation']}; {_miss_reason(answer)}{hint}"
        for answer in answers
        if not answer["success"]
    ]


def _miss_reason(answer: dict[str, Any]) -> str:
    """Return a text that explains a missed pose.

    The text names joints beyond their limits, the most frequent collision, or the remaining error.
    """
    margins = answer["distance_to_limit"].items()
    beyond = [f"{name} by {-margin:.3g}" for name, margin in margins if margin < 0.0]
    if answer["status"] == "OUTSIDE_LIMITS" and beyond:
        return f"beyond limits: {', '.join(beyond)}"
    if answer.get("pair_in_the_way"):
        return f"most frequent collision: {' - '.join(answer['pair_in_the_way'])}"
    position, rotation = answer["position_error"], answer["rotation_error"]
    off = f"{position:.3g} m and {rotation:.3g} rad"
    return f"the closest configuration is off by {off}{_tolerance_hint(answer)}"


def _tolerance_hint(answer: dict[str, Any]) -> str:
    """Return a hint with tolerances that would accept a result, or "" if its error is too large."""
    errors = answer["position_error"], answer["rotation_error"]
    if not (errors[0] <= NEAR_MISS[0] and errors[1] <= NEAR_MISS[1]):
        return ""
    options = [
        f"--set {name}={1.5 * error:.1g}"
        for name, error in zip(("position_tolerance", "rotation_tolerance"), errors, strict=True)
        if error > DEFAULT_TOLERANCE
    ]
    return f"; {' '.join(options)} would accept it" if options else ""


def _print_answer(console: Console, question: Question, answer: dict[str, Any]) -> None:
    """Print joint positions, status, errors and time of the result of one method."""
    _print_joints(console, question, answer)
    console.print()
    position, rotation = short(answer["position_error"]), short(answer["rotation_error"])
    work = f"{answer['iterations']} iterations, {answer['restarts']} restarts"
    closest = answer.get("closest")
    near = f"{figure(1e3 * answer['clearance'], 1)} mm: {' - '.join(closest)}" if closest else ""
    pairs = [
        (answer["method"], f"{answer['status']}: {answer['explanation']}"),
        ("error", f"{position} m, {rotation} rad"),
        *((f"level {k}", _level_text(each)) for k, each in enumerate(answer.get("levels", ()), 1)),
        *([("clearance", near)] if near else []),
        ("work", f"{work}, {short(1e3 * answer['duration'], 3)} ms"),
    ]
    print_pairs(console, pairs)


def _level_text(level: dict[str, Any]) -> str:
    """Return the error and the tasks of a level as text; objectives have no error."""
    error = level["error"]
    return level["tasks"] if np.isnan(error) else f"{short(error)}: {level['tasks']}"


def _print_joints(console: Console, question: Question, answer: dict[str, Any]) -> None:
    """Print a table of the joint positions of a result with limits and changes from the seed."""
    robot, q = question.robot, answer["joints"]
    headings = ["joint", "value", "lower", "upper", "to limit"]
    limits = zip(robot.lower, robot.upper, answer["distance_to_limit"].values(), strict=True)
    rows = [
        [name, figure(x, 6), *map(limit, each)]
        for (name, x), each in zip(q.items(), limits, strict=True)
    ]
    if question.seed is not None:
        headings.append("change")
        for row, x, start in zip(rows, q.values(), question.seed, strict=True):
            row.append(f"{round(x - start, 4) + 0.0:+.4f}")
    print_table(console, headings, rows)


def _print_comparison(console: Console, answers: list[dict[str, Any]]) -> None:
    """Print the results of several methods as a table with one row per method."""
    has_seed, has_scene = answers[0]["largest_change"] is not None, "clearance" in answers[0]
    rows = [
        [
            answer["method"],
            answer["status"],
            f"{answer['position_error']:.1e}",
            f"{answer['rotation_error']:.1e}",
            str(answer["iterations"]),
            str(answer["restarts"]),
            short(1e3 * answer["duration"], 3),
            *(short(level["error"]) for level in answer.get("levels", ())),
            *([figure(answer["largest_change"])] if has_seed else []),
            *([figure(1e3 * answer["clearance"], 1)] if has_scene else []),
        ]
        for answer in answers
    ]
    levels = (f"level {k}" for k, _ in enumerate(answers[0].get("levels", ()), 1))
    headings = (*COMPARISON[:-1], *levels, *COMPARISON[-1:] * has_seed)
    headings = (*headings, CLEARANCE_HEADING) if has_scene else headings
    print_method_table(console, headings, rows, left=(0, 1))
    if has_seed:
        print_note(console, "change: largest joint change from the seed [rad or m]")


# Picture


def draw_comparison(question: Question, results: dict[str, IkResult]) -> Figure:
    """Draw the result of each method, and the error and step size of each iteration.

    KDL methods expose no iterations; only their results are drawn.
    """
    from dls_ik.plot import compare_methods
    from dls_ik.solver.method import KDL_METHODS

    traces = {name: _trace(question, name) for name in results if name not in KDL_METHODS}
    lengths = {
        name: _drawn_part(question, name, results[name], each) for name, each in traces.items()
    }
    title = "One pose by several methods" if len(results) > 1 else "One pose"
    return compare_methods(
        traces,
        results,
        f"{title}: {question.robot.name}",
        {name: words for name, words in lengths.items() if words},
    )


def _drawn_part(question: Question, method: str, result: IkResult, trace: Trace) -> str:
    """Return a text such as "attempt 1 of 3" for the iterations that a picture shows.

    The text is empty if the picture shows all iterations of the method.

    Args:
        question: Pose to reach, robot and options.
        method: Name of the method.
        result: Result of the method for the pose.
        trace: Iterations in the picture.
    """
    # With starts="table" and no seed, the solver starts from a table; the trace does not.
    if question.seed is None and question.solver(method).options.starts == "table":
        return "an attempt from mid-range"
    if result.restarts:
        return f"attempt 1 of {result.restarts + 1}"
    steps = len(trace.q) - 1
    return f"the first {steps} of {result.iterations}" if steps < result.iterations else ""


def _trace(question: Question, method: str) -> Trace:
    """Return the iterations of a method's first attempt, up to the last iteration of the solver.

    The attempt starts from the seed, or from mid-range if no seed is given.
    """
    from dls_ik.solver.stepper import Stepper

    question = question._replace(settings={**question.settings, "max_restarts": 0})
    stepper = Stepper(
        question.robot, method, question.seed, task=question.task, **question.settings
    )
    first = question.solver(method).solve(question.T, stepper.q, task=question.task)
    return stepper.run(question.T, max(1, min(first.iterations, MAX_DRAWN_STEPS)))
