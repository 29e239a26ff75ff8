"""Table V of Colome & Torras 2012: every method on the WAM, from random starts to random goals."""

from math import nan, pi
from typing import Any

import numpy as np

from dls_ik.core.types import Array
from dls_ik.exceptions import DlsIkError
from dls_ik.model.robot import RobotModel
from dls_ik.reproduce.experiment import Experiment, Progress
from dls_ik.reproduce.report import Reproduction, Row
from dls_ik.reproduce.table import Column, Table
from dls_ik.reproduce.table_v_figures import Outcomes, differing, figures
from dls_ik.reproduce.table_v_notes import notes
from dls_ik.reproduce.table_v_plot import plot
from dls_ik.reproduce.table_v_printed import KDL, METHODS, PAIRS, READINGS, SETTINGS, printed_rows
from dls_ik.solver.result import Status
from dls_ik.solver.solver import IkSolver

WEIGHT = 0.5  # [m/rad]
STOPPING: dict[str, Any] = {
    "error_tolerance": 1e-4,
    "position_tolerance": 1e3,
    "rotation_tolerance": pi,
    "max_iterations": 250,
    "max_restarts": 0,
    "timeout": 3600.0,
    "rotation_weight": WEIGHT,
}
REACHED = (Status.SUCCESS, Status.OUTSIDE_LIMITS)
CHUNK = 512  # poses of a batch, 256 a thread: Ctrl-C is heard after it


def run(report: Reproduction, progress: Progress) -> None:
    """Run every row, then the readings of what the paper leaves open."""
    robot = RobotModel.wam()
    rng = np.random.default_rng(report.seed)
    starts = robot.random(rng, report.samples)
    goals = robot.fk(robot.random(rng, report.samples))
    report.settings.update({"robot": "wam", **STOPPING, "rows": SETTINGS})
    report.printed += printed_rows()
    printed = {row["method"]: row for row in report.printed}
    for method in progress.track(METHODS, "Table V"):
        report.rows.append(_row(robot, method, goals, starts, printed.get(method)))
        report.notes[:] = notes(report.rows)
    readings = report.series.setdefault("readings", [])
    for method, reading, options in progress.track(READINGS, "other readings"):
        solver = _solver(robot, method, options)
        found = figures(_in_batches(solver, goals, starts))
        readings.append({"method": method, "reading": reading, **found})


def _solver(robot: RobotModel, method: str, options: dict[str, Any]) -> IkSolver:
    given: dict[str, Any] = {**STOPPING, **SETTINGS.get(method, {}), **options}
    return IkSolver(robot, method, **given)


def _row(robot: RobotModel, method: str, goals: Array, starts: Array, printed: Row | None) -> Row:
    """One method, or why it cannot be run."""
    try:
        solver = _solver(robot, method, {})
    except DlsIkError as error:
        return {"method": method, "missing": str(error)}
    found = _one_by_one(solver, goals, starts)
    differs = differing(found, printed, PAIRS) if printed is not None else []
    row = {"method": method, **figures(found)}
    return {**row, "differs": differs} if differs else row


def _one_by_one(solver: IkSolver, goals: Array, starts: Array) -> Outcomes:
    """On one thread, each pose with its time."""
    solver.solve(goals[0], starts[0])  # compiled before the clock starts
    results = [solver.solve(T, q) for T, q in zip(goals, starts, strict=True)]
    steps = [nan if solver.method in KDL else r.iterations for r in results]
    return Outcomes(
        np.array([r.status in REACHED for r in results]),
        np.array([r.success for r in results]),
        np.array(steps, float),
        np.array([np.hypot(r.position_error, WEIGHT * r.rotation_error) for r in results]),
        1e3 * np.array([r.duration for r in results]),
    )


def _in_batches(solver: IkSolver, goals: Array, starts: Array) -> Outcomes:
    """On all cores, without times."""
    chunks = [slice(i, i + CHUNK) for i in range(0, len(goals), CHUNK)]
    parts = [solver.solve_batch(goals[chunk], starts[chunk]) for chunk in chunks]
    columns = [
        (
            np.isin(part.status, REACHED),
            part.success,
            part.iterations.astype(float),
            np.hypot(part.position_error, WEIGHT * part.rotation_error),
        )
        for part in parts
    ]
    return Outcomes(*(np.concatenate(column) for column in zip(*columns, strict=True)))


_SHARES = (
    Column("solved_percent", "solved [%]", ".1f"),
    Column("in_limits_percent", "in limits [%]", ".1f"),
)
_ITERATIONS = (
    Column("iterations", "iterations", ".1f"),
    Column("iterations_solved", "of solved", ".1f"),
    Column("residual", "residual [m]", ".3f"),
)
_METHOD = Column("method", "method", is_name=True)
EXPERIMENT = Experiment(
    what="table-v",
    source="Colome & Torras 2012, Table V",
    title="Every method on the WAM, from random starts to random goals",
    tables=(
        Table(
            (
                _METHOD,
                *_SHARES,
                *_ITERATIONS,
                Column("time_ms", "time [ms]", ".4g"),
                Column("time_solved_ms", "of solved", ".4g"),
            )
        ),
        Table(
            (_METHOD, Column("reading", "read as", is_text=True), *_SHARES, *_ITERATIONS),
            "Other readings of what the paper leaves open, on the same pairs",
            series="readings",
        ),
    ),
    run=run,
    plot=plot,
    samples=1000,
    samples_are="pairs of start and goal",
)
