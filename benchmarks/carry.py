# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Two WAMs carry one object: a stack of two levels in a stream at 500 Hz, 14 joints, two tips."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.common import columns
from dls_ik import FrameTask, RobotModel, Task, TaskStack
from dls_ik.core.se3 import difference
from dls_ik.model.files import share_file
from dls_ik.servo import Controller
from dls_ik.servo.level_ik import LevelIk

DT, ACCELERATION = 2e-3, 5.0  # [s], [rad/s^2]
TIPS = "left_wam_tip", "right_wam_tip"
BENT = np.tile([0.0, 0.6, 0.0, 1.8, 0.0, 0.6, 0.0], 2)  # [rad]
# Amplitudes [m] and rates [rad/s] of the path of the object along x, y and z.
PATHS = {
    "within the limits": ((0.1, 0.1, 0.1), (1.2, 0.8, 1.6)),
    "an arm at its limits": ((0.25, 0.7, 0.3), (0.6, 0.4, 0.8)),
    "out of reach": ((0.3, 1.2, 0.6), (0.6, 0.6, 0.9)),
}
CARRIED = columns(
    "part; path; relative error, max [m] :.1e; [rad] :.1e; object off, max [m] :.2f; closest "
    "limit [rad] :.1e; a cycle, median [us] :.1f; 99 % [us] :.1f"
)

Step = Callable[[np.ndarray, float], np.ndarray]


def arms() -> RobotModel:
    """Return the two arms."""
    return RobotModel.from_urdf(share_file("urdf", "two_wams.urdf"), tip=TIPS)


def errors(T_a: np.ndarray, T_b: np.ndarray) -> tuple[float, float]:
    """Return the distance [m] and the angle [rad] between two poses."""
    e = difference(T_a, T_b)
    return float(np.linalg.norm(e[:3])), float(np.linalg.norm(e[3:]))


def carried(part: str, where: str, robot: RobotModel, step: Step, cycles: int) -> list[Any]:
    """Return the row of a function that moves the arms, for one path.

    Args:
        part: Name of the function in the table.
        where: Name of the path in `PATHS`.
        robot: The two arms.
        step: Function that returns joint positions (n,) for the pose (4, 4) of the left tip in the
            base frame and a time [s].
        cycles: Number of cycles.
    """
    left, right = robot.fk(BENT)
    grip, (size, rate) = np.linalg.inv(left) @ right, np.array(PATHS[where])
    relative, off, margins, times = [], [], [], []
    for k in range(1, cycles + 1):
        T = left.copy()
        T[:3, 3] += size * np.sin(rate * k * DT)
        begin = time.thread_time_ns()
        q = step(T, k * DT)
        times.append(1e-3 * (time.thread_time_ns() - begin))
        hands = robot.fk(q)
        relative.append(errors(np.linalg.inv(hands[0]) @ hands[1], grip))
        off.append(errors(hands[0], T)[0])
        margins.append(float(np.minimum(q - robot.lower, robot.upper - q).min()))
    worst = np.max(relative, axis=0).tolist()
    taken = float(np.median(times)), float(np.percentile(times, 99))
    return [part, where, *worst, max(off), min(margins), *taken]


def cycle_step(robot: RobotModel) -> Step:
    """Return the cycle of a controller; the relative pose has priority over that of the object."""
    left, right = robot.fk(BENT)
    grip = FrameTask(TIPS[1], np.linalg.inv(left) @ right, reference=TIPS[0])
    stack = TaskStack(grip, [Task(), Task.free()])
    controller = Controller(robot, task=stack, acceleration=ACCELERATION)
    controller.seed(BENT)

    def step(T: np.ndarray, now: float) -> np.ndarray:
        controller.follow_pose(T, now, tip=TIPS[0])
        return controller.cycle(now, DT).q

    return step


def level_step(robot: RobotModel) -> Step:
    """Return the bare step of all levels, without targets, limiter and status."""
    left, right = robot.fk(BENT)
    grip = FrameTask(TIPS[1], np.linalg.inv(left) @ right, reference=TIPS[0])
    levels = LevelIk(
        robot,
        TaskStack(grip, [Task(), Task.free()]),
        acceleration=np.full(robot.n, ACCELERATION),
    )
    levels.restart(BENT)
    targets = levels.pose_at(BENT)

    def step(T: np.ndarray, now: float) -> np.ndarray:
        targets[0] = T
        return levels.advance(targets, DT).q

    return step


def rows(cycles: int) -> list[list[Any]]:
    """Return the rows of the bare step and of the controller's cycle, for a number of cycles."""
    robot, parts = arms(), {"step": level_step, "cycle": cycle_step}
    return [
        carried(part, where, robot, make(robot), cycles)
        for part, make in parts.items()
        for where in PATHS
    ]
