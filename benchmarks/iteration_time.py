"""Time of one iteration of every method, on one thread.

Each method takes the same random reachable poses from the same random joint values, in the kernel
that a thread of a batch runs; the processor time of the thread is divided by the steps, which share
the cost of an attempt. Methods take turns, block after block; ratios are to `jd` on the same block.
"""

import time
from typing import Any

import numpy as np

from benchmarks.common import (
    Column,
    Table,
    finish,
    guarded,
    parser,
    quartiles,
    spread,
)
from benchmarks.pictures import add_plot
from dls_ik import IkSolver, RobotModel, method_names
from dls_ik.plot import save_picture
from dls_ik.plot.canvas import BLUE, ORANGE, heading, new_figure, plain
from dls_ik.solver.batch import RESTARTS
from dls_ik.solver.search import new_rows

REFERENCE = "jd"
COLUMNS = [
    Column("method"),
    Column("iterations a pose", ".1f"),
    Column("median [us]", ".3f"),
    Column("quartiles [us]"),
    Column(f"as a multiple of {REFERENCE}"),
]


def timed(solver: IkSolver, Ts: np.ndarray, seeds: np.ndarray) -> tuple[float, float]:
    """Return the iterations a pose, and the time of one [us]."""
    rows = new_rows(len(Ts), solver.robot.n, 0)
    attempts = 1 + (RESTARTS if solver.options.max_restarts is None else 0)
    begin = time.thread_time()
    solver.search.attempt(Ts[:, None], seeds, attempts, rows)
    duration = time.thread_time() - begin
    steps = int(rows.counts[:, 1].sum())
    return steps / len(Ts), 1e6 * duration / steps


def measured(
    robot: RobotModel, repeats: int, samples: int, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Return iterations a pose and the time of one [us] by method, (repeats, 2) each."""
    names = [name for name in method_names() if not name.startswith("kdl")]  # they do not count
    solvers = [IkSolver(robot, name) for name in names]
    bounds = robot.finite_limits()
    found: dict[str, list[tuple[float, float]]] = {solver.method: [] for solver in solvers}
    for _ in range(1 + repeats):
        Ts = robot.fk(rng.uniform(*bounds, (samples, robot.n)))
        seeds = rng.uniform(*bounds, (samples, robot.n))
        for solver in solvers:
            found[solver.method].append(timed(solver, Ts, seeds))
    return {name: np.array(values[1:]) for name, values in found.items()}  # the first loads


def picture(found: dict[str, np.ndarray], title: str) -> Any:
    """Draw a bar to the median of each method, and its quartiles as a line."""
    figure = new_figure(8.0, 1.2 + 0.24 * len(found))
    axes = figure.subplots()
    stated = np.array([quartiles(values[:, 1]) for values in found.values()])
    middle, low, high = stated.T
    places = range(len(found))
    axes.barh(places, middle, height=0.7, color=BLUE)
    axes.errorbar(middle, places, xerr=(middle - low, high - middle), fmt="none", color=ORANGE)
    axes.set_yticks(places, list(found), fontsize=8)
    axes.set_ylim(len(found) - 0.4, -0.6)
    axes.set_xlabel("time of one iteration [us]: median and quartiles", fontsize=9)
    plain(axes)
    heading(figure, title)
    return figure


def main() -> None:
    """Measure and show."""
    options = parser(__doc__, robot="wam", samples=100, repeats=30, seed=0)
    add_plot(options, "the times")
    given = options.parse_args()
    rng = np.random.default_rng(given.seed)
    found = measured(given.robot, given.repeats, given.samples, rng)
    title = f"{given.repeats} blocks of {given.samples} random poses of {given.robot.name}"
    table = Table(title, COLUMNS)
    reference = found[REFERENCE][:, 1]
    for name, values in found.items():
        iterations, times = values.T
        middle, low, high = quartiles(times)
        between = f"{low:.3f} to {high:.3f}"
        ratio = spread(times / reference)
        table.rows.append((name, iterations.mean(), middle, between, ratio))
    if given.plot:
        save_picture(given.plot, picture(found, title))
    finish(given, [table])


if __name__ == "__main__":
    guarded(main)
