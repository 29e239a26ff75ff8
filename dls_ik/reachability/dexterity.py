"""How well the arm can move at a solution: manipulability, isotropy, room to the limits."""

from typing import NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.solver.task import Task


class Dexterity(NamedTuple):
    """One number for each of b configurations."""

    manipulability: Array  # (b,) Yoshikawa 1985
    isotropy: Array  # (b,) least over largest singular value, 0 at a singularity, 1 at best
    room: Array  # (b,) to the nearest limit, 0 on it, 1 where all joints are in mid-range


def dexterity(robot: RobotModel, task: Task, rotation_weight: float, q: Array) -> Dexterity:
    """Measures of configurations (b, n).

    With the Jacobian J (r, n) of the task, linear rows in [m/rad]:
    manipulability sqrt(det(J J^T)), and sqrt(det(J^T J)) where n < r (Yoshikawa 1985).
    Isotropy is of J with its rotation rows times the rotation weight [m/rad].
    """
    J = task_jacobian(robot, task, q)
    Jt = J.swapaxes(1, 2)
    square = J @ Jt if J.shape[1] <= J.shape[2] else Jt @ J
    manipulability = np.sqrt(np.maximum(np.linalg.det(square), 0.0))
    weights = np.ones(J.shape[1])
    weights[len(task.position) :] = rotation_weight
    s = np.linalg.svd(weights[:, None] * J, compute_uv=False)  # (b, min(r, n))
    isotropy = s[:, -1] / np.maximum(s[:, 0], np.finfo(float).tiny)
    return Dexterity(manipulability, isotropy, room_to_limits(robot, q))


def task_jacobian(robot: RobotModel, task: Task, q: Array) -> Array:
    """Rows (b, r, n) of the Jacobian that count, along the tip's axes where the task says so."""
    J = robot.jacobian(q)
    if task.frame == "target":
        R_tip_base = robot.fk(q)[:, None, :3, :3].swapaxes(2, 3)
        J = (R_tip_base @ J.reshape(len(q), 2, 3, robot.n)).reshape(J.shape)
    rows = ["xyz".index(axis) for axis in task.position]
    rows += [3 + "xyz".index(axis) for axis in task.rotation]
    chosen: Array = J[:, rows]
    return chosen


def room_to_limits(robot: RobotModel, q: Array) -> Array:
    """The least share (b,) of half its range that any limited joint is away from a limit."""
    limited = robot.limited
    lower, upper = robot.lower[limited], robot.upper[limited]
    half = np.maximum((upper - lower) / 2.0, np.finfo(float).tiny)
    share = np.minimum(q[:, limited] - lower, upper - q[:, limited]) / half
    room: Array = np.clip(share.min(axis=1, initial=1.0), 0.0, 1.0)
    return room
