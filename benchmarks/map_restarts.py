"""How much of a reachability map few restarts find, beside 1000, and what they cost.

The same map with growing bounds on the restarts of a pose. What a bound misses it misses for good:
the index comes out too low by that much.
"""

import time

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
from dls_ik import RobotModel
from dls_ik.reachability import ReachabilityMap, reachability_map

BOUNDS = (0, 5, 10, 20, 30, 50, 100, 300)
MANY = 1000
COLUMNS = columns(
    "restarts :d; poses reached :d; missed [%] :.3f; mean index [%] :.2f; voxels reached :d; "
    "time of the map [s] :.1f; a pose [us] :.1f"
)


def row(found: ReachabilityMap, most: int, seconds: float) -> tuple[object, ...]:
    """One row; `most` is what 1000 restarts reach."""
    summary = found.summary()
    reached = summary["poses_reached"]
    return (
        found.settings.max_restarts,
        reached,
        100.0 * (1.0 - reached / most),
        100.0 * summary["mean_index"],
        summary["voxels_reached"],
        seconds,
        1e6 * seconds / summary["poses"],
    )


def timed(
    robot: RobotModel, resolution: float, orientations: int, restarts: int
) -> tuple[ReachabilityMap, float]:
    """The map, and how long it took on all cores [s]."""
    begin = time.perf_counter()
    found = reachability_map(robot, resolution, orientations, max_restarts=restarts)
    return found, time.perf_counter() - begin


def main() -> None:
    """Measure, and show."""
    options = parser(__doc__)
    options.add_argument("--robot", type=robot_from, default="wam", help="name or URDF file")
    options.add_argument("--resolution", type=float, default=0.25, help="edge of a voxel [m]")
    options.add_argument("--orientations", type=positive, default=24, help="of a voxel")
    given, before = options.parse_args(), machine()
    size = given.resolution, given.orientations
    timed(given.robot, given.resolution, 1, 0)  # loads the kernels
    best, seconds = timed(given.robot, *size, MANY)
    most = int(best.voxels.reached.sum())
    table = Table(f"{given.robot.name}, {best.settings.poses} poses", COLUMNS)
    for restarts in BOUNDS:
        found, took = timed(given.robot, *size, restarts)
        table.rows.append(row(found, most, took))
    table.rows.append(row(best, most, seconds))
    finish(given.json, before, [table])


if __name__ == "__main__":
    guarded(main)
