"""What ``dls-ik solve`` prints for people."""

from __future__ import annotations

from rich.console import Console

from dls_ik.cli.answers import Answers, Question, Solutions, largest_change, room
from dls_ik.cli.info_text import figure, limit
from dls_ik.cli.tables import print_note, print_pairs, print_table, stdout_console
from dls_ik.core.types import Array
from dls_ik.plot.canvas import short
from dls_ik.solver.result import IkResult


def show(answers: Answers) -> None:
    """Print one method's joint values, or how several methods compare."""
    console = stdout_console()
    if len(answers.results) == 1:
        ((method, result),) = answers.results.items()
        _show_joints(console, answers.question, result.q)
        console.print()
        print_pairs(console, _figures(method, result))
    else:
        _compare(console, answers)


def show_all(found: Solutions) -> None:
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


def _figures(method: str, result: IkResult) -> list[tuple[str, str]]:
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
