# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Table V of Colome & Torras 2012: every method on the WAM, from random starts to random goals.

The table is run in two readings, "as published" and "as meant", which
:mod:`.colome_torras_readings` explains. A pair is a random start configuration and the pose of a
random goal configuration.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import comb, nan
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.types import Array
from dls_ik.errors import DlsIkError
from dls_ik.model.robot import RobotModel
from dls_ik.plot.canvas import BLUE, GREY, ORANGE, PALE, heading, new_figure, plain
from dls_ik.reproduce.colome_torras_outcomes import Outcomes, figures, scores
from dls_ik.reproduce.colome_torras_readings import (
    COMPARED,
    FITTED_ROWS,
    GENERAL_NOTES,
    KDL_NOTE,
    KDL_ROWS,
    MEANT_READING_NAME,
    NOT_EXPLAINED,
    NUM_PAPER_PAIRS,
    PUBLISHED_READING_NAME,
    READING_AS_MEANT,
    READING_AS_PUBLISHED,
    READINGS,
    RESIDUAL_NOTE,
    SLIPS,
    TABLE_V_METHODS,
    Reading,
    printed_rows,
)
from dls_ik.reproduce.colome_torras_sampling import (
    NUM_BOOTSTRAP_SAMPLES,
    null_distribution,
    null_test,
)
from dls_ik.reproduce.colome_torras_variants import VARIANTS, run_variant
from dls_ik.reproduce.experiment import (
    FITTED,
    SIGMAS,
    Column,
    Experiment,
    NotPredicted,
    Progress,
    Reproduction,
    ResultTable,
    Row,
    marked,
)
from dls_ik.solver.method import long_name
from dls_ik.solver.plugins import plugin_names
from dls_ik.solver.result import Status
from dls_ik.solver.solver import IkSolver

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Runs

REACHED_STATUSES = (Status.SUCCESS, Status.OUTSIDE_LIMITS)
POSES_PER_BATCH = 512  # poses per batch, 256 per thread; Ctrl-C takes effect between batches


def run(report: Reproduction, progress: Progress) -> None:
    """Run every row of the table in both readings, and add the rows to the report.

    Then run rows of the reading "as published" again with a single slip (difference between the
    published code and the text) reverted.
    """
    robot = RobotModel.wam()
    rng = np.random.default_rng(report.seed)
    starts = robot.random(report.samples, rng)
    goals = robot.fk(robot.random(report.samples, rng))
    report.settings["robot"] = "wam"
    report.printed += printed_rows()
    printed = {row["method"]: row for row in report.printed}
    readings = [each for each in READINGS.values() if report.reading in ("", each.name)]
    for reading in readings:
        report.settings[reading.name] = {**reading.options, "rows": reading.rows}
        names = _chosen(
            report, (*reading.rows, *(plugin_names() if reading is READING_AS_MEANT else ()))
        )
        outcomes: dict[str, Outcomes] = {}
        for name in progress.track(names, f"Table V, {reading.name}"):
            row, found = _row(reading, robot, name, goals, starts, printed.get(name))
            report.rows.append(row)
            _conclude(report)
            if found is not None and "z" in row:
                outcomes[name] = found
        if outcomes and reading is READING_AS_PUBLISHED:
            null = null_distribution(outcomes, rng, NUM_BOOTSTRAP_SAMPLES)
            z = {(name, key): value for name, key, value in _all_scores(report.rows, reading.name)}
            report.series["null"] = [null_test(null, z, reading.name)]
    if READING_AS_PUBLISHED in readings:
        changes = report.series.setdefault("slips", [])
        wanted = [(slip, row) for slip in SLIPS for row in _chosen(report, slip.rows)]
        for slip, name in progress.track(wanted, "slips"):
            ran, options = READING_AS_PUBLISHED.options_of(name)
            options = {**options, **slip.options}
            solver = IkSolver(robot, options.pop("method", ran), **options)
            mended = figures(run_in_batches(READING_AS_PUBLISHED, solver, goals, starts))
            before = next(row for row in report.rows if row["method"] == name)
            changes.append(_change(slip.is_, slip.instead, name, before, mended))
        variants = [each for each in VARIANTS if each.row in _chosen(report, (each.row,))]
        for each in progress.track(variants, "variants"):
            variant = run_variant(robot, each.step, goals, starts, each.smallest_step)
            before = next(row for row in report.rows if row["method"] == each.row)
            changes.append(_change(each.is_, each.instead, each.row, before, figures(variant)))


def _chosen(report: Reproduction, names: Iterable[str]) -> list[str]:
    return [name for name in names if not report.only or name in report.only]


def _row(
    reading: Reading,
    robot: RobotModel,
    name: str,
    goals: Array,
    starts: Array,
    printed: Row | None,
) -> tuple[Row, Outcomes | None]:
    """Run the method of a table row from all starts; return the row and the outcomes.

    The row has the numbers of Table V and their z-scores against the printed numbers. If the method
    raises an error, the row has the error message under the key "missing" instead, and the outcomes
    are None.

    Args:
        reading: Interpretation of the paper, with the method and the options of the row.
        robot: Robot of the starts and goals.
        name: Name of the row.
        goals: (b, 4, 4) goal poses.
        starts: (b, n) start configurations [rad].
        printed: Row of the paper; None if the paper has no row of this name.
    """
    method, options = reading.options_of(name)
    row: Row = {"reading": reading.name, "method": name}
    try:
        found = _one_by_one(reading, IkSolver(robot, method, **options), goals, starts)
    except DlsIkError as error:
        return {**row, "missing": str(error)}, None
    row |= {"long_name": long_name(method), **figures(found)}
    if printed is None:
        return row, found
    z = scores(found, printed, NUM_PAPER_PAIRS)
    largest = max(z, key=lambda key: abs(z[key]))
    row |= {"z": z, "largest_z": f"{z[largest]:+.1f} {SHORT_HEADINGS[largest]}"}
    return marked(row, [key for key, value in z.items() if abs(value) > SIGMAS]), found


def _one_by_one(reading: Reading, solver: IkSolver, goals: Array, starts: Array) -> Outcomes:
    """Solve b pairs of start and goal one after another; return the outcomes with their times.

    All calls run on one thread.

    Args:
        reading: Interpretation of the paper, with the rule for counting iterations.
        solver: Solver to call for each pair.
        goals: (b, 4, 4) goal poses.
        starts: (b, n) start configurations [rad].
    """
    solver.solve(goals[0], starts[0])  # compiles before the measurement
    results = [solver.solve(T, q) for T, q in zip(goals, starts, strict=True)]
    found = _outcomes(
        reading,
        solver,
        np.array([r.status for r in results]),
        np.array([nan if solver.method in KDL_ROWS else r.iterations for r in results], float),
        np.array([(r.position_error, r.rotation_error) for r in results]),
    )
    return found._replace(time=1e3 * np.array([r.duration for r in results]))


def run_in_batches(reading: Reading, solver: IkSolver, goals: Array, starts: Array) -> Outcomes:
    """Solve b pairs of start and goal on all cores; return the outcomes, without times.

    Args:
        reading: Interpretation of the paper, with the rule for counting iterations.
        solver: Solver to call for all pairs.
        goals: (b, 4, 4) goal poses.
        starts: (b, n) start configurations [rad].
    """
    chunks = [slice(i, i + POSES_PER_BATCH) for i in range(0, len(goals), POSES_PER_BATCH)]
    parts = [solver.solve_batch(goals[chunk], starts[chunk]) for chunk in chunks]
    status, iterations, position, rotation = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("status", "iterations", "position_error", "rotation_error")
    )
    errors = np.column_stack([position, rotation])
    return _outcomes(reading, solver, status, iterations.astype(float), errors)


def _outcomes(
    reading: Reading,
    solver: IkSolver,
    status: NDArray[np.int64],
    iterations: Array,
    errors: Array,
) -> Outcomes:
    """Convert the solver's results of b pairs to the quantities that the table lists.

    Args:
        reading: Rules for counting iterations and scaling errors.
        solver: Solver of the pairs.
        status: (b,) values of :class:`Status`.
        iterations: (b,) numbers of iterations.
        errors: (b, 2) position errors [m] and rotation errors [rad].
    """
    solved = np.isin(status, REACHED_STATUSES)
    options = solver.options
    turn = np.sin(errors[:, 1]) if options.rotation_error == "sine" else errors[:, 1]
    if reading.counts_last:
        iterations = np.where(solved, iterations, options.max_iterations + 1.0)
    residual = np.hypot(errors[:, 0], options.rotation_weight * turn)
    return Outcomes(solved, status == Status.SUCCESS, iterations, residual)


# Numbers of a method after a slip of the published code is reverted


def _change(slip: str, instead: str, method: str, before: Row, mended: Row) -> Row:
    """Return a row with the figures of a method after a slip of the published code is reverted.

    The row also has the changes of the figures.

    Args:
        slip: What the published code does.
        instead: What the run does instead.
        method: Name of the row that was run again.
        before: Our figures with the slip.
        mended: Our figures without the slip.
    """
    row: Row = {"slip": slip, "instead": instead, "method": method, **mended}
    for key in COMPARED:
        if mended[key] is not None and before[key] is not None:
            row[f"{key}_change"] = mended[key] - before[key]
    return row


# Verdicts: all figures of a reading, and each column separately

SHORT_HEADINGS = {
    "solved_percent": "solved",
    "in_limits_percent": "in limits",
    "iterations": "iterations",
    "iterations_solved": "iterations if solved",
    "residual": "residual",
}


def _conclude(report: Reproduction) -> None:
    """Update the verdicts and the notes of the report after a row is finished."""
    report.series["verdict"] = [
        verdict(report.rows, reading) for reading in READINGS if _has_scores(report.rows, reading)
    ]
    report.series["columns"] = [
        column_verdict(report.rows, reading, key)
        for reading in READINGS
        for key in COMPARED
        if _has_scores(report.rows, reading)
    ]
    report.notes[:] = notes(report.rows)


def _has_scores(rows: Sequence[Row], reading: str) -> bool:
    return any(row["reading"] == reading and "z" in row for row in rows)


def verdict(rows: Sequence[Row], reading: str) -> Row:
    """Return a row with the agreement of all figures of a reading with the printed figures.

    The row has the number of compared figures, how many of these have a z-score above SIGMAS, and
    the mean squared z-score with and without the figure NOT_EXPLAINED.
    """
    found = _all_scores(rows, reading)
    z = np.array([value for *_, value in found])
    rest = np.array([value for *name, value in found if tuple(name) != NOT_EXPLAINED])
    return {
        "reading": reading,
        "figures": len(z),
        "beyond": int(np.sum(np.abs(z) > SIGMAS)),
        "mean_z2": float(np.mean(z**2)),
        "mean_z2_rest": float(np.mean(rest**2)) if len(rest) else None,
    }


def _all_scores(rows: Sequence[Row], reading: str) -> list[tuple[str, str, float]]:
    """Return a list of (method, column key, z-score) for the rows of one reading.

    Args:
        rows: Rows of all readings (interpretations of the paper).
        reading: Name of the reading.
    """
    chosen = (row for row in rows if row["reading"] == reading)
    return [(row["method"], key, z) for row in chosen for key, z in row.get("z", {}).items()]


def column_verdict(rows: Sequence[Row], reading: str, key: str) -> Row:
    """Return a row with the agreement of one column of a reading with the printed figures.

    The row has the mean squared z-score, the numbers of our figures above and below the printed
    ones, and the p-value of the sign test of these two numbers. `key` is the key of the column.
    """
    z = np.array([r["z"][key] for r in rows if r["reading"] == reading and key in r.get("z", {})])
    above, below = int(np.sum(z > 0.0)), int(np.sum(z < 0.0))
    return {
        "reading": reading,
        "column": SHORT_HEADINGS[key],
        "figures": len(z),
        "above": above,
        "below": below,
        "sign_p": sign_test(above, below),
        "mean_z2": float(np.mean(z**2)) if len(z) else None,
    }


def sign_test(above: int, below: int) -> float:
    """Return the p-value of a two-sided sign test.

    Args:
        above: Number of positive differences.
        below: Number of negative differences.
    """
    n = above + below
    tail = sum(comb(n, k) for k in range(min(above, below) + 1)) / 2.0**n
    return min(1.0, 2.0 * tail)


def notes(rows: Sequence[Row]) -> list[str]:
    """Return the notes of the report.

    They explain both readings, name the rows that differ from the paper in the reading "as
    published", and give the reasons of rows that were not run.
    """
    found = list(GENERAL_NOTES)
    differing = [
        row for row in rows if row["reading"] == PUBLISHED_READING_NAME and row.get("differs")
    ]
    known = [row for row in differing if row["method"] == "jt" and row["differs"] == ["residual"]]
    if known:
        found.append(RESIDUAL_NOTE)
    others = ", ".join(row["method"] for row in differing if row not in known)
    if others:
        found.append(
            f"{others}: some of our figures differ from the printed ones by more than 3 standard "
            "deviations, although the methods are run as published. The last table shows how many "
            "such differences chance alone causes."
        )
    missing = dict.fromkeys(row["missing"] for row in rows if "missing" in row)
    for reason in missing:
        names = ", ".join(row["method"] for row in rows if row.get("missing") == reason)
        found.append(f"{names}: not run, because: {reason}")
    if not missing and any(row["method"] in KDL_ROWS for row in rows):
        found.append(KDL_NOTE)
    return found


# Picture: a line per row, with our figures next to the printed figure

PANELS = (
    ("solved_percent", "solved [%]"),
    ("in_limits_percent", "solved within limits [%]"),
    ("iterations", "iterations"),
)
MARKERS: dict[str, dict[str, Any]] = {
    PUBLISHED_READING_NAME: {"marker": "o", "color": BLUE, "ms": 5},
    MEANT_READING_NAME: {"marker": "o", "color": GREY, "ms": 5, "mfc": "white"},
}


def plot(report: Reproduction) -> Figure:
    """Draw a panel for each column: the printed figures, and our figures of both readings."""
    names = sorted({row["method"] for row in report.rows}, key=_place)
    figure = new_figure(11.0, 1.6 + 0.27 * max(4, len(names)))
    grid = figure.subplots(1, len(PANELS), sharey=True)
    for axes, (key, label) in zip(grid, PANELS, strict=True):
        _panel(axes, report, names, key, label)
    grid[0].set_yticks(range(len(names)), names)
    grid[0].invert_yaxis()
    handles, labels = grid[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    heading(figure, f"Table V of Colome & Torras 2012, {report.samples} pairs")
    return figure


def _place(name: str) -> int:
    return TABLE_V_METHODS.index(name) if name in TABLE_V_METHODS else len(TABLE_V_METHODS)


def _panel(axes: Axes, report: Reproduction, names: list[str], key: str, label: str) -> None:
    printed = {row["method"]: row[key] for row in report.printed}
    shown = [(i, printed[name]) for i, name in enumerate(names) if name in printed]
    for i, theirs in shown:
        axes.axhline(i, color=PALE, linewidth=0.6, zorder=0)
        axes.plot(theirs, i, "D", color=ORANGE, ms=8, label="printed" if i == 0 else "")
    for reading, style in reversed(MARKERS.items()):
        rows = [r for r in report.rows if r["reading"] == reading and r.get(key) is not None]
        at = [names.index(row["method"]) for row in rows]
        axes.plot([row[key] for row in rows], at, linestyle="", label=reading, **style)
    axes.set_xlim(left=-3.0)
    plain(axes, label)
    axes.tick_params(axis="y", colors=GREY)


_SHARES = (
    Column("solved_percent", "solved [%]", ".1f"),
    Column("in_limits_percent", "in limits [%]", ".1f"),
)
_ITERATIONS = (
    Column("iterations", "iterations", ".1f"),
    Column("iterations_solved", "if solved", ".1f"),
    Column("residual", "residual [m]", ".3f"),
)


def _changed(column: Column) -> Column:
    return Column(f"{column.key}_change", "change", "+" + column.form)


_METHOD = Column("method", "method", is_name=True)
_TIMES = (
    Column("time_ms", "time [ms]", ".4g", is_spare=True, is_compared=False),
    Column("time_solved_ms", "if solved", ".4g", is_spare=True, is_compared=False),
    Column("time_in_limits_ms", "if in limits", ".4g", is_spare=True, is_compared=False),
)
_NAME = Column("long_name", "name", is_text=True, is_spare=True)
_LARGEST = Column("largest_z", "largest z", is_text=True, is_spare=True)
TABLE_V = Experiment(
    what="table-v",
    source="Colome & Torras 2012, Table V",
    title="Every method on the WAM, from random starts to random goals",
    tables=(
        ResultTable(
            (_METHOD, _NAME, *_SHARES, *_ITERATIONS, _LARGEST),
            "As published: methods from the paper and the Matlab file, with four fitted values",
            where={"reading": PUBLISHED_READING_NAME},
        ),
        ResultTable(
            (_METHOD, _NAME, *_SHARES, *_ITERATIONS, _LARGEST),
            "As meant: the methods of this package, with one set of options",
            where={"reading": MEANT_READING_NAME},
            is_verdict=False,
        ),
        *(
            ResultTable(
                (_METHOD, *_TIMES),
                f"Times, {reading}; printed: Matlab, 2012",
                where={"reading": reading},
                is_verdict=False,
            )
            for reading in (PUBLISHED_READING_NAME, MEANT_READING_NAME)
        ),
        ResultTable(
            (
                Column("slip", "as published", is_text=True),
                Column("instead", "instead", is_text=True),
                _METHOD,
                *(
                    column
                    for each in (*_SHARES, *_ITERATIONS[:2])
                    for column in (each._replace(is_plain=True), _changed(each))
                ),
            ),
            "Our figures when one slip or choice is reverted, or taken from the Matlab file",
            series="slips",
        ),
        ResultTable(
            (
                Column("reading", "reading", is_name=True),
                Column("figures", "figures"),
                Column("beyond", f"beyond {SIGMAS:.0f} sigma"),
                Column("mean_z2", "mean z^2", ".2f"),
                Column("mean_z2_rest", "without JT's residual", ".2f"),
            ),
            "Statistics: agreement with all printed figures except times",
            series="verdict",
        ),
        ResultTable(
            (
                Column("reading", "reading", is_name=True),
                Column("column", "column", is_name=True),
                Column("figures", "figures"),
                Column("above", "above"),
                Column("below", "below"),
                Column("sign_p", "sign test p", ".2g"),
                Column("mean_z2", "mean z^2", ".2f"),
            ),
            "Statistics by column: how many of our figures are above and below the printed ones",
            series="columns",
        ),
        ResultTable(
            (
                Column("reading", "reading", is_name=True),
                Column("figures", "figures"),
                Column("beyond", f"beyond {SIGMAS:.0f} sigma"),
                Column("beyond_mean", "by chance", ".1f"),
                Column("beyond_99", "1 % of samples", ".0f"),
                Column("mean_z2_p", "mean z^2: p", ".2g"),
                Column("covariance_p", "with covariance: p", ".2g"),
                Column("sign_in_limits_percent_p", "signs in limits: p", ".2g"),
            ),
            "Statistics of chance: p-values, if our figures and the printed ones differ only by "
            "random sampling (bootstrap over pairs of start and goal, without JT's residual)",
            series="null",
            is_verdict=False,
        ),
    ),
    run=run,
    plot=plot,
    samples=1000,
    samples_are="pairs of start and goal",
    is_sampled=True,
    row_names=TABLE_V_METHODS,
    readings=(PUBLISHED_READING_NAME, MEANT_READING_NAME),
    not_predicted=(
        NotPredicted(
            FITTED,
            "the error tolerance 0.005 was fitted to the row jt, the bound 0.02 to the row jf, "
            "the margin 0.1 to the rows ctp+sd and ctp+sd+svf, and the sign of the criterion to "
            "the row ta",
            {"method": FITTED_ROWS},
        ),
    ),
)
