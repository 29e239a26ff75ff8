# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Comparison of methods: poses far, near, singular and at limits, and a stream.

The robot is the WAM; docs/lab/choosing.md describes cases and columns. A pose is solved within
1e-6 m, 1e-6 rad and the joint limits. Times are processor times of one thread in a batch, relative
to `auto` on the same poses. In the stream, `odls` limits the norm of the joint velocity to 2 rad/s.
The table of solutions shows `auto` on the far poses, with medians of the distance from the seed and
of sqrt(det(J J^T)).
"""

import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.common import Table, columns, finish, guarded, parser, spread
from benchmarks.tracking import ELBOW, Path, errors, paths, rms
from dls_ik import IkSolver, RobotModel, Stepper
from dls_ik.servo import Controller

METHODS = (
    "auto", "jp", "jd", "dls", "ed", "svf", "svf+ed", "sd", "svf+sd", "sdls+clamp", "jc+ed", "ctp",
    "ctp+sd+svf", "odls",
)  # fmt: skip
WISHES = ("speed", "distance", "manipulability")
CASES = ("far", "near", "singular", "at limits")
STREAMED = columns(
    "method; bare: fastest joint [rad/s] :.3g; largest error [mm] :.3g; rms [mm] :.3g; "
    "controller: largest error [mm] :.3g; controller: rms [mm] :.3g"
)
WISHED = columns(
    "solve_type; solved [%] :.1f; from the seed [rad] :.2f; manipulability :.4f; a pose [us] :.0f"
)
BLOCKS = 3
NEAR, TOUCH = 0.2, 0.003  # [rad] distance of seeds to solutions, and of solutions to a singularity
SPEED, RATE = 0.1, 100.0  # [m/s], [Hz]
BOUND = {"odls": {"Delta": 2.0 / RATE}}  # [rad] options of methods that bound the step


def configurations(robot: RobotModel, case: str, count: int, rng: np.random.Generator) -> Any:
    """Return joint positions (count, n) of poses, and seeds (count, n)."""
    q = robot.random(count, rng)
    if case == "far":
        return q, robot.random(count, rng)
    if case == "singular":
        half = count // 2
        q[:half, 3] = ELBOW + TOUCH * rng.normal(size=half)
        q[half:, 5] = TOUCH * rng.normal(size=count - half)
    if case == "at limits":
        ends = np.where(rng.random(q.shape) < 0.5, robot.lower, robot.upper)
        q = np.where(rng.random(q.shape) < 0.5, ends, q)
    return q, robot.clip(q + NEAR * rng.normal(size=q.shape))


def solved(
    robot: RobotModel, case: str, names: Sequence[str], samples: int, seed: int
) -> tuple[Any, Any]:
    """Return the solved shares [%] and times per pose [s], (BLOCKS,) each, by method."""
    rng = np.random.default_rng([seed, CASES.index(case)])
    solvers = {name: IkSolver(robot, name) for name in names}
    shares, times = {name: [] for name in names}, {name: [] for name in names}
    for _ in range(1 + BLOCKS):
        q, seeds = configurations(robot, case, -(-samples // BLOCKS), rng)
        Ts = robot.fk(q)
        for name, solver in solvers.items():
            begin = time.process_time()
            success = solver.solve_batch(Ts, seeds, threads=1).success
            times[name].append((time.process_time() - begin) / len(Ts))
            shares[name].append(100.0 * float(np.mean(success)))
    for found in (shares, times):
        for values in found.values():
            del values[0]  # the first call loads kernels
    return shares, times


def bare(path: Path, name: str) -> list[float]:
    """Make one step per target; return the maximum joint speed [rad/s] and the errors in lap 2.

    The errors are the maximum and the rms position error [mm].
    """
    robot, Ts = RobotModel.wam(), targets(path)
    stepper = Stepper(robot, name, path.start(), **BOUND.get(name, {}))
    q = stepper.run(Ts, len(Ts)).q
    asked = RATE * float(np.abs(np.diff(q[len(Ts) // 2 :], axis=0)).max())
    return [asked, *judged(robot, q[1:], Ts)]


def controlled(path: Path, name: str) -> list[float]:
    """Follow with the controller; return the maximum and rms error [mm] of the second lap."""
    robot, Ts = RobotModel.wam(), targets(path)
    controller = Controller(robot, name)
    controller.seed(path.start())
    qs = []
    for k, T in enumerate(Ts):
        controller.follow_pose(T, k / RATE)
        qs.append(controller.cycle(k / RATE, 1.0 / RATE).q)
    return judged(robot, np.array(qs), Ts)


def targets(path: Path) -> np.ndarray:
    """Return the targets (t, 4, 4) of two laps."""
    turn = SPEED / path.length / RATE  # [rad] angle between successive targets
    return np.array([path.pose(turn * k) for k in range(round(4.0 * math.pi / turn))])


def judged(robot: RobotModel, q: np.ndarray, Ts: np.ndarray) -> list[float]:
    """Return the maximum and the rms position error [mm] of the second lap."""
    half = len(Ts) // 2
    velocity = np.ones((len(Ts) - half, 3))  # unused, as the lag is not evaluated
    position, _, _ = errors(robot.fk(q[half:]), Ts[half:], velocity)
    return [1e3 * float(position.max()), 1e3 * rms(position)]


def wished(samples: int, seed: int) -> list[list[Any]]:
    """Return a row for each solve_type: solved [%], distance [rad], manipulability, time [us]."""
    robot, rows = RobotModel.wam(), []
    q, seeds = configurations(robot, "far", samples, np.random.default_rng([seed, len(CASES)]))
    Ts = robot.fk(q)
    for wish in WISHES:
        solver = IkSolver(robot, solve_type=wish)
        solver.solve_batch(Ts[:1], seeds[:1], threads=1)  # loads its kernels
        begin = time.process_time()
        found = solver.solve_batch(Ts, seeds, threads=1)
        duration = 1e6 * (time.process_time() - begin) / len(Ts)
        J = robot.jacobian(found.q)
        w = np.sqrt(np.linalg.det(J @ J.transpose(0, 2, 1)))
        far = np.linalg.norm(found.q - seeds, axis=1)
        share = 100.0 * float(np.mean(found.success))
        rows.append([wish, share, float(np.median(far)), float(np.median(w)), duration])
    return rows


def tables(names: Sequence[str], samples: int, seed: int) -> list[Table]:
    """Return all tables."""
    robot, path = RobotModel.wam(), paths()["wrist"]
    found = {case: solved(robot, case, names, samples, seed) for case in CASES}
    solved_by_case = columns("; ".join(["method", *(f"{case} :.1f" for case in CASES)]))
    shares = Table("solved, inside the limits [%]", solved_by_case)
    times = Table("time, as a multiple of auto's", columns("; ".join(["method", *CASES])))
    streamed = Table("streamed through a folded wrist", STREAMED)
    for name in names:
        shares.rows.append([name, *(float(np.mean(found[case][0][name])) for case in CASES)])
        ratios = (np.divide(found[c][1][name], found[c][1]["auto"]) for c in CASES)
        times.rows.append([name, *map(spread, ratios)])
        streamed.rows.append([name, *bare(path, name), *controlled(path, name)])
    return [shares, times, Table("which solution, far", WISHED, wished(samples, seed)), streamed]


def main() -> None:
    """Measure, and print the tables."""
    options = parser(__doc__, samples=600, seed=0)
    options.add_argument("--methods", nargs="+", default=METHODS, help="beside auto")
    given = options.parse_args()
    names = tuple(dict.fromkeys((METHODS[0], *given.methods)))
    finish(given, tables(names, given.samples, given.seed))


if __name__ == "__main__":
    guarded(main)
