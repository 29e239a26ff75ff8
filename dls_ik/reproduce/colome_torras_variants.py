# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Variants of methods in Table V for which the solver has no option, computed with NumPy.

The table is that of Colome & Torras 2012. We run it in interpretations of the paper, see
:class:`dls_ik.reproduce.colome_torras_readings.Reading`. In the interpretation "as published", a
few methods differ from the authors' Matlab file (see docs/lab/table_v.md). This module implements
the steps of the Matlab file for b starts and goals at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.reproduce.colome_torras_outcomes import Outcomes

TOLERANCE = 5e-3  # a run ends when the norm of the error is smaller
MAX_ITERATIONS = 250
SMALLEST_STEP = 1e-4  # [rad] the Matlab file also ends a run at a step dq with a smaller norm
# TP_MARGIN: width of the zone next to each joint limit, as a share of the joint's range.
# TP_PUSH: gain with which TP displaces joints in this zone toward position 0.
TP_MARGIN, TP_PUSH = 0.1, 0.2
MAX_STEP = 0.5  # [rad] option gamma_max of SD: bound of the joint displacements in a step

# Function of a robot, configurations q (b, n) and pose errors (b, 6). It returns configurations
# (b, n), either q or q clipped to the joint limits, and joint displacements (b, n) to add to them.
StepFunction = Callable[[RobotModel, Array, Array], tuple[Array, Array]]


class RowVariant(NamedTuple):
    """Variant of a method of Table V, and the texts that describe the difference in a report."""

    is_: str  # behaviour of the method in the reading "as published"
    instead: str  # behaviour of the variant, as in the Matlab file
    row: str  # name of the method, and of its row in the table
    step: StepFunction
    smallest_step: float = 0.0  # [rad] a run ends at a step dq with a smaller norm


def pose_error(goals: Array, poses: Array) -> Array:
    """Return pose errors (b, 6): goal minus current position [m], and the rotation error.

    The rotation error is the axis of the rotation from the current to the goal orientation, times
    the sine of its angle.

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
    """Return the configurations q, and the joint displacements of the Jacobian transpose (JT).

    A displacement is a J^T e, where the scalar a minimizes the norm of e - J (a J^T e).

    Args:
        robot: Robot of the Jacobian J.
        q: (b, n) configurations [rad].
        e: (b, 6) pose errors.
    """
    J = robot.jacobian(q)
    dq = np.einsum("brc,br->bc", J, e)
    moved = times(J, dq)
    length = np.sum(moved * e, axis=1) / np.sum(moved * moved, axis=1)
    return q, length[:, None] * dq


def jc_step(robot: RobotModel, q: Array, e: Array) -> tuple[Array, Array]:
    """Return q clipped to the joint limits, and the joint displacements of joint clamping (JC).

    Joints outside their limits in q have the displacement 0. The other joints move by the
    pseudoinverse of the Jacobian at the clipped configuration, applied to the error of q.

    Args:
        robot: Robot with the limits.
        q: (b, n) configurations [rad].
        e: (b, 6) pose errors of q.
    """
    free = ((q >= robot.lower) & (q <= robot.upper)).astype(float)
    q = np.clip(q, robot.lower, robot.upper)
    J = robot.jacobian(q) * free[:, None, :]
    return q, free * times(np.linalg.pinv(J), e)


def activation(robot: RobotModel, q: Array, margin: float) -> Array:
    """Return the limit activation (b, n) of each joint, from 0 (far from limits) to 1 (at a limit).

    The activation rises smoothly from 0 to 1 in a zone next to each limit; beyond a limit it is 1.

    Args:
        robot: Robot with the limits.
        q: (b, n) configurations [rad].
        margin: Width of the zone as a share of the joint's range.
    """
    width = margin * (robot.upper - robot.lower)
    depth = np.maximum(robot.lower + width - q, q - robot.upper + width) / width
    u = np.clip(depth, 1e-3, 1.0 - 1e-3)
    h = 0.5 * (1.0 + np.tanh(1.0 / (1.0 - u) - 1.0 / u))
    return np.where(depth >= 1.0, 1.0, np.where((depth <= 0.0) | (h < 1e-6), 0.0, h))


def tp_step(robot: RobotModel, q: Array, e: Array, compensates: bool) -> tuple[Array, Array]:
    """Return the configurations q, and the joint displacements of the task-priority method (TP).

    Joints with an activation h > 0 (close to a limit, see :func:`activation`) are displaced toward
    position 0 by -TP_PUSH q / h, a displacement that grows as h decreases, as in the authors' code.
    The other joints move by the pseudoinverse of their columns of the Jacobian.

    Args:
        robot: Robot with the limits.
        q: (b, n) configurations [rad].
        e: (b, 6) pose errors.
        compensates: Whether the other joints also correct the pose error that the displacement of
            the joints close to a limit causes; if False, they correct only `e`.
    """
    h, J = activation(robot, q, TP_MARGIN), robot.jacobian(q)
    push = np.where(h > 0.0, -TP_PUSH * q / np.where(h > 0.0, h, 1.0), 0.0)
    free = np.linalg.pinv(J * (h == 0.0)[:, None, :])
    return q, push + times(free, e - times(J, push) if compensates else e)


def sd_step(robot: RobotModel, q: Array, e: Array, by_direction: bool) -> tuple[Array, Array]:
    """Return the configurations q, and the displacements of selectively damped least squares (SD).

    The displacement along each singular direction is scaled so that its largest component is within
    a bound; as in the authors' code, a negative component may exceed the bound in magnitude. The
    bound of direction i is MAX_STEP min(1, s_i / sum_j |v_ij| c_j), where s_i is the singular
    value, v_i the right singular vector, and c_j the norm of column j of the Jacobian. The largest
    component of the sum of these displacements is at most MAX_STEP.

    Args:
        robot: Robot of the Jacobian.
        q: (b, n) configurations [rad].
        e: (b, 6) pose errors.
        by_direction: Whether c_i replaces c_j in the sum, as in the Matlab file.
    """
    J = robot.jacobian(q)
    U, s, Vt = np.linalg.svd(J, full_matrices=False)
    columns = np.linalg.norm(J, axis=1)  # (b, n)
    sums = np.abs(Vt).sum(axis=2) * columns[:, :6] if by_direction else times(np.abs(Vt), columns)
    # Displacements (b, 6, n) along the six singular directions
    w = (np.einsum("bri,br->bi", U, e) / s)[:, :, None] * Vt
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

# Steps of methods as in the reading "as published"; a test compares the solver with them
ROWS: Mapping[str, StepFunction] = {
    "jt": jt_step,
    "jc": jc_step,
    "tp": partial(tp_step, compensates=True),
    "sd": partial(sd_step, by_direction=False),
}


def run_variant(
    robot: RobotModel, step: StepFunction, goals: Array, starts: Array, smallest_step: float = 0.0
) -> Outcomes:
    """Repeat a method's step from each start until its goal is reached; return the outcomes.

    A run ends if the norm of the pose error is below TOLERANCE, or after MAX_ITERATIONS steps.

    Args:
        robot: Robot of the starts and goals.
        step: Function that computes one step of the method.
        goals: (b, 4, 4) goal poses.
        starts: (b, n) start configurations [rad].
        smallest_step: Minimum norm of a step [rad]; a run also ends after a smaller step.
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
