"""The nearest of all solutions: how often solve_type "distance" finds it, and how long it takes.

Poses and seeds are of joint values uniform within the limits; in a second table the seed is the
pose's own configuration moved by 0.5 rad or m in each joint (one sigma), as when an arm goes on.
What counts as the nearest is the best of 1000 attempts from anywhere. Times are of one thread, by
the processor.
"""

import time
from typing import Any

import numpy as np

from benchmarks.common import (
    Table,
    columns,
    finish,
    guarded,
    machine,
    parser,
    positive,
    robot_from,
)
from dls_ik import IkSolver, RobotModel

REFERENCE = 1000  # attempts
SHARE = 1.02  # of the reference's distance that counts as found
NEAR = 0.5  # [rad or m]
COLUMNS = columns(
    "robot; joints :d; solved [%] :.2f; within 2 % [%] :.2f; first found within 2 % [%] :.1f; "
    "first found, mean ratio :.2f; mean [us] :.0f; 99 % [us] :.0f"
)


def seeds_for(robot: RobotModel, q: np.ndarray, rng: np.random.Generator, near: bool) -> np.ndarray:
    """(b, n) anywhere, or near the configurations that poses are of."""
    if not near:
        return robot.random(rng, len(q))
    return robot.clip(q + rng.normal(0.0, NEAR, q.shape))


def row(robot: RobotModel, samples: int, rng: np.random.Generator, near: bool) -> list[Any]:
    """The figures of one robot."""
    q = robot.random(rng, samples)
    Ts, seeds = robot.fk(q), seeds_for(robot, q, rng, near)
    often = IkSolver(robot, solve_type="distance", num_candidates=REFERENCE, starts="random")
    solver, first = IkSolver(robot, solve_type="distance"), IkSolver(robot)
    best = np.linalg.norm(often.solve_batch(Ts, seeds).q - seeds, axis=1)
    found = np.linalg.norm(first.solve_batch(Ts, seeds).q - seeds, axis=1)
    times, distances, solved = [], [], []
    for T, seed in zip(Ts, seeds, strict=True):
        begin = time.thread_time()
        result = solver.solve(T, seed, timeout=10.0)
        times.append(1e6 * (time.thread_time() - begin))
        distances.append(np.linalg.norm(result.q - seed))
        solved.append(result.success)
    shares = [100.0 * np.mean(d <= SHARE * best + 1e-6) for d in (np.array(distances), found)]
    ratio = np.mean(found / np.maximum(best, 1e-9))
    figures = [100.0 * np.mean(solved), *shares, ratio, np.mean(times), np.percentile(times, 99)]
    return [robot.name, robot.n, *map(float, figures)]


def main() -> None:
    """Measure, and show."""
    options = parser(__doc__)
    options.add_argument(
        "robots", nargs="*", type=robot_from, default=[RobotModel.wam()],
        help="names or URDF files",
    )  # fmt: skip
    options.add_argument("--samples", type=positive, default=1000, help="poses of each")
    options.add_argument("--seed", type=int, default=0, help="of the random poses and seeds")
    given, before = options.parse_args(), machine()
    tables = []
    for near, where in ((False, "anywhere"), (True, f"{NEAR} rad or m away")):
        rng = np.random.default_rng(given.seed)
        table = Table(f"{given.samples} poses, seeds {where}", COLUMNS)
        table.rows.extend(row(robot, given.samples, rng, near) for robot in given.robots)
        tables.append(table)
    finish(given.json, before, tables)


if __name__ == "__main__":
    guarded(main)
