# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Paths of Deo & Walker 1993, and motion along a path by resolved rates, as in section 5.

The commanded tip velocity is x_dot_d + K_p (x_d - x), the feedback of section 2.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dls_ik.core.optimal_damping import T as SHIFT  # T of (28)
from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.reproduce.deo_walker_damping import (
    PLANAR_LINKS,
    PLANAR_START,
    iterates,
    plain_norm,
    total_norm,
)
from dls_ik.reproduce.tabaczynski import planar_joints
from dls_ik.solver.plugins import MEMORY, Step, StepState
from dls_ik.solver.stepper import Stepper
from dls_ik.solver.task import Task

FEEDBACK = 10.0  # K_p [1/s]


SUBTASK_OPTIONS = ("mu", "objective", "reference", "obstacle", "influence")


class PathPoint(NamedTuple):
    """Desired pose and velocity of the tip at one step of a path."""

    T: Array  # (4, 4) T_base_tip
    x_dot: Array  # (r,) velocity of the task rows [m/s, rad/s]


class PathResult(NamedTuple):
    """Motion along a path of s steps, and iterations of the search for the damping factor."""

    q: Array  # (s, n) joint positions before each step [rad]
    norm: Array  # (s,) norm of the joint velocity [1/s]
    deviation: Array  # (s,) norm of the task error
    searches: Array  # (s,) iterations from the factor of the last step; 0: no damping needed
    anew: Array  # (s,) iterations without the factor of the last step
    as_printed: Array  # (s,) iterations of (18) as printed: starts at 0, no limits, tolerance 1e-10


Method = tuple[str, dict[str, Any]] | Step  # (method name, options), or a step function


def follow(
    robot: RobotModel,
    task: Task,
    method: Method,
    start: Array,
    path: Sequence[PathPoint],
    dt: float,
) -> PathResult:
    """Follow a path by resolved rates with feedback, one time step per path point.

    Args:
        robot: Robot.
        task: Task of the tip, with r rows.
        method: Name and options of a method, or a step function that returns joint velocities.
        start: (n,) initial joint positions [rad].
        path: Desired pose and velocity at each step.
        dt: Time step [s].
    """
    name, options = ("jp", {}) if callable(method) else method
    given = {"task": task, "rotation_weight": 1.0, **options}
    stepper, steps = Stepper(robot, name, start, **given), []
    memory = np.zeros(MEMORY)
    for i, point in enumerate(path):
        q, error = stepper.q, stepper.error(point.T)
        x_dot, J = point.x_dot + FEEDBACK * error, stepper.jacobian(point.T)
        if callable(method):
            state = StepState(q, robot.lower, robot.upper, i, memory)
            q_dot = method(J, x_dot, state)
            stepper.q = q + dt * q_dot
        else:
            q_dot = stepper.rate(x_dot, dt)
        anew = as_printed = 0
        if stepper.searches:
            norm = plain_norm(J, x_dot)
            if "objective" in options:
                norm = total_norm(J, x_dot, _subtask(robot, task, q, options), SHIFT)
            as_printed = len(iterates(norm, 18)) - 1
            fresh = Stepper(robot, name, q, **given)
            fresh.rate(x_dot, dt)
            anew = fresh.searches
        steps.append(
            (q, np.linalg.norm(q_dot), np.linalg.norm(error), stepper.searches, anew, as_printed)
        )
    return PathResult(*(np.array(column) for column in zip(*steps, strict=True)))


def _subtask(robot: RobotModel, task: Task, q: Array, options: dict[str, Any]) -> Array:
    """Return the joint motion v (n,) of a subtask, before its projection into the null space.

    With a Jacobian and an error of zero, the step of the method GP (gradient projection) is v.

    Args:
        robot: Robot.
        task: Task of the tip.
        q: (n,) joint positions [rad].
        options: Options of the method; those of SUBTASK_OPTIONS define the subtask.
    """
    given = {key: options[key] for key in SUBTASK_OPTIONS if key in options}
    stepper = Stepper(robot, "gp", q, task=task, rotation_weight=1.0, **given)
    return stepper.step_for(np.zeros(stepper.rows), np.zeros((stepper.rows, robot.n)))


# Planar arm and rectangle of Figures 4, 5 and 7; the PUMA of Figure 6

RECTANGLE_WIDTH, RECTANGLE_HEIGHT = 0.7, 0.9
PLANAR_SPEED = 1.0  # [1/s] speed along the rectangle
PLANAR_DURATION = 2.0 * (RECTANGLE_WIDTH + RECTANGLE_HEIGHT) / PLANAR_SPEED
# In this configuration the distance of the wrist from the singular plane is 9 mm.
PUMA_START = np.radians([0.0, 45.5, 0.0, 0.0, 45.0, 0.0])
PUMA_SPEED, PUMA_DURATION = 0.5, 0.7  # [m/s], [s] of the straight path


def rectangle(steps: int) -> list[PathPoint]:
    """Return a path of `steps` points, counter-clockwise around the rectangle.

    The path starts at the lower left corner, which is the position of the tip in PLANAR_START.
    """
    corner = planar_joints(PLANAR_LINKS, PLANAR_START)[-1]
    sides = np.array(
        [
            [RECTANGLE_WIDTH, 0.0],
            [0.0, RECTANGLE_HEIGHT],
            [-RECTANGLE_WIDTH, 0.0],
            [0.0, -RECTANGLE_HEIGHT],
        ]
    )
    corners = corner + np.concatenate([np.zeros((1, 2)), np.cumsum(sides, axis=0)])
    lengths = np.array([RECTANGLE_WIDTH, RECTANGLE_HEIGHT, RECTANGLE_WIDTH, RECTANGLE_HEIGHT])
    ends = np.cumsum(lengths)
    path = []
    for distance in np.arange(steps) * (ends[-1] / steps):
        side = min(int(np.searchsorted(ends, distance, side="right")), 3)
        direction = sides[side] / lengths[side]
        T = np.eye(4)
        T[:2, 3] = corners[side] + direction * (distance - ends[side] + lengths[side])
        path.append(PathPoint(T, PLANAR_SPEED * direction))
    return path


def puma_line(start: Array, steps: int) -> list[PathPoint]:
    """Return a straight path of `steps` points along -y with constant rotation.

    The path starts at the tip pose `start` (4, 4), and has the speed PUMA_SPEED.
    """
    path = []
    for t in np.arange(steps) * (PUMA_DURATION / steps):
        T = start.copy()
        T[1, 3] -= PUMA_SPEED * t
        path.append(PathPoint(T, np.array([0.0, -PUMA_SPEED, 0.0, 0.0, 0.0, 0.0])))
    return path
