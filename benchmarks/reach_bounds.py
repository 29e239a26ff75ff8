# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Share of the poses out of reach that the solver proves to be so.

Poses are turned in any way and lie in the box in which random configurations bring the tip. A pose
counts as unreachable if no restart finds it, and as proved if the status of the answer says so.
"""

import numpy as np

from benchmarks.common import Table, columns, finish, guarded, parser, positive, robot_from
from dls_ik import IkSolver, RobotModel, Status
from dls_ik.core.types import Array

ROBOTS = ("wam", "puma560", "planar_2r")
COLUMNS = columns("robot; not found [%] :.1f; of these proved [%] :.1f")


def poses_in_box(robot: RobotModel, rng: np.random.Generator, count: int) -> Array:
    """Return poses (count, 4, 4) with uniform rotations in the box of the tip."""
    seen = robot.fk(robot.random(20_000, rng))[:, :3, 3]
    Q, upper = np.linalg.qr(rng.normal(size=(count, 3, 3)))
    Q *= np.sign(np.diagonal(upper, axis1=1, axis2=2))[:, None]
    Q[:, :, 0] *= np.linalg.det(Q)[:, None]
    T = np.tile(np.eye(4), (count, 1, 1))
    T[:, :3, :3] = Q
    T[:, :3, 3] = rng.uniform(seen.min(0), seen.max(0), (count, 3))
    return T


def main() -> None:
    """Measure and show."""
    options = parser(__doc__, samples=1000, seed=1)
    options.add_argument("robots", nargs="*", default=ROBOTS, help="shipped robots, or URDF files")
    options.add_argument("--restarts", type=positive, default=300)
    given = options.parse_args()
    table = Table(f"{given.samples} poses, {given.restarts} restarts", COLUMNS)
    for robot in map(robot_from, given.robots):
        Ts = poses_in_box(robot, np.random.default_rng(given.seed), given.samples)
        found = IkSolver(robot, max_restarts=given.restarts).solve_batch(Ts)
        missed = found.status[~found.success]
        proved = 100.0 * np.mean(missed == Status.UNREACHABLE) if len(missed) else None
        table.rows.append([robot.name, 100.0 * np.mean(~found.success), proved])
    finish(given, [table])


if __name__ == "__main__":
    guarded(main)
