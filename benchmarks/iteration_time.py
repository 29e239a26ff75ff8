"""Time of one iteration of every method, on one thread.

Each method takes the same random reachable poses from the same random joint values, in the kernel
that a thread of a batch runs; the processor time of the thread is divided by the steps, which share
the cost of an attempt. Methods take turns, block after block; ratios are to `jd` on the same block.
"""

import time

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
from dls_ik import IkSolver, RobotModel, method_names
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


def main() -> None:
    """Measure and show."""
    given = parser(__doc__, robot="wam", samples=100, repeats=30, seed=0).parse_args()
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
    finish(given, [table])


if __name__ == "__main__":
    guarded(main)
