"""Cost of a pose against joints, tolerance and threads.

Random reachable poses from random joint values, solved by `auto` in batches; cases take turns,
block after block. Chains are generated: 1 m long, axes at right angles in turns, joints within
2 rad. Joints and tolerances are measured in processor time of one thread; the time of an iteration
is that of a pose divided by its iterations. Threads are measured by the clock.
"""

import math
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks.common import (
    Column,
    Table,
    add_plot,
    columns,
    finish,
    guarded,
    parser,
    positive,
    spread,
    thread_counts,
)
from dls_ik import IkSolver, RobotModel
from dls_ik.plot import save_picture
from dls_ik.plot.canvas import BLUE, GREY, ORANGE, heading, new_figure, panel_title, plain

JOINTS = (6, 7, 8, 10, 12, 16, 20, 25, 30, 40, 50, 60)
TOLERANCES = tuple(10.0**-k for k in range(3, 11))  # [m], [rad]
LENGTH, LIMIT = 1.0, 2.0  # [m] of a chain, [rad] of a joint
COSTS = columns(
    "solved [%] :.2f; iterations a pose :.1f; iteration [us] :.3f; pose [us] :.1f; pose, as a "
    "multiple of the first row's"
)
RATES = columns("threads :.0f; poses a second :.0f; as a multiple of one thread")


class Case(NamedTuple):
    """A solver, and the value that varies."""

    value: float  # joints, tolerance, or threads
    solver: IkSolver
    threads: int = 1


def chain(n: int) -> RobotModel:
    """Return a chain of n joints with axes at right angles in turns."""
    limits = {"lower": -LIMIT, "upper": LIMIT}
    turns = (math.pi / 2, -math.pi / 2)
    rows = [{"a": LENGTH / n, "alpha": turns[i % 2], **limits} for i in range(n)]
    return RobotModel.from_dh(rows, name=f"chain{n}")


def measured(cases: Sequence[Case], samples: int, given: Any) -> np.ndarray:
    """Return solved [%], iterations, processor time and clock time [us]: (cases, repeats, 4)."""
    found = np.empty((len(cases), 1 + given.repeats, 4))
    for repeat in range(1 + given.repeats):
        for i, case in enumerate(cases):
            robot = case.solver.robot
            rng = np.random.default_rng((given.seed, repeat))  # the same robot gets the same poses
            Ts, seeds = robot.fk(robot.random(rng, samples)), robot.random(rng, samples)
            used, begin = time.process_time(), time.perf_counter()
            result = case.solver.solve_batch(Ts, seeds, threads=case.threads)
            times = time.process_time() - used, time.perf_counter() - begin
            costs = 1e6 * np.array(times) / samples
            found[i, repeat] = 100 * result.success.mean(), result.iterations.mean(), *costs
    return found[:, 1:]  # the first block loads kernels


def cost_table(title: str, first: Column, cases: Sequence[Case], found: np.ndarray) -> Table:
    """Return medians of the processor time over the blocks."""
    table = Table(title, [first, *COSTS])
    for case, (solved, iterations, used, _) in zip(cases, np.swapaxes(found, 1, 2), strict=True):
        step, pose = np.median(used / iterations), np.median(used)
        ratio = spread(used / found[0, :, 2])
        table.rows.append((case.value, solved.mean(), iterations.mean(), step, pose, ratio))
    return table


def picture(tables: Sequence[Table]) -> Any:
    """Draw the tables by joints, by tolerance and by threads."""
    figure = new_figure(13.0, 4.6)
    *costs, threads = figure.subplots(1, 3)
    for axes, table, label in zip(costs, tables, ("joints", "tolerance [m], [rad]"), strict=False):
        values = [row[0] for row in table.rows]
        for column, color, name in ((4, BLUE, "a pose"), (3, ORANGE, "an iteration")):
            axes.loglog(values, [row[column] for row in table.rows], "o-", color=color, label=name)
        axes.set(xlabel=label, ylabel="processor time [us]")
    costs[1].invert_xaxis()
    counts, rates = zip(*((row[0], row[1] / 1e3) for row in tables[2].rows), strict=True)
    threads.plot(counts, [rates[0] * k for k in counts], "--", color=GREY, label="in proportion")
    threads.plot(counts, rates, "o-", color=BLUE, label="measured")
    threads.set(xlabel="threads", ylabel="thousand poses a second", xticks=counts, ylim=(0, None))
    for axes, table in zip((*costs, threads), tables, strict=True):
        panel_title(axes, table.title.replace(", ", ",\n", 1))
        axes.legend(frameon=False)
        plain(axes)
    heading(figure, "Cost of a pose")
    return figure


def main() -> None:
    """Measure and show."""
    options = parser(__doc__, robot="wam", samples=500, repeats=10, seed=0)
    options.add_argument("--joints", type=positive, nargs="+", default=JOINTS, help="of the chains")
    options.add_argument("--batch", type=positive, default=20_000, help="poses for the threads")
    add_plot(options, "the three tables")
    given = options.parse_args()
    robot, size = given.robot, f"{given.repeats} blocks of {given.samples} poses"
    chains = [Case(n, IkSolver(chain(n))) for n in given.joints]
    tolerances = [
        Case(x, IkSolver(robot, position_tolerance=x, rotation_tolerance=x)) for x in TOLERANCES
    ]
    threads = [Case(k, IkSolver(robot), k) for k in thread_counts()]
    by_joints, by_tolerance = (
        measured(each, given.samples, given) for each in (chains, tolerances)
    )
    clock = measured(threads, given.batch, given)[:, :, 3]
    rates = Table(f"{robot.name}, {given.repeats} batches of {given.batch} poses", RATES)
    for case, times in zip(threads, clock, strict=True):
        rates.rows.append((case.value, 1e6 / np.median(times), spread(clock[0] / times)))
    title = f"Chains of n joints, 1e-6 m and rad, {size}"
    tables = [
        cost_table(title, Column("joints", ".0f"), chains, by_joints),
        cost_table(f"{robot.name}, {size}", Column("tolerance", ".0e"), tolerances, by_tolerance),
        rates,
    ]
    finish(given, tables)
    if given.plot:
        save_picture(given.plot, picture(tables))


if __name__ == "__main__":
    guarded(main)
