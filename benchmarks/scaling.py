"""How the cost of a pose grows: with joints, with the tolerance, with threads.

Random reachable poses from random joint values, solved by `auto` in batches. Joints: generated
chains of 1 m, axes at right angles in turns, each joint within 2 rad. What is compared takes turns,
block after block. Joints and tolerances are measured in processor time on one thread, so that what
else runs takes part only by the caches; the time of an iteration is that of a pose divided by the
iterations of its attempts. Threads are measured by the clock.
"""

import math
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks.common import (
    Column,
    Table,
    columns,
    finish,
    guarded,
    machine,
    parser,
    positive,
    robot_from,
    spread,
    thread_counts,
)
from benchmarks.pictures import add_plot
from benchmarks.scaling_plot import draw
from dls_ik import IkSolver, RobotModel

JOINTS = (6, 7, 8, 10, 12, 16, 20, 25, 30, 40, 50, 60)
TOLERANCES = tuple(10.0**-k for k in range(3, 11))  # [m], [rad]
LENGTH, LIMIT = 1.0, 2.0  # [m] of a chain, [rad] of a joint
COSTS = columns(
    "solved [%] :.2f; iterations a pose :.1f; iteration [us] :.3f; pose [us] :.1f; pose, as a "
    "multiple of the first row's"
)


class Case(NamedTuple):
    """A solver, and how the table calls it."""

    value: float  # joints, or a tolerance
    solver: IkSolver
    threads: int = 1


def chain(n: int) -> RobotModel:
    """A chain of n joints whose axes are at right angles in turns."""
    limits = {"lower": -LIMIT, "upper": LIMIT}
    turns = (math.pi / 2, -math.pi / 2)
    rows = [{"a": LENGTH / n, "alpha": turns[i % 2], **limits} for i in range(n)]
    return RobotModel.from_dh(rows, name=f"chain{n}")


def measured(cases: Sequence[Case], repeats: int, samples: int, seed: int) -> np.ndarray:
    """(cases, repeats, 4): solved [%], iterations, processor time and time of the clock [us]."""
    found = np.empty((len(cases), repeats, 4))
    for repeat in range(-1, repeats):  # the first loads
        for i, case in enumerate(cases):
            robot = case.solver.robot
            rng = np.random.default_rng((seed, 1 + repeat))  # the same robot gets the same poses
            Ts, seeds = robot.fk(robot.random(rng, samples)), robot.random(rng, samples)
            used, begin = time.process_time(), time.perf_counter()
            result = case.solver.solve_batch(Ts, seeds, threads=case.threads)
            times = time.process_time() - used, time.perf_counter() - begin
            costs = 1e6 * np.array(times) / samples
            if repeat >= 0:
                found[i, repeat] = 100 * result.success.mean(), result.iterations.mean(), *costs
    return found


def cost_table(title: str, first: Column, cases: Sequence[Case], found: np.ndarray) -> Table:
    """Medians over the blocks, of processor time."""
    table = Table(title, [first, *COSTS])
    for case, (solved, iterations, used, _) in zip(cases, np.swapaxes(found, 1, 2), strict=True):
        step, pose = np.median(used / iterations), np.median(used)
        ratio = spread(used / found[0, :, 2])
        table.rows.append((case.value, solved.mean(), iterations.mean(), step, pose, ratio))
    return table


def thread_table(title: str, cases: Sequence[Case], found: np.ndarray) -> Table:
    """Poses in a second, and their ratio to one thread."""
    headings = columns("threads :.0f; poses a second :.0f")
    table = Table(title, [*headings, Column("as a multiple of one thread")])
    clock = found[:, :, 3]
    for case, times in zip(cases, clock, strict=True):
        table.rows.append((case.value, 1e6 / np.median(times), spread(clock[0] / times)))
    return table


def options() -> Any:
    """What the command takes."""
    result = parser(__doc__)
    result.add_argument("--robot", type=robot_from, default="wam", help="of tolerances and threads")
    result.add_argument("--joints", type=positive, nargs="+", default=JOINTS, help="of the chains")
    result.add_argument("--repeats", type=positive, default=10, help="blocks of poses")
    result.add_argument("--samples", type=positive, default=500, help="poses in a block")
    result.add_argument("--batch", type=positive, default=20_000, help="poses for the threads")
    result.add_argument("--seed", type=int, default=0, help="of the random poses and seeds")
    add_plot(result, "the three tables")
    return result.parse_args()


def main() -> None:
    """Measure, and show."""
    given, before = options(), machine()
    robot = given.robot
    chains = [Case(n, IkSolver(chain(n))) for n in given.joints]
    tolerances = [
        Case(x, IkSolver(robot, position_tolerance=x, rotation_tolerance=x)) for x in TOLERANCES
    ]
    threads = [Case(k, IkSolver(robot), k) for k in thread_counts()]
    by_joints = measured(chains, given.repeats, given.samples, given.seed)
    by_tolerance = measured(tolerances, given.repeats, given.samples, given.seed)
    by_threads = measured(threads, given.repeats, given.batch, given.seed)
    size = f"{given.repeats} blocks of {given.samples} poses"
    joint_title = f"Chains of n joints, 1e-6 m and rad, {size}"
    whole = f"{robot.name}, {given.repeats} batches of {given.batch} poses"
    tables = [
        cost_table(joint_title, Column("joints", ".0f"), chains, by_joints),
        cost_table(f"{robot.name}, {size}", Column("tolerance", ".0e"), tolerances, by_tolerance),
        thread_table(whole, threads, by_threads),
    ]
    finish(given.json, before, tables)
    if given.plot:
        draw(given.plot, tables, before)


if __name__ == "__main__":
    guarded(main)
