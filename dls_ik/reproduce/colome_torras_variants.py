# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Variants of rows of Table V that no option of the package has, computed with NumPy.

The Matlab file of the authors (see docs/lab/table_v.md) differs from the reading "as published" in
some ways that the solver has no option for. Here these variants run on all pairs of start and goal
at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.reproduce.colome_torras_outcomes import Outcomes

TOLERANCE = 5e-3  # norm of the error at which a run ends
MAX_ITERATIONS = 250
SMALLEST_STEP = 1e-4  # the Matlab file also ends a run at a step with a smaller norm
TP_MARGIN, TP_PUSH = 0.1, 0.2  # margin of TP as a share of the range; gain of its push toward zero
MAX_STEP = 0.5  # gamma_max of SD

# A step: (robot, q (b, n), e (b, 6)) -> (start of the step (b, n), dq (b, n))
StepFunction = Callable[[RobotModel, Array, Array], tuple[Array, Array]]


class RowVariant(NamedTuple):
    """Variant of a row of Table V."""

    is_: str  # choice of the reading "as published"
    instead: str  # choice of the variant, as in the Matlab file
    row: str
    step: StepFunction
    smallest_step: float = 0.0  # a run ends at a step with a smaller norm


def pose_error(goals: Array, poses: Array) -> Array:
    """Return errors (b, 6): position error [m], and axis times sine of the angle of rotation.

    Args:
        goals: (b, 4, 4) goal poses.
        poses: (b, 4, 4) current poses.
    """
    R, R_goal = poses[:, :3, :3], goals[:, :3, :3]
    turn = 0.5 * np.cross(R, R_goal, axis=1).sum(axis=2)
    return np.concatenate([goals[:, :3, 3] - poses[:, :3, 3], turn], axis=1)


def times(A: Array, v: Array) -> Array:
    """Return the products (b, r) of matrices (b, r, c) and vectors (b, c)."""
    return np.asarray(np.einsum("brc,bc->br", A, v))


def jt_step(robot: RobotModel, q: Array, e: Array) -> tuple[Array, Array]:
    """Return q and steps of JT: J^T e with the length that minimizes the error to first order."""
    J = robot.jacobian(q)
    dq = np.einsum("brc,br->bc", J, e)
    moved = times(J, dq)
    length = np.sum(moved * e, axis=1) / np.sum(moved * moved, axis=1)
    return q, length[:, None] * dq


def jc_step(robot: RobotModel, q: Array, e: Array) -> tuple[Array, Array]:
    """Return configurations with joints set on their limits, and steps of JC without these joints.

    The error is that of q, the Jacobian that of the returned configurations.
    """
    free = ((q >= robot.lower) & (q <= robot.upper)).astype(float)
    q = np.clip(q, robot.lower, robot.upper)
    J = robot.jacobian(q) * free[:, None, :]
    return q, free * times(np.linalg.pinv(J), e)


def activation(robot: RobotModel, q: Array, margin: float) -> Array:
    """Return the activation (b, n) of each joint: 0 outside the margin, 1 at a limit and beyond."""
    width = margin * (robot.upper - robot.lower)
    depth = np.maximum(robot.lower + width - q, q - robot.upper + width) / width
    u = np.clip(depth, 1e-3, 1.0 - 1e-3)
    h = 0.5 * (1.0 + np.tanh(1.0 / (1.0 - u) - 1.0 / u))
    return np.where(depth >= 1.0, 1.0, np.where((depth <= 0.0) | (h < 1e-6), 0.0, h))


def tp_step(robot: RobotModel, q: Array, e: Array, compensates: bool) -> tuple[Array, Array]:
    """Return q and steps of TP, whose push is divided by the activation.

    Args:
        robot: Robot with the limits.
        q: (b, n) configurations [rad].
        e: (b, 6) errors.
        compensates: Whether the other joints compensate the error that the push causes.
    """
    h, J = activation(robot, q, TP_MARGIN), robot.jacobian(q)
    push = np.where(h > 0.0, -TP_PUSH * q / np.where(h > 0.0, h, 1.0), 0.0)
    free = np.linalg.pinv(J * (h == 0.0)[:, None, :])
    return q, push + times(free, e - times(J, push) if compensates else e)


def sd_step(robot: RobotModel, q: Array, e: Array, by_direction: bool) -> tuple[Array, Array]:
    """Return q and steps of SD, which bounds the largest signed component.

    Args:
        robot: Robot of the Jacobian.
        q: (b, n) configurations [rad].
        e: (b, 6) errors.
        by_direction: Whether the bound of direction i has the norm of column i of J in each term,
            as in the Matlab file, instead of the norm of the column of the joint.
    """
    J = robot.jacobian(q)
    U, s, Vt = np.linalg.svd(J, full_matrices=False)
    columns = np.linalg.norm(J, axis=1)  # (b, n)
    sums = np.abs(Vt).sum(axis=2) * columns[:, :6] if by_direction else times(np.abs(Vt), columns)
    w = (np.einsum("bri,br->bi", U, e) / s)[:, :, None] * Vt  # (b, 6, n), one row per direction
    total = _bounded(w, MAX_STEP * np.minimum(1.0, s / sums)[:, :, None]).sum(axis=1)
    return q, _bounded(total, np.full((len(q), 1), MAX_STEP))


def _bounded(w: Array, bound: Array) -> Array:
    largest = w.max(axis=-1, keepdims=True)
    return w * np.where(largest > bound, bound / np.where(largest > bound, largest, 1.0), 1.0)


VARIANTS = (
    RowVariant("runs end by the error", "also at norm(dq) < 1e-4", "jc", jc_step, SMALLEST_STEP),
    RowVariant("runs end by the error", "also at norm(dq) < 1e-4", "jt", jt_step, SMALLEST_STEP),
    RowVariant("TP solves for e - J z", "for e", "tp", partial(tp_step, compensates=False)),
    RowVariant("SD sums over the columns j of J", "column i for all j", "sd",
            partial(sd_step, by_direction=True)),
)  # fmt: skip

# The rows as published, with which a test compares the solver
ROWS: Mapping[str, StepFunction] = {
    "jt": jt_step,
    "jc": jc_step,
    "tp": partial(tp_step, compensates=True),
    "sd": partial(sd_step, by_direction=False),
}


def run_variant(
    robot: RobotModel, step: StepFunction, goals: Array, starts: Array, smallest_step: float = 0.0
) -> Outcomes:
    """Run a row from every start to its goal, and return the outcomes.

    Args:
        robot: Robot of the pairs.
        step: Step of the row.
        goals: (b, 4, 4) goal poses.
        starts: (b, n) start configurations [rad].
        smallest_step: A run ends at a step with a smaller norm, and keeps its error.
    """
    q = np.array(starts)
    iterations = np.full(len(q), MAX_ITERATIONS + 1.0)
    error = pose_error(goals, robot.fk(q))
    norm = np.linalg.norm(error, axis=1)
    is_running = norm >= TOLERANCE
    iterations[~is_running] = 1.0
    for count in range(1, MAX_ITERATIONS + 1):
        k = np.flatnonzero(is_running)
        if not len(k):
            break
        start, dq = step(robot, q[k], error[k])
        q[k] = start + dq
        error[k] = pose_error(goals[k], robot.fk(q[k]))
        norm[k] = np.linalg.norm(error[k], axis=1)
        ended = (norm[k] < TOLERANCE) | (np.linalg.norm(dq, axis=1) < smallest_step)
        iterations[k[ended]] = count
        is_running[k[ended]] = False
    solved = norm < TOLERANCE
    inside = solved & np.all((q >= robot.lower) & (q <= robot.upper), axis=1)
    return Outcomes(solved, inside, iterations, norm)
