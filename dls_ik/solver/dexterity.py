# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Dexterity of configurations: manipulability, isotropy and distance to the joint limits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.solver.task import Task, task_jacobians


class Dexterity(NamedTuple):
    """Dexterity measures of b configurations, see :func:`dexterity` and :func:`limit_margin`."""

    manipulability: Array  # (b,) see Yoshikawa 1985
    isotropy: Array  # (b,) ratio of smallest to largest singular value: 0 at a singularity
    # (b,) minimum relative distance to a joint limit: 0 at a limit, 1 with all joints mid-range
    margin: Array


def dexterity(robot: RobotModel, task: Task, rotation_weight: float, q: Array) -> Dexterity:
    """Return the dexterity measures of configurations q (b, n) [rad or m].

    With the Jacobian J (r, n) of the task, the manipulability is sqrt(det(J J^T)), or
    sqrt(det(J^T J)) if n < r (Yoshikawa 1985). The isotropy is the ratio of the smallest to the
    largest singular value of J, whose rotation rows are first multiplied by `rotation_weight`
    [m/rad].
    """
    J = task_jacobians(robot, task, q)
    Jt = J.swapaxes(1, 2)
    square = J @ Jt if J.shape[1] <= J.shape[2] else Jt @ J
    manipulability = np.sqrt(np.maximum(np.linalg.det(square), 0.0))
    weights = np.ones(J.shape[1])
    weights[len(task.position) :] = rotation_weight
    s = np.linalg.svd(weights[:, None] * J, compute_uv=False)  # (b, min(r, n))
    isotropy = s[:, -1] / np.maximum(s[:, 0], np.finfo(float).tiny)
    return Dexterity(manipulability, isotropy, limit_margin(robot, q))


def limit_margin(robot: RobotModel, q: Array) -> Array:
    """Return the smallest relative distance (b,) of a joint to its limits at q (b, n) [rad or m].

    The distance of a joint is divided by half the range of the joint, and is thus 1 at mid-range.
    """
    limited = robot.limited
    lower, upper = robot.lower[limited], robot.upper[limited]
    half = np.maximum((upper - lower) / 2.0, np.finfo(float).tiny)
    share = np.minimum(q[:, limited] - lower, upper - q[:, limited]) / half
    margin: Array = np.clip(share.min(axis=1, initial=1.0), 0.0, 1.0)
    return margin
