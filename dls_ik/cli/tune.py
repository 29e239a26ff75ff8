# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""``dls-ik tune``: best value of a method's option for a robot, and confidence interval."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dls_ik.cli import output
from dls_ik.cli.options import ROBOT_HELP, parse_numbers, plugin_option, settings_option
from dls_ik.cli.terminal import ProgressBars, stdout_console
from dls_ik.tables import print_note, print_pairs, print_table
from dls_ik.text import short

if TYPE_CHECKING:
    from dls_ik.study import TuningResult
    from dls_ik.study.statistics import Interval

MAX_BAR = 20  # [characters] length of the bar of the best score
EPILOG = (
    f"{ROBOT_HELP} Criteria: solved: share of the pairs solved in one attempt (or by all restarts "
    "of the method); iterations, time: cost per solved pair; tracking: mean error of a tip that "
    "follows a moving target, by which Buss & Kim choose the damping factor; see docs/study.md. "
    "Exit codes: 0 done, 2 bad input, 130 after Ctrl-C."
)


@click.command(epilog=EPILOG, short_help="Find the best value of an option for a robot.")
@click.argument("robot")
@click.option("--base", metavar="LINK", help="Base link; default: the root.")
@click.option("--tip", metavar="LINK", help="Tip link; default: the only leaf.")
@click.option("--method", default="dls", metavar="NAME", help="Method; see dls-ik methods.")
@click.option("--option", default="lambda_", metavar="NAME", help="Option that is tuned.")
@click.option("--values", metavar="A,B,...", help="Values to compare instead of a grid.")
@click.option("--from", "low", type=float, metavar="VALUE", help="Smallest value of the grid.")
@click.option("--to", "high", type=float, metavar="VALUE", help="Largest value of the grid.")
@click.option(
    "--criterion", default="solved", metavar="NAME", help="solved, iterations, time or tracking."
)
@click.option("--case", default="far", metavar="NAME", help="Pairs: far, near, limits, singular.")
@click.option("--pairs", type=int, default=200, metavar="N", help="Number of pairs.")
@click.option("--seed", type=int, default=0, metavar="N", help="Seed of the pairs.")
@click.option("--task", default="pose", metavar="NAME", help="pose, position or pointing.")
@click.option("--steps", type=int, default=100, metavar="N", help="tracking: steps of the target.")
@click.option(
    "--max-reversals",
    type=float,
    default=100.0,
    metavar="PERCENT",
    help="tracking: maximum share of joint steps that reverse the previous step [%].",
)
@plugin_option
@settings_option
@output.plot_option("the curve of the scores")
@output.json_option
def tune(
    robot: str,
    base: str | None,
    tip: str | None,
    option: str,
    values: str | None,
    settings: dict[str, Any],
    max_reversals: float,
    plot: str | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Find the value of an option with which a method has the best score on an arm.

    All values are compared on the same random pairs of start and goal.
    """
    output.check_outputs(plot=plot)
    from dls_ik.solver import announce_compilation_to
    from dls_ik.study import StudyRobot, Tuning
    from dls_ik.study import tune as find_best

    announce_compilation_to(output.warn)
    numbers = _values(values)
    tuning = Tuning(
        StudyRobot(Path(robot).stem if "/" in robot else robot, robot, base, tip),
        option="lambda_" if option == "lambda" else option,
        values=numbers,
        options=tuple(settings.items()),
        max_reversals=0.01 * max_reversals,
        **given,
    )
    bars = ProgressBars()
    with bars:
        result = find_best(tuning, bars.counter(f"{tuning.method}, {tuning.option}"))
    if plot is not None:
        from dls_ik.study import tuning_picture

        output.save_plot(plot, tuning_picture(result))
    if as_json:
        output.print_json(_document(result))
    else:
        _print(result)


def _values(words: str | None) -> tuple[float, ...]:
    """Return the numbers given as --values, of type int if they are whole numbers."""
    found = parse_numbers(words) if words is not None else ()
    return tuple(int(value) if value == int(value) else value for value in found)


def _document(result: TuningResult) -> dict[str, Any]:
    """Return the result as a JSON document."""
    tuning, check = result.tuning, result.check

    def point(each: Any) -> dict[str, Any]:
        return {
            "value": each.value,
            "score": interval(each.score),
            "reversals": each.reversals,
        }

    def interval(each: Interval) -> dict[str, float]:
        return each._asdict()

    return {
        "robot": tuning.robot.name,
        "method": tuning.method,
        "option": tuning.option,
        "criterion": tuning.criterion,
        "case": tuning.case,
        "pairs": tuning.pairs,
        "seed": tuning.seed,
        "task": tuning.task,
        "options": dict(tuning.options),
        "best": interval(result.best),
        "as_good": list(result.as_good),
        "is_at_end": result.is_at_end,
        "curve": [point(each) for each in result.points],
        "check": None
        if check is None
        else {
            "pairs": check.pairs,
            "seed": check.seed,
            "best": point(check.best),
            "default": point(check.default),
            "gain": interval(check.gain),
        },
    }


def _print(result: TuningResult) -> None:
    """Print the curve as a table, the best value, and the comparison with the default."""
    from dls_ik.study.definition import CASES
    from dls_ik.study.tuning import BY_TRACKING, CRITERIA, score_text

    tuning, console = result.tuning, stdout_console()
    about = (
        f"{tuning.robot.name}, {tuning.method}: {tuning.option} by {tuning.criterion}, "
        f"{tuning.pairs} pairs, case {tuning.case}, seed {tuning.seed}"
    )
    console.print(about, style="bold", markup=False, soft_wrap=True)
    headings = [tuning.option, tuning.criterion, "95 %", ""]
    if tuning.criterion == BY_TRACKING:
        headings.insert(3, "reversals")
    largest = max((p.score.value for p in result.points if p.score.value < float("inf")), default=1)
    rows = []
    for point in result.points:
        value, low, high = (score_text(tuning, number) for number in point.score)
        cells = [short(point.value, 3), value, f"{low} - {high}"]
        if point.reversals is not None:
            cells.append(f"{100.0 * point.reversals:.1f} %")
        share = point.score.value / largest if largest > 0.0 else 0.0
        mark = " best" if point.value == result.best.value else ""
        rows.append([*cells, "#" * round(MAX_BAR * min(share, 1.0)) + mark])
    print_table(console, headings, rows, left=(len(headings) - 1,))
    console.print()
    print_pairs(console, _conclusions(result))
    console.print()
    print_note(
        console,
        f"{tuning.criterion}: {CRITERIA[tuning.criterion]}; case {tuning.case}: "
        f"{CASES[tuning.case]}; 95 %: confidence interval; as good: neighbouring values whose "
        "scores do not differ significantly from the best score (bootstrap over the pairs)",
    )
    if result.is_at_end:
        output.warn(
            f"the best value of {tuning.option}, {short(result.best.value, 3)}, is at an end of "
            "the range; if values outside are valid, extend the range by --from or --to"
        )


def _conclusions(result: TuningResult) -> list[tuple[str, str]]:
    """Return labels and texts of the best value, equally good values, and the final check."""
    from dls_ik.study.tuning import score_text

    tuning, best, check = result.tuning, result.best, result.check
    first, last = (short(value, 3) for value in (result.as_good[0], result.as_good[-1]))
    lines = [
        ("best", f"{short(best.value, 4)} (95 %: {short(best.low, 3)} to {short(best.high, 3)})"),
        ("as good", f"{first} to {last}" if first != last else "no neighbour"),
    ]
    if check is None:
        return lines
    low, high = (score_text(tuning, number) for number in check.gain[1:])
    lines.append(
        (
            "other pairs",
            f"{score_text(tuning, check.best.score.value)} with {short(check.best.value, 3)}, "
            f"{score_text(tuning, check.default.score.value)} with the default "
            f"{short(check.default.value, 3)}; difference {low} to {high} (95 %)",
        )
    )
    return lines
