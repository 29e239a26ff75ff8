# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Closest of all solutions: share of poses for which solve_type "distance" finds it, and time.

Poses and seeds are of joint values uniform within the limits; in a second table the seed is the
pose's own configuration moved by 0.5 rad or m in each joint (one sigma). The reference is the best
of 1000 attempts from random starts. Times are processor times of one thread.
"""

import time
from typing import Any

import numpy as np

from benchmarks.common import Table, columns, finish, guarded, parser, robot_from
from dls_ik import IkSolver, RobotModel

REFERENCE = 1000  # attempts
SHARE = 1.02  # maximum distance relative to the reference that counts as found
NEAR = 0.5  # [rad or m]
COLUMNS = columns(
    "robot; joints :d; solved [%] :.2f; within 2 % [%] :.2f; first found within 2 % [%] :.1f; "
    "first found, mean ratio :.2f; mean [us] :.0f; 99 % [us] :.0f"
)


def row(robot: RobotModel, samples: int, rng: np.random.Generator, near: bool) -> list[Any]:
    """Return the figures of one robot."""
    q = robot.random(samples, rng)
    Ts = robot.fk(q)
    seeds = robot.clip(q + rng.normal(0.0, NEAR, q.shape)) if near else robot.random(samples, rng)
    many = IkSolver(robot, solve_type="distance", num_candidates=REFERENCE, starts="random")
    solver, first = IkSolver(robot, solve_type="distance"), IkSolver(robot)
    best = np.linalg.norm(many.solve_batch(Ts, seeds).q - seeds, axis=1)
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
    """Measure and show."""
    options = parser(__doc__, samples=1000, seed=0)
    wam = [RobotModel.wam()]
    options.add_argument("robots", nargs="*", type=robot_from, default=wam, help="names or files")
    given = options.parse_args()
    tables = []
    for near, where in ((False, "anywhere"), (True, f"{NEAR} rad or m away")):
        rng = np.random.default_rng(given.seed)
        rows = [row(robot, given.samples, rng, near) for robot in given.robots]
        tables.append(Table(f"{given.samples} poses, seeds {where}", COLUMNS, rows))
    finish(given, tables)


if __name__ == "__main__":
    guarded(main)
