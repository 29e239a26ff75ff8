# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tasks: the error of the tips, its Jacobian, and its tolerances.

The error of a task has up to six rows per tip: those components of position and rotation that the
task controls. The components of a tip refer to the task frame, whose axes are those of the base or
those of the target. E is the rotation that the tip must still make, expressed in the task frame:
R_d R^T with the axes of the base, R^T R_d with the axes of the target (R_d desired, R actual
rotation). The rotation rows of a tip depend on the rotation kind:

ROTATION_FREE: no rotation rows.
ROTATION_VECTOR (three axes controlled): the rotation vector of E.
ROTATION_SWING (two axes controlled): the shortest rotation that aligns the third axis of the tip
with the third axis of the target; rotation about this axis is free.
ROTATION_TWIST (one axis controlled): the angle of E about this axis; other rotation is free.
ROTATION_EULER: the angles Rx Ry Rz of the tip relative to the target, with the sign of E.
ROTATION_SINE (three axes controlled): the axis of E times the sine of the angle of E. This error
decreases beyond a quarter turn and is zero at half a turn; a tolerance is compared with the angle
instead.

The scaled error has the unit m: each row is multiplied by its weight (rotation rows: [m/rad]).
"""

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.jit import allocating, force_inline, kernel
from dls_ik.core.kinematics import forward, jacobian, jacobian_change
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
    """Write the scaled error of the task; return the largest position and rotation error.

    Args:
        T_d: (k, 4, 4) desired poses of the tips.
        T: (k, 3, 4) actual poses of the tips.
        relative: (3, 3) scratch.
        full: (r,) scaled error without regard to tolerances, written [m].
        e: (r,) scaled error after :func:`subtract_tolerances`, written [m].

    Returns:
        The largest position error [m] and the largest rotation error [rad] of all tips. Only the
        rows of the task contribute, and only with the part that exceeds their tolerances.
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
    """Add the squared error of each row to the sum of its tip.

    Args:
        task: The task with r rows.
        e: (r,) errors without weights [m or rad].
        squares: (k, 2) sums for the position and the rotation of each tip, read and written.
    """
    for i in range(e.shape[0]):
        squares[task.tip[i], task.component[i] // 3] += e[i] * e[i]


@allocating
def task_jacobian(
    chain: Chain, task: TaskParams, T_d: Array, axes: Array, T: Array, relative: Array, J: Array
) -> None:
    """Write the Jacobian J of the scaled error e: a small step dq changes e to e - J dq.

    The position rows of J are exact. The rotation rows are exact for the kinds of rotation error
    ROTATION_TWIST and ROTATION_EULER, and for every kind if the rotation has a tolerance. For
    ROTATION_VECTOR, ROTATION_SWING and ROTATION_SINE without a tolerance, the rotation rows are the
    angular velocity of the tip along the axes of the task frame, which is the exact derivative only
    at the target. Even then, J^T e is the negative gradient of |e|^2 / 2 at every configuration if
    all rotation rows of the tip have equal weights. J is the Jacobian of the error without
    tolerances; :func:`release` takes tolerances into account.

    Args:
        chain: The chain of the arm.
        task: Definition of the r rows of the error.
        T_d: (k, 4, 4) desired poses.
        axes: (m, 2, 3) axes of the moving elements from :func:`dls_ik.core.kinematics.forward`.
        T: (k, 3, 4) poses of the tips from :func:`dls_ik.core.kinematics.forward`.
        relative: (3, 3) scratch.
        J: (r, n) Jacobian, written.
    """
    J_tips = np.empty((6 * T.shape[0], J.shape[1]))
    jacobian(chain, axes, T, J_tips)
    rows_from_tips(task, T_d, T, J_tips, relative, J)


@allocating
def rows_from_tips(
    task: TaskParams, T_d: Array, T: Array, J_tips: Array, relative: Array, J: Array
) -> None:
    """Write the Jacobian of the scaled error for given geometric Jacobians of the tips.

    Args:
        task: Definition of the r rows of the error.
        T_d: (k, 4, 4) desired poses.
        T: (k, 3, 4) poses of the tips.
        J_tips: (6 k, n) geometric Jacobians: for each tip three linear and three angular rows.
        relative: (3, 3) scratch.
        J: (r, n) Jacobian, see :func:`task_jacobian`, written.
    """
    direction = np.empty(3)
    for i in range(task.tip.shape[0]):
        p, component = task.tip[i], task.component[i]
        _direction(task, p, component, T_d[p], T[p], relative, direction)
        row = 6 * p + 3 * (component // 3)
        for j in range(J.shape[1]):
            along = 0.0
            for c in range(3):
                along += direction[c] * J_tips[row + c, j]
            J[i, j] = task.weight[i] * along


@allocating
def jacobian_derivatives(
    chain: Chain,
    task: TaskParams,
    T_d: Array,
    axes: Array,
    T: Array,
    relative: Array,
    left: Array,
    K: Array,
) -> None:
    """Write the derivatives of J^T left, with J the Jacobian of :func:`task_jacobian`.

    The axes along which the rows of J are taken count as constant. They are constant for all tasks
    whose rotation rows are the angular velocity of the tip, see :func:`task_jacobian`.

    Args:
        chain: The chain of the arm.
        task: Definition of the r rows of the error.
        T_d: (k, 4, 4) desired poses.
        axes: (m, 2, 3) axes of the moving elements from :func:`dls_ik.core.kinematics.forward`.
        T: (k, 3, 4) poses of the tips from :func:`dls_ik.core.kinematics.forward`.
        relative: (3, 3) scratch.
        left: (r,) vector.
        K: (n, n) derivative of entry j of J^T left by each joint variable in row j, written.
    """
    along, direction = np.zeros((T.shape[0], 6)), np.empty(3)
    for i in range(left.shape[0]):
        p, component = task.tip[i], task.component[i]
        _direction(task, p, component, T_d[p], T[p], relative, direction)
        for c in range(3):
            along[p, 3 * (component // 3) + c] += task.weight[i] * left[i] * direction[c]
    jacobian_change(chain, axes, T, along, K)


@force_inline
def _position_error(in_target: bool, T_d: Array, T: Array, out: Array) -> None:
    """Write the position error of a tip [m] to the first three entries of `out`.

    Args:
        in_target: Whether the error is expressed along the axes of the target, not of the base.
        T_d: (4, 4) desired pose.
        T: (3, 4) actual pose.
        out: Array of at least three entries, written.
    """
    x, y, z = T_d[0, 3] - T[0, 3], T_d[1, 3] - T[1, 3], T_d[2, 3] - T[2, 3]
    out[0], out[1], out[2] = x, y, z
    if in_target:
        for c in range(3):
            out[c] = T_d[0, c] * x + T_d[1, c] * y + T_d[2, c] * z


@kernel
def _rotation_error(
    task: TaskParams, p: int, T_d: Array, T: Array, relative: Array, out: Array
) -> None:
    """Write the rotation error (3,) [rad] of tip `p` in the task frame to `out`.

    The error is zero for ROTATION_FREE.

    Args:
        task: The task, which gives the rotation kind of the tip.
        p: Index of the tip.
        T_d: (4, 4) desired pose of the tip.
        T: (3, 4) actual pose of the tip.
        relative: (3, 3) scratch.
        out: (3,) rotation error, written.
    """
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
    """Write the vector d whose product with the velocity of a tip is the rate of an error row.

    The row decreases at the rate d . v for a position, with v the linear velocity of the tip, or
    d . w for a rotation, with w the angular velocity.

    Args:
        task: The task.
        p: Index of the tip.
        component: Component of the row: 0 to 2 position, 3 to 5 rotation.
        T_d: (4, 4) desired pose of the tip.
        T: (3, 4) actual pose of the tip.
        relative: (3, 3) scratch.
        out: (3,) vector d in the base frame, written.
    """
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
    """Return the vector g in the task frame: a rotation row decreases at the rate g . w.

    w is the angular velocity of the tip in the task frame.

    Args:
        turning: Rotation kind: ROTATION_VECTOR, ROTATION_SWING, ROTATION_TWIST or ROTATION_EULER.
        axis: Pointing axis (ROTATION_SWING) or rotation axis (ROTATION_TWIST), 0 to 2.
        E: (3, 3) remaining rotation in the task frame.
        c: Index of the row, 0 to 2.
    """
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
# An error within the tolerance of its row counts as zero and does not restrict the arm. If the
# error exceeds the tolerance, the step reduces the error to the inner tolerance, which is slightly
# smaller than the tolerance: few steps then suffice, and rounding does not violate the tolerance.
# If a step would make an error exceed its tolerance, the row is held: the step is solved again with
# a correction that moves the error to the inner tolerance. The position rows of a tip may be round:
# they have one tolerance, for the length of the vector of these rows.


@allocating
def subtract_tolerances(task: TaskParams, e: Array, beyond: Array) -> None:
    """Subtract the tolerances from errors that are not yet multiplied by weights.

    Args:
        task: The task, with a tolerance and a smaller inner tolerance for each row.
        e: (r,) errors, read, and replaced by the errors that a step corrects [m or rad]: zero
            within the tolerance, else the part that exceeds the inner tolerance.
        beyond: (r,) part of each error that exceeds the tolerance, written [m or rad].
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
    """Make J the derivative of the errors that :func:`subtract_tolerances` leaves.

    Rows of J whose error is within the tolerance become zero. Round rows (position rows with one
    tolerance for their length) that exceed their tolerance are multiplied by
    n n^T + (1 - s) (I - n n^T), with n the unit vector along the error and s the ratio of the inner
    tolerance to the length of the error.

    Args:
        task: The task.
        e: (r,) scaled errors that a step corrects [m].
        held: (r,) rows of J to leave unchanged.
        J: (r, n) Jacobian of the scaled error without tolerances, read and written.
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
    """Hold the rows whose error is within the tolerance now but would exceed it after a step.

    Args:
        task: The task.
        J: (r, n) Jacobian of the scaled error without tolerances.
        full: (r,) scaled errors without subtraction of the tolerances [m].
        dq: (n,) the step [rad or m].
        e: (r,) scaled errors that a step corrects [m], read and written: rows that become held
            receive the correction that moves their error to the inner tolerance.
        held: (r,) whether each row is held, read and written.

    Returns:
        Whether at least one more row is held than before.
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
    """Return whether row i of e (r,), with all rows that share its round tolerance, is zero."""
    return _size(task, i, e) == 0.0


@allocating
def _release_round(task: TaskParams, first: int, e: Array, J: Array) -> None:
    """Apply :func:`release` to the round rows of one tip.

    Args:
        task: The task.
        first: Index of the first of these rows.
        e: (r,) scaled errors that a step corrects [m].
        J: (r, n) Jacobian, read and written.
    """
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
    """Return the size of an error that is compared with the tolerance of row i [m or rad].

    The size is the absolute error of row i of e (r,); for a round row it is the length of the
    vector of all rows that share its tolerance.
    """
    if not task.round[i]:
        return abs(e[i])
    total = 0.0
    for j in range(e.shape[0]):
        if _is_with(task, i, j):
            total += e[j] * e[j]
    return sqrt(total)


@force_inline
def _is_with(task: TaskParams, i: int, j: int) -> bool:
    """Return whether rows i and j share one round tolerance, for the length of their vector."""
    return task.round[i] and task.round[j] and task.group[i] == task.group[j]


@force_inline
def _is_first(task: TaskParams, i: int) -> bool:
    """Return whether row i is the first of the rows that share its round tolerance."""
    for j in range(i):
        if _is_with(task, i, j):
            return False
    return True


# The task at a configuration ----------------------------------------------------------------------


@kernel
def observe(
    chain: Chain, general: GeneralProblem, T_d: Array, q: Array, work: Workspace
) -> tuple[float, float]:
    """Compute the forward kinematics and the scaled error at `q`, and write both to `work`.

    Args:
        chain: The chain of the arm.
        general: Contains the definition of the task, see :class:`TaskParams`.
        T_d: (k, 4, 4) desired poses.
        q: (n,) joint positions [rad or m].
        work: The kinematics are written to `axes` and `T`, the scaled error to `e` [m], and the
            scaled error as it would be without tolerances to `full_error` [m].

    Returns:
        The largest position error [m] and the largest rotation error [rad] of all tips.
    """
    forward(chain, q, work.axes, work.T)
    return task_error(general.task, T_d, work.T, work.relative, work.full_error, work.e)


@kernel
def jacobian_there(chain: Chain, general: GeneralProblem, T_d: Array, work: Workspace) -> None:
    """Write the Jacobian of the scaled error to ``work.J``; call :func:`observe` first.

    Args:
        chain: The chain of the arm.
        general: Contains the definition of the task, see :class:`TaskParams`.
        T_d: (k, 4, 4) desired poses.
        work: The kinematics that :func:`observe` wrote are read.
    """
    task_jacobian(chain, general.task, T_d, work.axes, work.T, work.relative, work.J)


@force_inline
def scaled_error(stop: StopCriteria, error: Array) -> float:
    """Return the squared norm of (position error, w * rotation error) [m^2].

    Args:
        stop: Gives w, the rotation weight [m/rad].
        error: (2,) position error [m] and rotation error [rad].
    """
    return error[0] ** 2 + (stop.rotation_weight * error[1]) ** 2


@force_inline
def is_reached(stop: StopCriteria, position: float, rotation: float, error: float) -> bool:
    """Return whether all three errors are within the tolerances of `stop`.

    Args:
        stop: The tolerances.
        position: Position error [m].
        rotation: Rotation error [rad].
        error: Norm of the scaled error [m].
    """
    within = position <= stop.position_tolerance and rotation <= stop.rotation_tolerance
    return within and error <= stop.error_tolerance
