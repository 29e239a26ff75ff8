# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Targets that move from the start to the goal of a pair, followed by one step per target.

Buss & Kim 2004, section 5, choose the damping factor by the mean error of tips that follow moving
targets, and increase it until the arm shakes rarely. Here a target moves on a straight line, and
its rotation about a fixed axis, so that parts of its path may be out of reach.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dls_ik.core.types import Array
from dls_ik.errors import OptionError
from dls_ik.model.pose import matrices
from dls_ik.model.robot import RobotModel
from dls_ik.model.rotations import quaternion_from_rotation
from dls_ik.solver.stepper import Stepper
from dls_ik.study.definition import Study
from dls_ik.study.pairs import study_pairs
from dls_ik.study.solve import study_task

MAX_TRACK_STEPS = 100_000
ROTATION_WEIGHT = 0.5  # [m/rad] weight of rotations in the error, for all methods
MIN_STEP = 1e-9  # [rad or m] a smaller joint step does not count as a reversal
SMALL_ANGLE = 1e-9  # [rad] quaternions that are closer are interpolated linearly


def track_targets(
    study: Study, steps: int, progress: Callable[[int, int], None] | None = None
) -> tuple[Array, Array]:
    """Follow the targets of all pairs of a study by all variants.

    Args:
        study: Study with one robot and one case.
        steps: Number of targets on the path of a pair.
        progress: Called with the number of followed paths and the number of all paths.

    Returns:
        Two arrays (p, v) for p pairs and v variants: the mean error of the tip from each target
        after the step toward this target [m], and the share of the joint steps that reverse the
        previous step of the joint. The values are infinity and 1 if joint positions are not finite.

    Raises:
        MethodError: If a method does not support the robot.
        OptionError: If the robot has several tips.
    """
    robot, task = study.robots[0].load(), study_task(study.task)
    starts, goals = study_pairs(robot, study.cases[0], study.pairs, study.seed)
    first, last = robot.fk(starts), robot.fk(goals)
    if first.ndim != 3:
        raise OptionError(
            f"a moving target needs a robot with one tip, but {study.robots[0].name} has several "
            "tips; choose one"
        )
    steppers = [
        Stepper(robot, variant.method, task=task, **dict(variant.options))
        for variant in study.variants
    ]
    error = np.empty((study.pairs, len(steppers)))
    reversals = np.empty(error.shape)
    for i in range(study.pairs):
        targets = line_poses(first[i], last[i], steps)
        for v, stepper in enumerate(steppers):
            stepper.reset(starts[i])
            q = stepper.run(targets, steps).q
            is_finite = bool(np.isfinite(q).all())
            error[i, v] = _mean_error(robot, study.task, q[1:], targets) if is_finite else np.inf
            reversals[i, v] = _reversals(q) if is_finite else 1.0
            if progress is not None:
                progress(i * len(steppers) + v + 1, error.size)
    return error, reversals


def line_poses(first: Array, last: Array, steps: int) -> Array:
    """Return poses (steps, 4, 4) from the pose `first` (4, 4), left out, to the pose `last` (4, 4).

    The position moves along a line, and the rotation about a fixed axis, at constant speed.
    """
    share = np.arange(1, steps + 1) / steps
    positions = first[:3, 3] + share[:, None] * (last[:3, 3] - first[:3, 3])
    a = np.array(quaternion_from_rotation(first[:3, :3]))
    b = np.array(quaternion_from_rotation(last[:3, :3]))
    b = -b if a @ b < 0.0 else b
    angle = float(np.arccos(min(1.0, float(a @ b))))
    if angle < SMALL_ANGLE:
        turned = a + share[:, None] * (b - a)
    else:
        turned = np.sin((1.0 - share) * angle)[:, None] * a + np.sin(share * angle)[:, None] * b
    return matrices(positions, turned)


def _mean_error(robot: RobotModel, task: str, q: Array, targets: Array) -> float:
    """Return the mean error [m] of tips at q (s, n) [rad or m] from targets (s, 4, 4).

    Rotation errors are multiplied by ROTATION_WEIGHT; the task "position" ignores them.
    """
    T = robot.fk(q)
    distance = np.linalg.norm(T[:, :3, 3] - targets[:, :3, 3], axis=1)
    if task == "position":
        return float(distance.mean())
    if task == "pointing":
        cosine = np.einsum("si,si->s", T[:, :3, 2], targets[:, :3, 2])
    else:
        cosine = 0.5 * (np.einsum("sij,sij->s", T[:, :3, :3], targets[:, :3, :3]) - 1.0)
    angle = np.arccos(np.clip(cosine, -1.0, 1.0))
    return float(np.hypot(distance, ROTATION_WEIGHT * angle).mean())


def _reversals(q: Array) -> float:
    """Return the share of joint steps of q (s + 1, n) that reverse the previous step."""
    moved = np.diff(q, axis=0)
    moved[np.abs(moved) < MIN_STEP] = 0.0
    turned = moved[1:] * moved[:-1] < 0.0
    return float(turned.mean()) if turned.size else 0.0
