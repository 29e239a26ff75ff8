# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""``dls-ik bench``: comparison of methods on the same random poses of a robot.

The methods solve each pose in alternation, so that other load on the machine affects all methods.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from dls_ik.cli import output
from dls_ik.cli.options import (
    ROBOT_HELP,
    TIMEOUT_RANGE,
    ChosenRobot,
    plugin_option,
    robot_argument,
    settings_option,
)
from dls_ik.cli.terminal import ProgressBars, print_method_table, stdout_console
from dls_ik.core.types import Array
from dls_ik.errors import DlsIkError
from dls_ik.tables import print_note
from dls_ik.text import scaled

if TYPE_CHECKING:
    from dls_ik.model.robot import RobotModel
    from dls_ik.solver import IkSolver

KDL_BASELINE = "kdl_lma"
HEADINGS = ("method", "solved", "inside", "restarts", "steps", "median", "95 %", "batch", "faster")
NUM_WARM_UP_SOLVES = 3  # solves before the measurement
# Batches are repeated until their total time reaches MIN_BATCH_TIME [s].
MAX_BATCHES, MIN_BATCH_TIME = 9, 0.3
LIMIT_TOLERANCE = 1e-9  # [rad or m] excess over a joint limit that counts as rounding


@click.command(
    epilog=f"{ROBOT_HELP} Exit codes: 0 done, 2 bad input, 130 after Ctrl-C, with the results so "
    "far."
)
@robot_argument(default="wam")
@click.option(
    "--method",
    "methods",
    metavar="A,B,C",
    default="auto,ctp+sd+svf",
    help="Methods; see dls-ik methods.",
)
@click.option(
    "--samples", type=click.IntRange(1, 10**7), default=1000, metavar="N", help="Number of poses."
)
@click.option(
    "--seed", type=click.IntRange(0, 2**63 - 1), default=0, metavar="N", help="Seed of the poses."
)
@click.option("--timeout", type=TIMEOUT_RANGE, metavar="S", help="Timeout for a pose [s].")
@plugin_option
@settings_option
@click.option(
    "--reference",
    metavar="METHOD",
    help="Method to compare times with.  [default: kdl_lma if it works, else the first method]",
)
@output.json_option
@output.plot_option("solve times")
def bench(
    chosen: ChosenRobot,
    methods: str,
    samples: int,
    seed: int,
    reference: str | None,
    as_json: bool,
    plot: str | None,
    timeout: float | None,
    settings: dict[str, Any],
) -> None:
    """Compare methods on random reachable poses of a robot.

    All methods solve the same poses, in turn, from the same random start configurations. The
    default ROBOT is wam.
    """
    output.check_outputs(plot=plot)
    robot = chosen.read()
    options = settings if timeout is None else {**settings, "timeout": timeout}
    solvers, reference = _solvers(robot, methods, reference, options)
    found = new_comparison(robot, [each.method for each in solvers], samples, seed)
    is_complete = True
    try:
        with ProgressBars() as bars:
            run(found, solvers, bars.counter("solves"))
    except KeyboardInterrupt:
        is_complete = False
    if not found.finished:
        output.exit_interrupted("interrupted before the first pose was finished")
    report = {
        "robot": robot.name,
        "samples": samples,
        "finished": found.finished,
        "complete": is_complete,
        "seed": seed,
        "machine": {
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            **{name: version(name) for name in ("numba", "numpy")},
        },
        "reference": reference,
        "methods": figures(found, reference),
    }
    output.print_json(report) if as_json else _print_report(report)
    if plot is not None:
        _draw(found, plot)
    if not is_complete:
        output.exit_interrupted(f"interrupted after {found.finished} of {samples} poses")


def _solvers(
    robot: RobotModel, methods: str, reference: str | None, options: dict[str, Any]
) -> tuple[list[IkSolver], str]:
    """Return a solver for each method, without duplicates, and the name of the reference method.

    Args:
        robot: Robot to solve for.
        methods: Names of methods, separated by commas.
        reference: Method whose solve time is the reference; None selects kdl_lma if PyKDL supports
            the robot, and otherwise the first method.
        options: Solver options.
    """
    from dls_ik.solver import IkSolver, announce_compilation_to

    announce_compilation_to(output.warn)
    names = [name for name in (part.strip() for part in methods.split(",")) if name]
    if not names:
        raise click.UsageError("--method is empty; give one or more methods, such as auto,svf")
    solvers = [IkSolver(robot, name, **options) for name in names]
    compared = solvers[0]
    if reference is not None:
        compared = IkSolver(robot, reference, **options)
    else:
        with suppress(DlsIkError):  # PyKDL is not installed, or does not support the robot
            compared = IkSolver(robot, KDL_BASELINE, **options)
    return list({each.method: each for each in [*solvers, compared]}.values()), compared.method


def _draw(found: MethodComparison, path: str) -> None:
    """Save a plot of the share of the poses that each method solves within a given time."""
    from dls_ik.plot.methods import solve_times

    times = dict(zip(found.methods, found.done["duration"], strict=True))
    solved = dict(zip(found.methods, found.done["success"], strict=True))
    title = f"{found.robot.name}: share of {found.finished} random poses solved within a time"
    output.save_plot(path, solve_times(times, solved, title))


# `inside`: whether the result is within the limits; `duration`: time of the solve [s].
RESULT_TYPES = {
    "success": bool,
    "inside": bool,
    "iterations": int,
    "restarts": int,
    "duration": float,
}
RESULT = np.dtype(list(RESULT_TYPES.items()))


@dataclass
class MethodComparison:
    """Results of m methods for k poses of a robot with n joints, measured by :func:`run`."""

    robot: RobotModel
    methods: Sequence[str]
    poses: Array  # (k, 4, 4)
    seeds: Array  # (k, n)
    results: Any  # (m, k) array of RESULT
    batch: list[float | None]  # (m,) time for a batch of all poses [s]
    finished: int = 0  # number of poses for which the results of all methods are known

    @property
    def done(self) -> Any:
        """Results (m, finished) of the poses that all methods have solved."""
        return self.results[:, : self.finished]


def new_comparison(
    robot: RobotModel, methods: Sequence[str], samples: int, seed: int
) -> MethodComparison:
    """Return a comparison of methods for random reachable poses, still without results.

    Args:
        robot: Robot.
        methods: Names of the methods.
        samples: Number of poses, each with a random start configuration.
        seed: Seed of the random numbers.
    """
    rng = np.random.default_rng(seed)
    poses = robot.fk(robot.random(samples, rng))
    results = np.zeros((len(methods), samples), RESULT)
    seeds = robot.random(samples, rng)
    return MethodComparison(robot, methods, poses, seeds, results, [None] * len(methods))


def run(
    found: MethodComparison, solvers: Sequence[IkSolver], progress: Callable[[int, int], None]
) -> None:
    """Solve each pose with all methods in alternation, then measure batches of all poses.

    Args:
        found: Comparison that receives the results.
        solvers: One solver per method.
        progress: Called with the number of finished solves and the number of all solves.
    """
    count, total = len(solvers), len(found.poses) * len(solvers)
    for solver in solvers:
        for i in (k % len(found.poses) for k in range(NUM_WARM_UP_SOLVES)):
            solver.solve(found.poses[i], found.seeds[i])
    for i in range(len(found.poses)):
        for turn in range(count):
            m = (i + turn) % count  # rotating order, because a method may slow down the next one
            _solve(found, m, i, solvers[m])
        found.finished = i + 1
        progress(found.finished * count, total)
    for m, solver in enumerate(solvers):
        found.batch[m] = _batch_time(found, solver)


def _solve(found: MethodComparison, m: int, i: int, solver: IkSolver) -> None:
    """Solve pose number i with the solver of method number m, and store the result in `found`."""
    begin = time.perf_counter()
    result = solver.solve(found.poses[i], found.seeds[i])
    duration = time.perf_counter() - begin
    inside = found.robot.within_limits(result.q, LIMIT_TOLERANCE)
    work = result.iterations, result.restarts, duration
    found.results[m, i] = (result.success, inside, *work)


def _batch_time(found: MethodComparison, solver: IkSolver) -> float:
    """Return the median time [s] in which a solver solves all poses as one batch."""
    times: list[float] = []
    while len(times) < MAX_BATCHES and sum(times) < MIN_BATCH_TIME:
        begin = time.perf_counter()
        solver.solve_batch(found.poses, found.seeds)
        times.append(time.perf_counter() - begin)
    return float(np.median(times))


def figures(found: MethodComparison, reference: str) -> list[dict[str, Any]]:
    """Return the statistics of each method as a dict for the table and for JSON; times in [s].

    The entry `faster` is the median time of the reference method divided by the method's median
    time.
    """
    medians = np.median(found.done["duration"], axis=1)
    base = medians[list(found.methods).index(reference)]
    return [
        {
            "method": name,
            "solved": results["success"].mean(),
            "inside_limits": results["inside"].mean(),
            "restarts": results["restarts"].mean(),
            "iterations": None if name.startswith("kdl") else results["iterations"].mean(),
            "median_time": median,
            "p95_time": np.percentile(results["duration"], 95.0),
            "batch_rate": None if batch is None else len(found.poses) / batch,
            "faster": base / median,
        }
        for name, results, median, batch in zip(
            found.methods, found.done, medians, found.batch, strict=True
        )
    ]


def _print_report(report: dict[str, Any]) -> None:
    """Print the statistics of all methods as a table."""
    console = stdout_console()
    poses = f"{report['finished']} random reachable poses, seed {report['seed']}"
    console.print(f"{report['robot']}: {poses}", style="bold", markup=False)
    print_method_table(console, HEADINGS, [_cells(row) for row in report["methods"]])
    print_note(
        console,
        "inside: answers within the joint limits; batch: poses per second, all poses at once on "
        f"{report['machine']['cores']} cores; faster: median time of {report['reference']} divided "
        "by that of the method",
    )


def _cells(row: dict[str, Any]) -> list[str]:
    """Return the table cells for the statistics of one method, see :func:`figures`."""
    rate, steps = row["batch_rate"], row["iterations"]
    return [
        row["method"],
        f"{100.0 * row['solved']:.1f} %",
        f"{100.0 * row['inside_limits']:.1f} %",
        f"{row['restarts']:.2f}",
        "-" if steps is None else f"{steps:.1f}",
        scaled(row["median_time"], "s", 3),
        scaled(row["p95_time"], "s", 3),
        "-" if rate is None else f"{rate:.0f}/s",
        f"{row['faster']:.2f}x",
    ]
