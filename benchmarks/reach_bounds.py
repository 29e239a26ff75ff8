"""Share of the unsolved poses that is proved beyond reach, and the time of the proof.

Poses are turned in any way and lie in a box: that in which random configurations bring the tip, and
one half as large again. A pose counts as unreachable if no restart finds it.
"""

import time

import numpy as np

from benchmarks.common import Table, columns, finish, guarded, parser, positive, robot_from
from dls_ik import IkSolver, RobotModel
from dls_ik.core.reach_bounds import ReachBounds, rows_beyond_reach
from dls_ik.core.types import Array
from dls_ik.model.reach import build_reach

ROBOTS = ("wam", "puma560", "planar_2r")
TOLERANCE = 1e-6  # [m] and [rad], of the solver too
REPEATS = 5
COLUMNS = columns(
    "robot; box; bounds :d; set-up [ms] :.0f; not found :.3f; of these proved :.3f; found and "
    "refused :d; a reachable pose [ns] :.0f"
)


def asked(robot: RobotModel, rng: np.random.Generator, count: int, size: float) -> Array:
    """Return poses (count, 4, 4) in a box `size` times that of the tip."""
    seen = robot.fk(robot.random(rng, 20_000))[:, :3, 3]
    low, high = seen.min(0), seen.max(0)
    Q, upper = np.linalg.qr(rng.normal(size=(count, 3, 3)))
    Q *= np.sign(np.diagonal(upper, axis1=1, axis2=2))[:, None]
    Q[:, :, 0] *= np.linalg.det(Q)[:, None]
    T = np.tile(np.eye(4), (count, 1, 1))
    T[:, :3, :3] = Q
    T[:, :3, 3] = 0.5 * (low + high) + 0.5 * size * (high - low) * rng.uniform(-1, 1, (count, 3))
    return T


def beyond(reach: ReachBounds, Ts: Array) -> np.ndarray:
    """Return which of the poses are refused, (b,)."""
    out = np.zeros(len(Ts), np.bool_)
    rows_beyond_reach(reach, Ts, TOLERANCE, TOLERANCE, out)
    return out


def seconds_a_pose(robot: RobotModel, reach: ReachBounds, rng: np.random.Generator) -> float:
    """Time the poses that cost most: those of configurations, which pass every bound."""
    Ts = robot.fk(robot.random(rng, 20_000))
    beyond(reach, Ts)
    times = []
    for _ in range(REPEATS):
        start = time.thread_time()
        beyond(reach, Ts)
        times.append(time.thread_time() - start)
    return min(times) / len(Ts)


def main() -> None:
    """Measure and show."""
    options = parser(__doc__)
    options.add_argument("robots", nargs="*", help="names of shipped robots, or URDF files")
    options.add_argument("--poses", type=positive, default=1000)
    options.add_argument("--restarts", type=positive, default=300)
    given = options.parse_args()
    table = Table("Poses proved beyond reach", COLUMNS)
    for name in given.robots or ROBOTS:
        robot, rng = robot_from(name), np.random.default_rng(1)
        start = time.thread_time()
        reach = build_reach(robot.chain)
        set_up = 1e3 * (time.thread_time() - start)
        solver = IkSolver(robot, max_restarts=given.restarts)
        for size in (1.0, 1.5):
            Ts = asked(robot, rng, given.poses, size)
            found, refused = solver.solve_batch(Ts).success, beyond(reach, Ts)
            share = refused[~found].mean() if not found.all() else None
            shares = (np.mean(~found), share, int((found & refused).sum()))
            nanoseconds = 1e9 * seconds_a_pose(robot, reach, rng)
            row = [robot.name, f"x{size}", len(reach.kind), set_up, *shares, nanoseconds]
            table.rows.append(row)
    finish(given, [table])


if __name__ == "__main__":
    guarded(main)
