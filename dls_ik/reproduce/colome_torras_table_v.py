# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Table V of Colome & Torras 2012: every method on the WAM, from random starts to random goals.

The table is run in two readings, "as published" and "as meant", which
:mod:`.colome_torras_readings` explains. A pair is a random start configuration and the pose of a
random goal configuration.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import comb, nan, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.types import Array
from dls_ik.errors import DlsIkError
from dls_ik.model.robot import RobotModel
from dls_ik.plot.canvas import BLUE, GREY, ORANGE, PALE, heading, new_figure, plain
from dls_ik.reproduce.colome_torras_readings import (
    COMPARED,
    GENERAL_NOTES,
    KDL_NOTE,
    KDL_ROWS,
    MEANT_READING_NAME,
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
from dls_ik.reproduce.experiment import (
    SIGMAS,
    Column,
    Experiment,
    Progress,
    Reproduction,
    ResultTable,
    Row,
    marked,
    mean_score,
    percent_score,
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
        for name in progress.track(names, f"Table V, {reading.name}"):
            row = _row(reading, robot, name, goals, starts, printed.get(name))
            report.rows.append(row)
            _conclude(report)
    if READING_AS_PUBLISHED in readings:
        found = report.series.setdefault("slips", [])
        wanted = [(slip, row) for slip in SLIPS for row in _chosen(report, slip.rows)]
        for slip, name in progress.track(wanted, "slips"):
            ran, options = READING_AS_PUBLISHED.options_of(name)
            options = {**options, **slip.options}
            solver = IkSolver(robot, options.pop("method", ran), **options)
            mended = figures(_in_batches(READING_AS_PUBLISHED, solver, goals, starts))
            before = next(row for row in report.rows if row["method"] == name)
            found.append(_change(slip.is_, slip.instead, name, before, mended))


def _chosen(report: Reproduction, names: Iterable[str]) -> list[str]:
    return [name for name in names if not report.only or name in report.only]


def _row(
    reading: Reading,
    robot: RobotModel,
    name: str,
    goals: Array,
    starts: Array,
    printed: Row | None,
) -> Row:
    """Run the method of a row on all pairs, and return the row with our figures and z-scores.

    If the method raises an error, return a row with the error message under the key "missing".

    Args:
        reading: Reading that determines method and options of the row.
        robot: Robot of the pairs.
        name: Name of the row.
        goals: (b, 4, 4) goal poses.
        starts: (b, n) start configurations [rad].
        printed: Printed row; None if the paper has none.
    """
    method, options = reading.options_of(name)
    row: Row = {"reading": reading.name, "method": name}
    try:
        found = _one_by_one(reading, IkSolver(robot, method, **options), goals, starts)
    except DlsIkError as error:
        return {**row, "missing": str(error)}
    row |= {"long_name": long_name(method), **figures(found)}
    if printed is None:
        return row
    z = scores(found, printed, NUM_PAPER_PAIRS)
    largest = max(z, key=lambda key: abs(z[key]))
    row |= {"z": z, "largest_z": f"{z[largest]:+.1f} {SHORT_HEADINGS[largest]}"}
    return marked(row, [key for key, value in z.items() if abs(value) > SIGMAS])


def _one_by_one(reading: Reading, solver: IkSolver, goals: Array, starts: Array) -> Outcomes:
    """Solve b pairs one after another on one thread; return the outcomes, including the times.

    Args:
        reading: Rules for counting iterations and scaling errors.
        solver: Solver of the pairs.
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


def _in_batches(reading: Reading, solver: IkSolver, goals: Array, starts: Array) -> Outcomes:
    """Solve b pairs on all cores; return the outcomes, without times.

    Args:
        reading: Rules for counting iterations and scaling errors.
        solver: Solver of the pairs.
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


# Figures of a row, and their deviation from the printed ones


class Outcomes(NamedTuple):
    """Results of a method for b pairs of start and goal."""

    solved: NDArray[np.bool_]  # (b,) whether the goal is reached, inside joint limits or not
    inside: NDArray[np.bool_]  # (b,) whether the goal is reached inside the joint limits
    iterations: Array  # (b,) NaN if unknown
    residual: Array  # (b,) norm of the final scaled error [m]
    time: Array | None = None  # (b,) [ms]


def figures(found: Outcomes) -> Row:
    """Return the figures of a table row (means and shares over all pairs), by column key."""
    row: Row = {
        "solved_percent": 100.0 * float(found.solved.mean()),
        "in_limits_percent": 100.0 * float(found.inside.mean()),
        "iterations": _mean(found.iterations),
        "iterations_solved": _mean(found.iterations[found.solved]),
        "residual": _mean(found.residual[~found.solved]),
    }
    if found.time is not None:
        row["time_ms"] = _mean(found.time)
        row["time_solved_ms"] = _mean(found.time[found.solved])
        row["time_in_limits_ms"] = _mean(found.time[found.inside])
    return row


# Minimum number of failures from which the standard deviation of the residuals is estimated
MIN_FAILURES = 30


def scores(found: Outcomes, printed: Row, printed_pairs: int) -> dict[str, float]:
    """Return the z-scores of our figures minus the printed ones, by column key.

    Columns that lack our figure or the printed one are left out.

    Args:
        found: Our outcomes.
        printed: Printed row of the method.
        printed_pairs: Number of pairs in the paper.
    """
    row, n = figures(found), len(found.solved)
    shares = ("solved_percent", "in_limits_percent")
    z = {k: percent_score(row[k], n, printed[k], printed_pairs, 0.05) for k in shares}
    printed_solved = round(printed_pairs * printed["solved_percent"] / 100.0)
    for key, values, count, rounding in (
        ("iterations", found.iterations, printed_pairs, 0.05),
        ("iterations_solved", found.iterations[found.solved], printed_solved, 0.05),
        ("residual", found.residual[~found.solved], printed_pairs - printed_solved, 0.0005),
    ):
        if row[key] is not None and printed[key] is not None and min(len(values), count) > 1:
            spread = float(values.std(ddof=1))
            if key == "iterations" and row["iterations_solved"] is not None:
                spread = _spread_of_iterations(found, printed, printed_pairs)
            if key == "residual" and min(len(values), count) < MIN_FAILURES:
                spread = max(spread, row[key], printed[key])
            z[key] = mean_score(row[key], len(values), printed[key], count, spread, rounding)
    return z


def _spread_of_iterations(found: Outcomes, printed: Row, printed_pairs: int) -> float:
    """Estimate the standard deviation of the number of iterations over all pairs.

    A few unsolved pairs cause most of the deviation, and a small sample may have no unsolved pair.
    Therefore the share of solved pairs is estimated from our sample and the printed one together.

    Args:
        found: Our outcomes.
        printed: Printed row of the method.
        printed_pairs: Number of pairs in the paper.
    """
    n, share = len(found.solved), printed["solved_percent"] / 100.0
    p = (float(found.solved.sum()) + printed_pairs * share) / (n + printed_pairs)
    solved, unsolved = found.iterations[found.solved], found.iterations[~found.solved]
    if len(unsolved):
        last = float(unsolved.mean())
    elif share < 1.0:
        last = (printed["iterations"] - share * printed["iterations_solved"]) / (1.0 - share)
    else:
        last = float(solved.mean())
    between = p * (1.0 - p) * (last - float(solved.mean())) ** 2
    return sqrt(p * float(solved.var()) + between)


def _mean(values: Array) -> float | None:
    mean = float(values.mean()) if len(values) else nan
    return mean if np.isfinite(mean) else None


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
NOT_EXPLAINED = ("jt", "residual")


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
    found = [
        (value, (row["method"], key))
        for row in rows
        if row["reading"] == reading
        for key, value in row.get("z", {}).items()
    ]
    z = np.array([value for value, _ in found])
    rest = np.array([value for value, name in found if name != NOT_EXPLAINED])
    return {
        "reading": reading,
        "figures": len(z),
        "beyond": int(np.sum(np.abs(z) > SIGMAS)),
        "mean_z2": float(np.mean(z**2)),
        "mean_z2_rest": float(np.mean(rest**2)) if len(rest) else None,
    }


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
            f"{others}: some figures differ by more than 3 standard deviations even as published. "
            "Chance alone causes this in one figure of 370."
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
            "As published: the methods of the public code, including its slips",
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
            "Our figures when a single slip or choice of the published code is reverted",
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
    ),
    run=run,
    plot=plot,
    samples=1000,
    samples_are="pairs of start and goal",
    is_sampled=True,
    row_names=TABLE_V_METHODS,
    readings=(PUBLISHED_READING_NAME, MEANT_READING_NAME),
)
