# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Simultaneous solutions for two tips: share of poses reached by each method, and time.

Poses and seeds come from joint positions uniform within the limits, or within a turn for joints
without limits. Published methods with a single attempt are restarted until the timeout. Times are
wall-clock times of one thread.
"""

from typing import Any

import numpy as np

from benchmarks.common import Table, columns, finish, guarded, parser
from dls_ik import IkSolver, RobotModel
from dls_ik.errors import MethodError
from dls_ik.model.files import share_file

ROBOTS = {"y_shape": ("E0", "E1"), "two_wams": ("left_wam_tip", "right_wam_tip")}
METHODS = ("auto", "jc+ed", "ctp+sd+svf", "tp", "svf+sd", "sdls+clamp", "dls")
COLUMNS = columns("robot; joints :d; method; reached [%] :.1f; median [ms] :.2f; 99 % [ms] :.1f")


def row(robot: RobotModel, method: str, samples: int, timeout: float, seed: int) -> list[Any]:
    """Return the results of one method for one robot; None if the method is not applicable."""
    rng = np.random.default_rng(seed)
    Ts, seeds = robot.fk(robot.random(samples, rng)), robot.random(samples, rng)
    start = [robot.name, robot.n, method]
    try:
        solver = IkSolver(robot, method, timeout=timeout, max_restarts=None)
    except MethodError:
        return [*start, None, None, None]
    solver.solve(Ts[0], seeds[0])  # compiles
    results = [solver.solve(T, seed) for T, seed in zip(Ts, seeds, strict=True)]
    times = [1e3 * result.duration for result in results]
    reached = 100.0 * np.mean([result.success for result in results])
    return [*start, float(reached), float(np.median(times)), float(np.percentile(times, 99))]


def main() -> None:
    """Measure, and show."""
    options = parser(__doc__, samples=500, seed=0)
    options.add_argument("--methods", nargs="*", default=METHODS)
    options.add_argument("--timeout", type=float, default=0.05, help="for each pose [s]")
    given = options.parse_args()
    table = Table(f"{given.samples} poses of two tips, timeout {given.timeout:g} s", COLUMNS)
    for name, tips in ROBOTS.items():
        robot = RobotModel.from_urdf(share_file("urdf", f"{name}.urdf"), tip=tips)
        for method in given.methods:
            table.rows.append(row(robot, method, given.samples, given.timeout, given.seed))
    finish(given, [table])


if __name__ == "__main__":
    guarded(main)
