# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Position before orientation for an arm of five joints: time of a call of RobotKinematics.

Each pose is a few millimetres and hundredths of a radian from the current pose, like the next pose
of a teleoperation, and not exactly reachable. Times are processor times of one thread. The error is
the root of the weighted sum of squares; the minimum is computed by SciPy from the same joint
positions.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import least_squares
from scipy.spatial.transform import Rotation

from benchmarks.common import Table, columns, finish, guarded, parser
from dls_ik import RobotKinematics

ARM = Path(__file__).parents[1] / "examples" / "robots" / "desktop_arm.urdf"
COLUMNS = columns(
    "orientation_weight :g; a call [us] :.0f; 95 % of calls [us] :.0f; forward [us] :.1f; "
    "error over the least, median :.6f; 95 % :.6f"
)
WEIGHTS = (0.0, 0.01, 1.0)
PLACE, TURN = 0.005, 0.05  # [m], [rad] from the arm to its next pose
ENOUGH = 1e-5  # errors below count as this


def cases(kinematics: RobotKinematics, samples: int, seed: int) -> list[tuple[Any, Any]]:
    """Return joint positions [deg], gripper included, and the next pose of each."""
    rng, robot = np.random.default_rng(seed), kinematics.robot
    found = []
    for q in 0.8 * robot.random(samples, rng):
        T = robot.fk(q)
        T[:3, :3] = Rotation.from_rotvec(TURN * rng.normal(size=3)).as_matrix() @ T[:3, :3]
        T[:3, 3] += PLACE * rng.normal(size=3)
        found.append((np.append(np.degrees(q), 0.0), T))
    return found


def timed(call: Callable[..., Any], given: Sequence[tuple[Any, ...]]) -> tuple[list[Any], Any]:
    """Return the results of successive calls, and their processor times [us]."""
    results, times = [], np.empty(len(given))
    for i, arguments in enumerate(given):
        begin = time.thread_time()
        results.append(call(*arguments))
        times[i] = 1e6 * (time.thread_time() - begin)
    return results, times


def row_of(kinematics: RobotKinematics, weight: float, samples: int, seed: int) -> list[float]:
    """Return the values of a row."""
    robot, weights = kinematics.robot, np.sqrt(np.repeat([1.0, weight], 3))
    given = cases(kinematics, samples, seed)
    calls = [(start, T, 1.0, weight) for start, T in given]
    found, times = timed(kinematics.inverse_kinematics, calls)
    _, forward = timed(kinematics.forward_kinematics, [(start,) for start, _ in given])

    def residuals(q: np.ndarray, T: np.ndarray) -> np.ndarray:
        F = robot.fk(q)
        turn = Rotation.from_matrix(T[:3, :3] @ F[:3, :3].T).as_rotvec()
        return np.concatenate([F[:3, 3] - T[:3, 3], turn]) * weights

    excess = []
    for values, (start, T) in zip(found, given, strict=True):
        bounds, q = (robot.lower, robot.upper), np.radians(start[:-1])
        least = least_squares(residuals, q, args=(T,), bounds=bounds, xtol=1e-12)
        error = np.linalg.norm(residuals(np.radians(values[:-1]), T))
        excess.append(max(error, ENOUGH) / max(np.sqrt(2.0 * least.cost), ENOUGH))
    figures = [np.median(times), np.quantile(times, 0.95), np.median(forward)]
    return [weight, *figures, np.median(excess), np.quantile(excess, 0.95)]


def main() -> None:
    """Measure and show."""
    given = parser(__doc__, samples=200, seed=0).parse_args()
    kinematics = RobotKinematics(ARM)
    for weight in WEIGHTS:  # loads the kernels, and makes the searches
        row_of(kinematics, weight, 2, given.seed)
    table = Table("Position before orientation, five joints", COLUMNS)
    for weight in WEIGHTS:
        table.rows.append(row_of(kinematics, weight, given.samples, given.seed))
    finish(given, [table])


if __name__ == "__main__":
    guarded(main)
