# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tasks: errors of the rows that count, their Jacobian, and their tolerances.

A frame is the axes of the base or of the target. In the frame, E is the rotation still missing:
R_d R^T along the base's axes, R^T R_d along the target's. Its rows:

VECTOR (three axes count): the rotation vector of E.
SWING (two axes): the shortest rotation that brings the frame's third axis, as the tip has it, onto
the target's; turning about that axis is free.
TWIST (one axis): the angle of E about that axis, whatever the rotation about the others.
EULER: the angles of the tip as the target sees it, by Rx Ry Rz, with the sign of E.
SINE (three axes): the axis of E times the sine of its angle. It falls beyond a quarter turn and is
zero at half a turn; the rotation error that is compared with a tolerance is the angle itself.
"""

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.jit import allocating, force_inline, kernel
from dls_ik.core.kinematics import forward, jacobian
from dls_ik.core.se3 import (
    euler,
    euler_gradient,
    half_skew,
    missing_rotation,
    rotation_vector,
    swing,
    swing_gradient,
    twist,
    twist_gradient,
    unit,
    vector_gradient,
)
from dls_ik.core.types import Array, Chain, GeneralProblem, StopCriteria, TaskParams, Workspace

FREE, VECTOR, SWING, TWIST, EULER, SINE = range(6)


@allocating
def task_error(
    task: TaskParams, T_d: Array, T: Array, relative: Array, full: Array, e: Array
) -> tuple[float, float]:
    """Write the scaled error of every row; return the largest position and rotation error.

    Args:
        T_d: (k, 4, 4) desired poses, T: (k, 3, 4) actual poses.
        relative: (3, 3) scratch.
        full: (r,) out: the scaled errors [m].
        e: (r,) out: the scaled errors with the tolerances taken off [m].

    Returns:
        The longest position error of a tip [m] and the largest rotation error of one [rad], of the
        components that count and beyond their tolerances.
    """
    k, r = T.shape[0], e.shape[0]
    errors, squares = np.empty((k, 6)), np.zeros((k, 2))
    for p in range(k):
        _position_error(task.in_target[p], T_d[p], T[p], errors[p])
        _rotation_error(task, p, T_d[p], T[p], relative, errors[p, 3:])
    for i in range(r):
        e[i] = errors[task.tip[i], task.component[i]]
        full[i] = task.weight[i] * e[i]
    if task.has_tolerance:
        beyond = np.empty(r)
        subtract_tolerances(task, e, beyond)
        _add_squares(task, beyond, squares)
    else:
        _add_squares(task, e, squares)
    for p in range(k):
        if task.rotation_kind[p] == SINE:
            missing_rotation(task.in_target[p], T_d[p], T[p], relative)
            squares[p, 1] = half_skew(relative, errors[p, 3:]) ** 2
    for i in range(r):
        e[i] *= task.weight[i]
    position, rotation = 0.0, 0.0
    for p in range(k):  # numba's own maximum has each process that loads the kernel import SciPy
        position, rotation = max(position, squares[p, 0]), max(rotation, squares[p, 1])
    return sqrt(position), sqrt(rotation)


@force_inline
def _add_squares(task: TaskParams, e: Array, squares: Array) -> None:
    for i in range(e.shape[0]):
        squares[task.tip[i], task.component[i] // 3] += e[i] * e[i]


@allocating
def task_jacobian(
    chain: Chain, task: TaskParams, T_d: Array, axes: Array, T: Array, relative: Array, J: Array
) -> None:
    """Write the Jacobian of the scaled error: a small step dq reduces the error by J dq.

    Exact for positions, TWIST and EULER, and for all rotations with a tolerance, but as if there
    were none; :func:`release` then makes it that of the error beyond. For other
    VECTOR, SWING and SINE it takes the angular velocity along the
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


@force_inline
def _position_error(in_target: bool, T_d: Array, T: Array, out: Array) -> None:
    """Write the position error along the axes of the frame [m], the first three of `out`."""
    x, y, z = T_d[0, 3] - T[0, 3], T_d[1, 3] - T[1, 3], T_d[2, 3] - T[2, 3]
    out[0], out[1], out[2] = x, y, z
    if in_target:
        for c in range(3):
            out[c] = T_d[0, c] * x + T_d[1, c] * y + T_d[2, c] * z


@kernel
def _rotation_error(
    task: TaskParams, p: int, T_d: Array, T: Array, relative: Array, out: Array
) -> None:
    """Write the rotation error along the axes of the frame (3,) [rad]; zero for FREE."""
    turning, axis = task.rotation_kind[p], task.axis[p]
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
    elif turning == SINE:
        half_skew(relative, out)
    else:
        out[axis] = twist(relative, axis)


@force_inline
def _direction(
    task: TaskParams, p: int, component: int, T_d: Array, T: Array, relative: Array, out: Array
) -> None:
    """Write the direction (3,), in the base frame, along which a row takes the tip's velocity."""
    turning, in_target = task.rotation_kind[p], task.in_target[p]
    x, y, z = unit(component % 3)
    is_exact = task.exact_derivative[p] or turning in (TWIST, EULER)
    if component >= 3 and is_exact:
        missing_rotation(in_target, T_d, T, relative)
        x, y, z = _gradient(turning, task.axis[p], relative, component - 3)
    out[0], out[1], out[2] = x, y, z
    if in_target:
        for c in range(3):
            out[c] = T_d[c, 0] * x + T_d[c, 1] * y + T_d[c, 2] * z


@allocating
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


# Tolerances ---------------------------------------------------------------------------------------
# An error within the tolerance of its row counts as zero, and leaves the arm free to move. A row
# beyond its tolerance is brought a little inside, so that a few steps suffice and the tolerance is
# kept to the last digit. A row inside has no error until a step would take it out again: then that
# step is solved again, and brings it to the border. Round rows have one tolerance for the length of
# their vector.


@allocating
def subtract_tolerances(task: TaskParams, e: Array, beyond: Array) -> None:
    """Take the tolerances off the errors of the rows, not scaled by their weights.

    Args:
        e: (r,) in: the errors, out: what a step is to take off.
        beyond: (r,) out: the errors beyond the tolerances.
    """
    r = e.shape[0]
    sizes = np.empty(r)
    for i in range(r):
        sizes[i], beyond[i] = _size(task, i, e), e[i]
    for i in range(r):
        tolerance = task.tolerance[i]
        if tolerance > 0.0:
            share = sizes[i] > tolerance
            beyond[i] = e[i] * ((sizes[i] - tolerance) / sizes[i]) if share else 0.0
            e[i] = e[i] * ((sizes[i] - task.inner_tolerance[i]) / sizes[i]) if share else 0.0


@kernel
def release(task: TaskParams, e: Array, held: NDArray[np.bool_], J: Array) -> None:
    """Make J (r, n) the derivative of the errors after :func:`subtract_tolerances`.

    It is zero in rows inside their tolerance. Round ones outside are pulled toward the middle, and
    turn about it in proportion to their distance from the border: n n^T + (1 - s) (I - n n^T), s =
    aim / size.

    Args:
        e: (r,) scaled errors that a step is to take off.
        held: (r,) rows to leave as they are.
    """
    for i in range(e.shape[0]):
        if task.tolerance[i] > 0.0 and not held[i]:
            if task.round[i]:
                if _is_first(task, i):
                    _release_round(task, i, e, J)
            elif e[i] == 0.0:
                for j in range(J.shape[1]):
                    J[i, j] = 0.0


@allocating
def hold(
    task: TaskParams, J: Array, full: Array, dq: Array, e: Array, held: NDArray[np.bool_]
) -> bool:
    """Hold rows that are inside their tolerance and that a step would take out of it.

    Args:
        J: (r, n) of all rows, full: (r,) their errors with tolerances, both scaled.
        dq: (n,) the step.
        e: (r,) in and out: error that a step is to take off; of held rows, up to the border.
        held: (r,) in and out.

    Returns:
        True if another row is held.
    """
    r = e.shape[0]
    after, out = np.empty(r), False
    for i in range(r):
        after[i] = full[i]
        for j in range(dq.shape[0]):
            after[i] -= J[i, j] * dq[j]
        after[i] /= task.weight[i]
    for i in range(r):
        if task.tolerance[i] > 0.0 and not held[i] and _is_inside(task, i, e):
            size = _size(task, i, after)
            if size > task.tolerance[i]:
                held[i], out = True, True
    for i in range(r):
        if held[i] and e[i] == 0.0:
            e[i] = full[i] - task.weight[i] * after[i] * (
                task.inner_tolerance[i] / _size(task, i, after)
            )
    return out


@force_inline
def _is_inside(task: TaskParams, i: int, e: Array) -> bool:
    """Test if a row, or all of a round set, has no error left."""
    return _size(task, i, e) == 0.0


@allocating
def _release_round(task: TaskParams, first: int, e: Array, J: Array) -> None:
    along, size = np.zeros(J.shape[1]), 0.0
    for i in range(first, e.shape[0]):
        if _is_with(task, first, i):
            error = e[i] / task.weight[i]
            size += error * error
            for j in range(along.shape[0]):
                along[j] += error * J[i, j] / task.weight[i]
    size = sqrt(size)
    s = task.inner_tolerance[first] / (size + task.inner_tolerance[first])
    for i in range(first, e.shape[0]):
        if _is_with(task, first, i):
            for j in range(along.shape[0]):
                if size == 0.0:
                    J[i, j] = 0.0
                else:
                    J[i, j] = (1.0 - s) * J[i, j] + s * e[i] * along[j] / (size * size)


@force_inline
def _size(task: TaskParams, i: int, e: Array) -> float:
    """Return the size of an error that the tolerance of a row is compared with."""
    if not task.round[i]:
        return abs(e[i])
    total = 0.0
    for j in range(e.shape[0]):
        if _is_with(task, i, j):
            total += e[j] * e[j]
    return sqrt(total)


@force_inline
def _is_with(task: TaskParams, i: int, j: int) -> bool:
    """Test if two rows are of one round tolerance."""
    return task.round[i] and task.round[j] and task.group[i] == task.group[j]


@force_inline
def _is_first(task: TaskParams, i: int) -> bool:
    for j in range(i):
        if _is_with(task, i, j):
            return False
    return True


# The task at a configuration ----------------------------------------------------------------------


@kernel
def observe(
    chain: Chain, general: GeneralProblem, T_d: Array, q: Array, work: Workspace
) -> tuple[float, float]:
    """Write the scaled error at `q`; return the largest position [m] and rotation error [rad].

    Args:
        T_d: (k, 4, 4) desired poses, q: (n,).
    """
    forward(chain, q, work.axes, work.T)
    return task_error(general.task, T_d, work.T, work.relative, work.full_error, work.e)


@kernel
def jacobian_there(chain: Chain, general: GeneralProblem, T_d: Array, work: Workspace) -> None:
    """Write the Jacobian of the scaled error at the configuration last observed."""
    task_jacobian(chain, general.task, T_d, work.axes, work.T, work.relative, work.J)


@force_inline
def scaled_error(stop: StopCriteria, error: Array) -> float:
    """Squared norm of the scaled error [m^2] from (position [m], rotation error [rad])."""
    return error[0] ** 2 + (stop.rotation_weight * error[1]) ** 2


@force_inline
def is_reached(stop: StopCriteria, position: float, rotation: float, error: float) -> bool:
    """Test if all errors are within their tolerances; `error` is the norm of the scaled one."""
    within = position <= stop.position_tolerance and rotation <= stop.rotation_tolerance
    return within and error <= stop.error_tolerance
