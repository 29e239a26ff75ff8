# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tasks: errors of the rows that count, their Jacobian, and their tolerances.

The frame of a task has the axes of the base or of the target. In this frame, E is the remaining
rotation: R_d R^T along the axes of the base, R^T R_d along those of the target. Its rows are:

ROTATION_VECTOR (three axes count): the rotation vector of E.
ROTATION_SWING (two axes): the shortest rotation that aligns the third axis of the tip with that of
the target; rotation about this axis is free.
ROTATION_TWIST (one axis): the angle of E about the axis; rotation about the other axes is free.
ROTATION_EULER: the angles Rx Ry Rz of the tip in the target, with the sign of E.
ROTATION_SINE (three axes): the axis of E times the sine of its angle. The error decreases beyond a
quarter turn and is zero at half a turn; the rotation error that is compared with a tolerance is the
angle.
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

ROTATION_FREE, ROTATION_VECTOR, ROTATION_SWING, ROTATION_TWIST, ROTATION_EULER, ROTATION_SINE = (
    range(6)
)


@allocating
def task_error(
    task: TaskParams, T_d: Array, T: Array, relative: Array, full: Array, e: Array
) -> tuple[float, float]:
    """Write the scaled error of every row; return the largest position and rotation error.

    Args:
        T_d: (k, 4, 4) desired poses.
        T: (k, 3, 4) actual poses.
        relative: (3, 3) scratch.
        full: (r,) scaled errors, written [m].
        e: (r,) scaled errors less the tolerances, written [m].

    Returns:
        The largest position error [m] and rotation error [rad] of all tips, for the components that
        count and beyond their tolerances.
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
        if task.rotation_kind[p] == ROTATION_SINE:
            missing_rotation(task.in_target[p], T_d[p], T[p], relative)
            squares[p, 1] = half_skew(relative, errors[p, 3:]) ** 2
    for i in range(r):
        e[i] *= task.weight[i]
    position, rotation = 0.0, 0.0
    for p in range(k):  # the maximum of numba would import SciPy whenever the kernel is loaded
        position, rotation = max(position, squares[p, 0]), max(rotation, squares[p, 1])
    return sqrt(position), sqrt(rotation)


@force_inline
def _add_squares(task: TaskParams, e: Array, squares: Array) -> None:
    """Add the squared errors of the rows to the position and rotation of each tip."""
    for i in range(e.shape[0]):
        squares[task.tip[i], task.component[i] // 3] += e[i] * e[i]


@allocating
def task_jacobian(
    chain: Chain, task: TaskParams, T_d: Array, axes: Array, T: Array, relative: Array, J: Array
) -> None:
    """Write the Jacobian of the scaled error: a small step dq reduces the error by J dq.

    The Jacobian is exact for positions, ROTATION_TWIST and ROTATION_EULER, and for all rotations
    with a tolerance. It ignores tolerances; :func:`release` then makes it the Jacobian of the error
    beyond them. For ROTATION_VECTOR, ROTATION_SWING and ROTATION_SINE without a tolerance, the rows
    are the angular velocity along the axes of the frame, as usual. These rows are exact at the
    target. Everywhere, J^T e is the negative gradient of half the squared error if the rotation
    rows of a tip have equal weights.

    Args:
        T_d: (k, 4, 4) desired poses.
        axes: (m, 2, 3) and T: (k, 3, 4) from :func:`dls_ik.core.kinematics.forward`.
        relative: (3, 3) scratch.
        J: (r, n) Jacobian, written.
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
    """Write the position error along the axes of the frame [m] to the first entries of `out`."""
    x, y, z = T_d[0, 3] - T[0, 3], T_d[1, 3] - T[1, 3], T_d[2, 3] - T[2, 3]
    out[0], out[1], out[2] = x, y, z
    if in_target:
        for c in range(3):
            out[c] = T_d[0, c] * x + T_d[1, c] * y + T_d[2, c] * z


@kernel
def _rotation_error(
    task: TaskParams, p: int, T_d: Array, T: Array, relative: Array, out: Array
) -> None:
    """Write the rotation error along the axes of the frame (3,) [rad]; zero for ROTATION_FREE."""
    turning, axis = task.rotation_kind[p], task.axis[p]
    out[0], out[1], out[2] = 0.0, 0.0, 0.0
    if turning == ROTATION_FREE:
        return
    missing_rotation(task.in_target[p], T_d, T, relative)
    if turning == ROTATION_VECTOR:
        rotation_vector(relative, out)
    elif turning == ROTATION_SWING:
        swing(relative, axis, out)
    elif turning == ROTATION_EULER:
        euler(relative, out)
    elif turning == ROTATION_SINE:
        half_skew(relative, out)
    else:
        out[axis] = twist(relative, axis)


@force_inline
def _direction(
    task: TaskParams, p: int, component: int, T_d: Array, T: Array, relative: Array, out: Array
) -> None:
    """Write the direction (3,), in the base frame, along which a row measures the velocity."""
    turning, in_target = task.rotation_kind[p], task.in_target[p]
    x, y, z = unit(component % 3)
    is_exact = task.exact_derivative[p] or turning in (ROTATION_TWIST, ROTATION_EULER)
    if component >= 3 and is_exact:
        missing_rotation(in_target, T_d, T, relative)
        x, y, z = _gradient(turning, task.axis[p], relative, component - 3)
    out[0], out[1], out[2] = x, y, z
    if in_target:
        for c in range(3):
            out[c] = T_d[c, 0] * x + T_d[c, 1] * y + T_d[c, 2] * z


@allocating
def _gradient(turning: int, axis: int, E: Array, c: int) -> tuple[float, float, float]:
    """Return the gradient g of row `c` of a rotation, along the axes of the frame."""
    if turning == ROTATION_TWIST:
        return twist_gradient(E, axis)
    if turning == ROTATION_SWING:
        return swing_gradient(E, axis, c)
    error = np.empty(3)
    if turning == ROTATION_EULER:
        euler(E, error)
        return euler_gradient(error, c)
    rotation_vector(E, error)
    return vector_gradient(error, c)


# Tolerances ---------------------------------------------------------------------------------------
# An error within the tolerance of its row counts as zero and does not restrict the arm. A row
# beyond its tolerance is moved slightly inside, so that few steps suffice and rounding does not
# violate the tolerance. A row inside has no error unless a step would violate its tolerance: the
# step is then solved again and moves the row to the border. Round rows have one tolerance for the
# length of their vector.


@allocating
def subtract_tolerances(task: TaskParams, e: Array, beyond: Array) -> None:
    """Subtract the tolerances from the errors of the rows, which are not scaled by weights.

    Args:
        e: (r,) errors, replaced by the errors that a step corrects [m or rad].
        beyond: (r,) errors beyond the tolerances, written [m or rad].
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

    Rows inside their tolerance become zero. Round rows beyond their tolerance are multiplied by
    n n^T + (1 - s) (I - n n^T) with the unit vector n of the error, and s the ratio of the inner
    tolerance to the length of the error.

    Args:
        e: (r,) scaled errors that a step corrects.
        held: (r,) rows to leave unchanged.
        J: (r, n) Jacobian, read and written.
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
    """Hold rows inside their tolerance whose tolerance a step would violate.

    Args:
        J: (r, n) scaled Jacobian of all rows.
        full: (r,) scaled errors without subtraction of the tolerances.
        dq: (n,) the step [rad or m].
        e: (r,) errors that a step corrects, read and written; for held rows, up to the border.
        held: (r,) held rows, read and written.

    Returns:
        Whether a further row is held.
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
    """Return whether a row, or its set of round rows, has no remaining error."""
    return _size(task, i, e) == 0.0


@allocating
def _release_round(task: TaskParams, first: int, e: Array, J: Array) -> None:
    """Apply :func:`release` to the round rows of one tip, given the first of these rows."""
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
    """Return the size of the error of a row, for comparison with the tolerance."""
    if not task.round[i]:
        return abs(e[i])
    total = 0.0
    for j in range(e.shape[0]):
        if _is_with(task, i, j):
            total += e[j] * e[j]
    return sqrt(total)


@force_inline
def _is_with(task: TaskParams, i: int, j: int) -> bool:
    """Return whether two rows share one round tolerance."""
    return task.round[i] and task.round[j] and task.group[i] == task.group[j]


@force_inline
def _is_first(task: TaskParams, i: int) -> bool:
    """Return whether row i is the first row of its round tolerance."""
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
        T_d: (k, 4, 4) desired poses.
        q: (n,) joint positions [rad or m].
    """
    forward(chain, q, work.axes, work.T)
    return task_error(general.task, T_d, work.T, work.relative, work.full_error, work.e)


@kernel
def jacobian_there(chain: Chain, general: GeneralProblem, T_d: Array, work: Workspace) -> None:
    """Write the Jacobian of the scaled error at the configuration last observed to ``work.J``."""
    task_jacobian(chain, general.task, T_d, work.axes, work.T, work.relative, work.J)


@force_inline
def scaled_error(stop: StopCriteria, error: Array) -> float:
    """Return the squared norm of the scaled error [m^2].

    Args:
        error: (2,) position error [m] and rotation error [rad].
    """
    return error[0] ** 2 + (stop.rotation_weight * error[1]) ** 2


@force_inline
def is_reached(stop: StopCriteria, position: float, rotation: float, error: float) -> bool:
    """Return whether all errors are within their tolerances.

    Args:
        position: Position error [m].
        rotation: Rotation error [rad].
        error: Norm of the scaled error [m].
    """
    within = position <= stop.position_tolerance and rotation <= stop.rotation_tolerance
    return within and error <= stop.error_tolerance
