# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""One cycle of two arms of a humanoid: two tips, a posture, distances between its links.

The defaults fit the Unitree G1 of the package example-robot-data (`pip install example-robot-data`,
in any environment): give its file ``g1_29dof_rev_1_0.urdf``, and in ROS_PACKAGE_PATH the folder
that contains ``g1_description``. Both hands follow smooth paths of 5 cm at 200 Hz. Times are
processor times of `Controller.cycle`; ratios are to the cycle without posture and scene in the same
run.
"""

import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import Table, columns, finish, guarded, parser, positive, spread
from dls_ik import PlanningScene, PostureTask, RobotModel, Task, TaskStack
from dls_ik.servo import Controller

DT, ACCELERATION = 5e-3, 10.0  # [s], [rad/s^2]
AMPLITUDE, RATES = 0.05, (2.0, 2.6)  # [m], [rad/s] along x and z
BENT = (0.2, 0.3, 0.0, 0.6, 0.0, 0.0, 0.0)  # [rad] start of the left arm
MIRROR = (1.0, -1.0, -1.0, 1.0, -1.0, 1.0, -1.0)  # signs of the start of the right arm
MIN_DISTANCE = 0.005  # [m]
COLUMNS = columns(
    "cycle; median [us] :.1f; 99 % [us] :.1f; ratio; position error of the hands, max [m] :.1e"
)


def controllers(robot: RobotModel, q: np.ndarray) -> dict[str, Controller]:
    """Return the controllers that are compared, at rest at q (n,)."""
    stack = TaskStack([Task(), Task()], PostureTask(q))
    limit = {"acceleration": ACCELERATION}
    result = {
        "two tips": Controller(robot, **limit),
        "two tips, posture": Controller(robot, task=stack, **limit),
        "two tips, posture, distances between links": Controller(
            robot, task=stack, scene=PlanningScene(robot), min_distance=MIN_DISTANCE, **limit
        ),
    }
    for each in result.values():
        each.seed(q)
    return result


def follow(controller: Controller, robot: RobotModel, q: np.ndarray, cycles: int) -> Any:
    """Move the hands along their paths; return times [us] and the largest position error [m]."""
    start, times, largest = robot.fk(q), [], 0.0
    for k in range(1, cycles + 1):
        T = start.copy()
        T[:, 0, 3] += AMPLITUDE * (1.0 - np.cos(RATES[0] * k * DT))
        T[:, 2, 3] += AMPLITUDE * (1.0 - np.cos(RATES[1] * k * DT))
        controller.follow_pose(T, k * DT)
        begin = time.thread_time_ns()
        output = controller.cycle(k * DT, DT)
        times.append(1e-3 * (time.thread_time_ns() - begin))
        off = robot.fk(output.q)[:, :3, 3] - T[:, :3, 3]
        largest = max(largest, float(np.linalg.norm(off, axis=1).max()))
    return times, largest


def main() -> None:
    """Measure and show."""
    options = parser(__doc__, repeats=3)
    options.add_argument("urdf", type=Path, help="description of the robot")
    options.add_argument("--base", default="torso_link")
    options.add_argument("--tips", nargs=2, default=["left_rubber_hand", "right_rubber_hand"])
    options.add_argument("--cycles", type=positive, default=1000, help="of a turn")
    given = options.parse_args()
    robot = RobotModel.from_urdf(given.urdf, base=given.base, tip=given.tips)
    q = np.concatenate([BENT, np.multiply(BENT, MIRROR)])
    q = robot.clip(q) if robot.n == len(q) else 0.5 * sum(robot.finite_limits())
    found: dict[str, list[Any]] = {}
    for _ in range(given.repeats):
        for name, controller in controllers(robot, q).items():
            found.setdefault(name, []).append(follow(controller, robot, q, given.cycles))
    medians = {name: [np.median(times) for times, _ in turns] for name, turns in found.items()}
    reference = np.array(medians["two tips"])
    rows = []
    for name, turns in found.items():
        times = np.concatenate([times for times, _ in turns])
        ratio = spread(np.array(medians[name]) / reference)
        worst = max(error for _, error in turns)
        rows.append([name, np.median(times), np.percentile(times, 99), ratio, worst])
    finish(given, [Table(f"{robot.name}, {robot.n} joints", COLUMNS, rows)])


if __name__ == "__main__":
    guarded(main)
