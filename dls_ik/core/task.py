"""Tasks: which pose errors of which tips count, and the Jacobian of those.

A frame is the base's axes, or those of the target. In the frame, E is the rotation that is still
missing: R_d R^T along the base's axes, R^T R_d along the target's. How it becomes rows:

VECTOR (three axes count): the rotation vector of E.
SWING (two axes): the shortest rotation that brings the frame's third axis, as the tip has it, onto
the target's; turning about that axis is free.
TWIST (one axis): the angle of E about that axis, whatever it turns about the others.
EULER: the angles of the tip as the target sees it, by Rx Ry Rz, with the sign of E.

Rows with a tolerance: core/slack.py.
"""

from math import sqrt

import numpy as np

from dls_ik.core.jit import inlined, kernel, spliced
from dls_ik.core.kinematics import jacobian
from dls_ik.core.se3 import rotation_vector
from dls_ik.core.slack import dead_zone
from dls_ik.core.turning import (
    euler,
    euler_gradient,
    missing_rotation,
    swing,
    swing_gradient,
    twist,
    twist_gradient,
    unit,
    vector_gradient,
)
from dls_ik.core.types import Array, Chain, Task

FREE, VECTOR, SWING, TWIST, EULER = range(5)


@kernel
def task_error(
    task: Task, T_d: Array, T: Array, relative: Array, whole: Array, e: Array
) -> tuple[float, float]:
    """Write the scaled error of every row; return the largest position and rotation error.

    Args:
        T_d: (k, 4, 4) desired poses, T: (k, 3, 4) actual poses.
        relative: (3, 3) scratch.
        whole: (r,) out: the scaled errors as they are [m].
        e: (r,) out: and with the tolerances taken off.

    Returns:
        Of the components that count, and beyond their tolerances, the longest position error of a
        tip [m] and the largest rotation error of one [rad].
    """
    k, r = T.shape[0], e.shape[0]
    errors, squares = np.empty((k, 6)), np.zeros((k, 2))
    for p in range(k):
        _position_error(task.in_target[p], T_d[p], T[p], errors[p])
        _rotation_error(task, p, T_d[p], T[p], relative, errors[p, 3:])
    for i in range(r):
        e[i] = errors[task.tip[i], task.component[i]]
        whole[i] = task.weight[i] * e[i]
    if task.has_slack:
        beyond = np.empty(r)
        dead_zone(task, e, beyond)
        _add_squares(task, beyond, squares)
    else:
        _add_squares(task, e, squares)
    for i in range(r):
        e[i] *= task.weight[i]
    return sqrt(squares[:, 0].max()), sqrt(squares[:, 1].max())


@spliced
def _add_squares(task: Task, e: Array, squares: Array) -> None:
    for i in range(e.shape[0]):
        squares[task.tip[i], task.component[i] // 3] += e[i] * e[i]


@kernel
def task_jacobian(
    chain: Chain, task: Task, T_d: Array, axes: Array, T: Array, relative: Array, J: Array
) -> None:
    """Write the Jacobian of the scaled error: J dq is what a small step takes off it.

    Exact for positions, TWIST and EULER, and for all rotations with a tolerance, but as if there
    were none; :func:`dls_ik.core.slack.release` then makes it that of the error beyond. For other
    VECTOR and SWING it takes the angular velocity along the
    axes of the frame, as is usual: exact at the target; anywhere, J^T e is down the gradient of
    half the squared error if the weights of a tip's rotation are equal.

    Args:
        T_d: (k, 4, 4) desired poses.
        axes: (m, 2, 3) and T: (k, 3, 4) from :func:`dls_ik.core.kinematics.forward`.
        relative: (3, 3) scratch.
        J: (r, n) out.
    """
    n = J.shape[1]
    J_tips, direction = np.empty((6 * T.shape[0], n)), np.empty(3)
    jacobian(chain, axes, T, J_tips)
    for i in range(task.tip.shape[0]):
        p, component = task.tip[i], task.component[i]
        _direction(task, p, component, T_d[p], T[p], relative, direction)
        row = 6 * p + 3 * (component // 3)
        for j in range(n):
            along = 0.0
            for c in range(3):
                along += direction[c] * J_tips[row + c, j]
            J[i, j] = task.weight[i] * along


@inlined
def _position_error(in_target: bool, T_d: Array, T: Array, out: Array) -> None:
    """Write what is missing along the axes of the frame [m], the first three of `out`."""
    x, y, z = T_d[0, 3] - T[0, 3], T_d[1, 3] - T[1, 3], T_d[2, 3] - T[2, 3]
    out[0], out[1], out[2] = x, y, z
    if in_target:
        for c in range(3):
            out[c] = T_d[0, c] * x + T_d[1, c] * y + T_d[2, c] * z


@kernel
def _rotation_error(task: Task, p: int, T_d: Array, T: Array, relative: Array, out: Array) -> None:
    """Write the rotation error along the axes of the frame (3,) [rad]; zero for FREE."""
    turning, axis = task.turning[p], task.axis[p]
    out[0], out[1], out[2] = 0.0, 0.0, 0.0
    if turning == FREE:
        return
    missing_rotation(task.in_target[p], T_d, T, relative)
    if turning == VECTOR:
        rotation_vector(relative, out)
    elif turning == SWING:
        swing(relative, axis, out)
    elif turning == EULER:
        euler(relative, out)
    else:
        out[axis] = twist(relative, axis)


@inlined
def _direction(
    task: Task, p: int, component: int, T_d: Array, T: Array, relative: Array, out: Array
) -> None:
    """Write the direction (3,), in the base frame, along which a row takes the tip's velocity."""
    turning, in_target = task.turning[p], task.in_target[p]
    x, y, z = unit(component % 3)
    if component >= 3 and (task.exact[p] or turning >= TWIST):
        missing_rotation(in_target, T_d, T, relative)
        x, y, z = _gradient(turning, task.axis[p], relative, component - 3)
    out[0], out[1], out[2] = x, y, z
    if in_target:
        for c in range(3):
            out[c] = T_d[c, 0] * x + T_d[c, 1] * y + T_d[c, 2] * z


@inlined
def _gradient(turning: int, axis: int, E: Array, c: int) -> tuple[float, float, float]:
    """Return g of row `c` of a rotation, along the axes of the frame."""
    if turning == TWIST:
        return twist_gradient(E, axis)
    if turning == SWING:
        return swing_gradient(E, axis, c)
    error = np.empty(3)
    if turning == EULER:
        euler(E, error)
        return euler_gradient(error, c)
    rotation_vector(E, error)
    return vector_gradient(error, c)
