"""Answers of several methods to one question, and all that one finds: as data, text, picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from rich.console import Console

from dls_ik.cli.pose import pose_facts
from dls_ik.cli.terminal import (
    figure,
    limit,
    print_note,
    print_pairs,
    print_table,
    stdout_console,
)
from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.plot import compare_methods
from dls_ik.plot.canvas import short
from dls_ik.solver.method import KDL
from dls_ik.solver.result import IkResult, Status
from dls_ik.solver.solver import IkSolver
from dls_ik.solver.stepper import Stepper, Trace
from dls_ik.solver.task import Task, too_few_joints

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_STEPS = 5000


class Question(NamedTuple):
    """A pose to reach, and how."""

    robot: RobotModel
    T: Array  # (4, 4) [m]
    seed: Array | None  # (n,) [rad or m]
    task: Task | None
    settings: dict[str, Any]  # options of the solver
    asked: dict[str, Any]  # timeout, solve_type, approximate

    def about(self) -> dict[str, Any]:
        """The question as a document."""
        names = self.robot.joint_names
        seed = None if self.seed is None else dict(zip(names, self.seed.tolist(), strict=True))
        return {
            "robot": self.robot.name,
            "base": self.robot.base,
            "tip": self.robot.tip,
            "target": pose_facts(self.T),
            "seed": seed,
        }


class Answers(NamedTuple):
    """What each method answered."""

    question: Question
    results: dict[str, IkResult]  # by method

    def facts(self) -> dict[str, Any]:
        """All of it as a document."""
        answers = [_answer(self.question, name, each) for name, each in self.results.items()]
        return {**self.question.about(), "answers": answers}

    def reasons(self) -> list[str]:
        """Why methods that did not reach the pose did not, a line each."""
        many = len(self.results) > 1
        return [
            f"{name + ': ' if many else ''}{result.status}: {result.status.explanation}; "
            f"{_nearest(self.question.robot, result)}{_ask_less(self.question)}"
            for name, result in self.results.items()
            if not result.success
        ]


def _ask_less(question: Question) -> str:
    """What a robot with too few joints for the task may be asked for instead."""
    few = too_few_joints(question.robot, question.task)
    return f"; {few}: --task position or --task pointing asks for less" if few else ""


def _nearest(robot: RobotModel, result: IkResult) -> str:
    """How far off the best that was found is, or which joints are beyond their limits there."""
    rooms = zip(robot.joint_names, room(robot, result.q), strict=True)
    beyond = [f"{name} by {-left:.3g}" for name, left in rooms if left < 0.0]
    if result.status == Status.OUTSIDE_LIMITS and beyond:
        return f"beyond them: {', '.join(beyond)}"
    return f"nearest found: {result.position_error:.3g} m and {result.rotation_error:.3g} rad off"


class Solutions(NamedTuple):
    """Distinct solutions of one question, the nearest to the seed first."""

    question: Question
    method: str
    solutions: Array  # (s, n) [rad or m]

    def facts(self) -> dict[str, Any]:
        """All of it as a document."""
        names = self.question.robot.joint_names
        joints = [dict(zip(names, q.tolist(), strict=True)) for q in self.solutions]
        return {**self.question.about(), "method": self.method, "solutions": joints}


def answers_of(question: Question, methods: Sequence[str]) -> Answers:
    """Ask each method once, kernels loaded before, so that times compare."""
    solvers = [IkSolver(question.robot, name, **question.settings) for name in methods]
    return Answers(question, {each.method: _asked(each, question) for each in solvers})


def all_solutions(question: Question, method: str, count: int) -> Solutions:
    """Ask one method for so many solutions at most."""
    solver = IkSolver(question.robot, method, **question.settings)
    found = solver.solve_all(question.T, count, question.seed, question.task)
    return Solutions(question, solver.method, found)


def _asked(solver: IkSolver, question: Question) -> IkResult:
    given = {name: value for name, value in question.asked.items() if value not in (None, False)}
    solver.solve(question.T, question.seed, timeout=0.0, task=question.task)  # loads kernels
    return solver.solve(question.T, question.seed, task=question.task, **given)


def _answer(question: Question, method: str, result: IkResult) -> dict[str, Any]:
    robot = question.robot
    return {
        "method": method,
        "success": result.success,
        "status": str(result.status),
        "explanation": Status(result.status).explanation,
        "joints": dict(zip(robot.joint_names, result.q.tolist(), strict=True)),
        "distance_to_limit": dict(zip(robot.joint_names, room(robot, result.q), strict=True)),
        "position_error": result.position_error,
        "rotation_error": result.rotation_error,
        "iterations": result.iterations,
        "restarts": result.restarts,
        "duration": result.duration,
        "largest_change": largest_change(question, result.q),
    }


def room(robot: RobotModel, q: Array) -> Any:
    """(n,) how far joints are from their nearest limits [rad or m], below 0 beyond them."""
    return np.minimum(q - robot.lower, robot.upper - q).tolist()


def largest_change(question: Question, q: Array) -> float | None:
    """Of a joint from the seed [rad or m]; None without a seed."""
    return None if question.seed is None else float(np.abs(q - question.seed).max())


def show_answers(answers: Answers) -> None:
    """Print one method's joint values, or how several methods compare."""
    console = stdout_console()
    if len(answers.results) == 1:
        ((method, result),) = answers.results.items()
        _show_joints(console, answers.question, result.q)
        console.print()
        print_pairs(console, _result_pairs(method, result))
    else:
        _compare(console, answers)


def show_solutions(found: Solutions) -> None:
    """Print one solution a row, or a block each where there is no room."""
    console, names = stdout_console(), found.question.robot.joint_names
    rows = [[str(i + 1), *(figure(value, 4) for value in q)] for i, q in enumerate(found.solutions)]
    print_table(console, ["", *names], rows, left=())


def _show_joints(console: Console, question: Question, q: Array) -> None:
    robot = question.robot
    headings = ["joint", "value", "lower", "upper", "to limit"]
    ends = zip(robot.joint_names, q, robot.lower, robot.upper, room(robot, q), strict=True)
    rows = [[name, figure(q, 6), limit(a), limit(b), limit(c)] for name, q, a, b, c in ends]
    if question.seed is not None:
        headings.append("change")
        for row, change in zip(rows, q - question.seed, strict=True):
            row.append(f"{round(change, 4) + 0.0:+.4f}")
    print_table(console, headings, rows)


def _result_pairs(method: str, result: IkResult) -> list[tuple[str, str]]:
    errors = f"{short(result.position_error)} m, {short(result.rotation_error)} rad"
    work = f"{result.iterations} iterations, {result.restarts} restarts"
    return [
        (method, f"{result.status}: {result.status.explanation}"),
        ("error", errors),
        ("work", f"{work}, {short(1e3 * result.duration, 3)} ms"),
    ]


def _compare(console: Console, answers: Answers) -> None:
    headings = [
        "method",
        "status",
        "error [m]",
        "error [rad]",
        "iterations",
        "restarts",
        "time [ms]",
    ]
    has_seed = answers.question.seed is not None
    rows = []
    for method, result in answers.results.items():
        row = [method, str(result.status)]
        row += [f"{result.position_error:.1e}", f"{result.rotation_error:.1e}"]
        row += [str(result.iterations), str(result.restarts), short(1e3 * result.duration, 3)]
        change = largest_change(answers.question, result.q)
        rows.append([*row, *([] if change is None else [figure(change)])])
    print_table(console, [*headings, *(["change"] if has_seed else [])], rows, left=(0, 1))
    if has_seed:
        print_note(console, "change: largest of a joint from the seed [rad or m]")


def comparison(answers: Answers) -> Figure:
    """Error and step of each iteration from the seed, of methods that step; and all results."""
    drawn = [name for name in answers.results if name not in KDL]
    traces = {name: _trace(answers, name) for name in drawn}
    many = len(answers.results) > 1
    title = "One pose by several methods" if many else "One pose"
    figure_title = f"{title}: {answers.question.robot.name}"
    return compare_methods(traces, answers.results, figure_title, _lengths(answers, traces))


def _lengths(answers: Answers, traces: Mapping[str, Trace]) -> dict[str, str]:
    """What of a method's work its line shows, where that is not all of it."""
    parts = {}
    for name, trace in traces.items():
        result, steps = answers.results[name], len(trace.q) - 1
        if _begins_elsewhere(answers, name):
            parts[name] = "an attempt from mid-range"
        elif result.restarts:
            parts[name] = f"attempt 1 of {result.restarts + 1}"
        elif steps < result.iterations:
            parts[name] = f"the first {steps} of {result.iterations}"
    return parts


def _begins_elsewhere(answers: Answers, method: str) -> bool:
    """Whether the solver began near the pose, as it does without a seed, which is not drawn."""
    question = answers.question
    options = IkSolver(question.robot, method, **question.settings).options
    return question.seed is None and options.starts == "table"


def _trace(answers: Answers, method: str) -> Trace:
    """The first attempt from the seed or from mid-range, up to where the solver ends it."""
    question = answers.question
    settings = {**question.settings, "max_restarts": 0}
    solver = IkSolver(question.robot, method, **settings)
    stepper = Stepper(question.robot, method, question.seed, task=question.task, **settings)
    first = solver.solve(question.T, stepper.q, task=question.task)
    return stepper.run(question.T, max(1, min(first.iterations, MOST_STEPS)))
