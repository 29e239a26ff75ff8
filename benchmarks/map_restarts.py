"""Share of a reachability map that few restarts find, beside 1000, and the time.

The same map with growing bounds on the restarts of a pose. The poses that a bound misses lower the
index.
"""

import time
from typing import Any

from benchmarks.common import Table, columns, finish, guarded, parser, positive
from dls_ik.reachability import reachability_map

BOUNDS = (0, 5, 10, 20, 30, 50, 100, 300, 1000)
COLUMNS = columns(
    "restarts :d; poses reached :d; missed [%] :.3f; mean index [%] :.2f; voxels reached :d; "
    "time of the map [s] :.1f; a pose [us] :.1f"
)


def timed(given: Any, orientations: int, restarts: int) -> tuple[dict[str, Any], float]:
    """Return the summary of the map, and its time on all cores [s]."""
    begin = time.perf_counter()
    found = reachability_map(given.robot, given.resolution, orientations, max_restarts=restarts)
    return found.summary(), time.perf_counter() - begin


def main() -> None:
    """Measure and show."""
    options = parser(__doc__, robot="wam")
    options.add_argument("--resolution", type=float, default=0.25, help="edge of a voxel [m]")
    options.add_argument("--orientations", type=positive, default=24, help="of a voxel")
    given = options.parse_args()
    timed(given, 1, 0)  # loads the kernels
    found = {restarts: timed(given, given.orientations, restarts) for restarts in BOUNDS}
    best = found[BOUNDS[-1]][0]
    table = Table(f"{best['robot']}, {best['poses']} poses", COLUMNS)
    for restarts, (summary, seconds) in found.items():
        reached, voxels = summary["poses_reached"], summary["voxels_reached"]
        missed = 100.0 * (1.0 - reached / best["poses_reached"])
        index, pose = 100.0 * summary["mean_index"], 1e6 * seconds / summary["poses"]
        table.rows.append((restarts, reached, missed, index, voxels, seconds, pose))
    finish(given, [table])


if __name__ == "__main__":
    guarded(main)
