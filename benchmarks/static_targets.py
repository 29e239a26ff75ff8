# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Random starts to random static targets: share reached by the controller, and time.

The arm is simulated, without a driver; the velocity limit of every joint is 2 rad/s. A target is
reached when the state is REACHED (1e-6 m, 1e-6 rad) and the arm is at rest. An attempt stops after
30 s; local motion alone (`when_stuck` "hold") also stops when no joint has moved by 1e-4 rad in two
seconds.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from benchmarks.common import Table, columns, finish, guarded, parser, positive
from benchmarks.servo_runs import CORES, VELOCITY, in_processes, joint_time, moving
from dls_ik import IkSolver
from dls_ik.servo import DEFAULT_METHOD, Controller, ServoState
from dls_ik.servo.options import HOLD, JOINT_MOTION

METHODS = (
    DEFAULT_METHOD, "ctp", "svf+sd", "svf", "sd", "auto", "jd", "odls",
)  # fmt: skip
ARMS = ("wam7", "ur10e", "fr3")
STILL, LOOK = 1e-4, 2.0  # an arm that moves less [rad or m] in this time [s] makes no progress
COLUMNS = columns(
    "robot; method; when stuck; reached [%] :.1f; median [s] :.2f; 95 % [s] :.2f; largest [s] "
    ":.2f; straight, median [s] :.2f; straight, 95 % [s] :.2f; joint motions :d"
)


class Case(NamedTuple):
    """Row of the table, and one of its targets."""

    robot: str
    method: str
    when_stuck: str
    acceleration: float
    rate: float  # [Hz]
    longest: float  # [s]
    seed: int
    target: int = 0


class Found(NamedTuple):
    """Result of one target."""

    time: float  # [s]; NaN: not reached
    straight: float  # [s]
    joint_motion: bool


@cache
def solvers(robot: str, method: str, when_stuck: str, acceleration: float) -> Any:
    """Return a controller and a solver for the closest solution, cached in each process."""
    arm, options = moving(robot), {"when_stuck": when_stuck, "acceleration": acceleration}
    return Controller(arm, method, **options), IkSolver(arm, solve_type="distance")


def run(case: Case) -> Found:
    """Follow the target of a case."""
    controller, nearest = solvers(*case[:4])
    robot, begin = controller.robot, case.target * 1e4
    rng = np.random.default_rng((case.seed, case.target))  # every method gets the same
    q, T = robot.random(rng=rng), robot.fk(robot.random(rng=rng))
    controller.reset()
    controller.seed(q)
    controller.follow_pose(T, begin)
    straight = joint_time(robot, nearest.solve(T, q, timeout=60.0).q - q, case.acceleration)
    return reach(controller, case, begin, straight)


def reach(controller: Controller, case: Case, begin: float, straight: float) -> Found:
    """Run cycles until the target is reached, the time is over, or the arm makes no progress."""
    dt, jumped, time = 1.0 / case.rate, False, np.nan
    anchor, since = controller.command, 0
    for i in range(1, int(case.longest * case.rate) + 1):
        out = controller.cycle(begin + i * dt, dt)
        jumped |= out.state is ServoState.JOINT_MOTION
        if out.state is ServoState.REACHED and not out.velocity.any():
            time = (i - 1) * dt  # the last cycle only saw that it stands
            break
        if np.abs(out.q - anchor).max() > STILL:
            anchor, since = out.q, i
        elif (i - since) * dt > LOOK and case.when_stuck == HOLD:
            break
    return Found(time, straight, jumped)


def row(case: Case, found: list[Found]) -> list[Any]:
    """Return the results of one method."""
    times = np.array([f.time for f in found])
    straight = np.array([f.straight for f in found])
    reached = np.isfinite(times)
    spread = np.percentile(times[reached], (50, 95, 100)) if reached.any() else [None] * 3
    motions = sum(f.joint_motion for f in found)
    name = "motion" if case.when_stuck == JOINT_MOTION else case.when_stuck
    share = 100.0 * reached.mean()
    return [
        moving(case.robot).name, case.method, name, share, *spread,
        *np.percentile(straight, (50, 95)), motions,
    ]  # fmt: skip


def measured(robot: str, method: str, stuck: str, given: Any) -> list[Any]:
    """Measure one row in several processes."""
    case = Case(robot, method, stuck, given.acceleration, given.rate, given.longest, given.seed)
    tasks = [case._replace(target=k) for k in range(given.targets)]
    return row(case, in_processes(run, tasks, given.processes, f"{robot} {method} {stuck}"))


def main() -> None:
    """Measure and show."""
    options = parser(__doc__, seed=0, rate=100.0, processes=CORES)
    options.add_argument("--targets", type=positive, default=1000, help="of each row")
    options.add_argument("--methods", nargs="*", default=METHODS, help="of the first robot")
    options.add_argument("--robots", nargs="+", default=ARMS, help="files of urdf/ or test/urdf/")
    options.add_argument("--acceleration", type=float, default=np.inf, help="limit [rad/s^2]")
    options.add_argument("--longest", type=float, default=30.0, help="simulated time a target [s]")
    given = options.parse_args()
    about = f"{given.targets} targets, {VELOCITY:g} rad/s, {given.acceleration:g} rad/s^2"
    table = Table(f"{about}, {given.rate:g} Hz", COLUMNS)
    pairs = [(given.robots[0], method) for method in given.methods]
    pairs += [(robot, DEFAULT_METHOD) for robot in given.robots[1:]]
    for robot, method in pairs:
        for stuck in (HOLD, JOINT_MOTION):
            table.rows.append(measured(robot, method, stuck, given))
    finish(given, [table])


if __name__ == "__main__":
    guarded(main)
