"""Tasks: which pose errors of which tips count, and the Jacobian of those.

A frame is the base's axes, or those of the target. In the frame, E is the rotation that is still
missing: R_d R^T along the base's axes, R^T R_d along the target's. How it becomes rows:

VECTOR (three axes count): the rotation vector of E.
SWING (two axes): the shortest rotation that brings the frame's third axis, as the tip has it, onto
the target's; turning about that axis is free.
TWIST (one axis): the angle of E about that axis, whatever it turns about the others.
"""

from math import atan2, hypot, pi, sqrt

import numpy as np

from dls_ik.core.jit import inlined, kernel
from dls_ik.core.kinematics import jacobian
from dls_ik.core.se3 import quaternion, rotation_vector
from dls_ik.core.types import Array, Chain, Task

FREE, VECTOR, SWING, TWIST = range(4)
VANISHING = 1e-20  # (w^2 + p^2) of a twist: half a turn about another axis, where it has no angle


@kernel
def task_error(task: Task, T_d: Array, T: Array, relative: Array, e: Array) -> tuple[float, float]:
    """Write the scaled error of every row; return the largest position and rotation error.

    Args:
        T_d: (k, 4, 4) desired poses, T: (k, 3, 4) actual poses.
        relative: (3, 3) scratch.
        e: (r,) out, [m].

    Returns:
        Of the components that count, the longest position error of a tip [m] and the largest
        rotation error of one [rad].
    """
    k = T.shape[0]
    errors, squares = np.empty((k, 6)), np.zeros((k, 2))
    for p in range(k):
        _position_error(task.in_target[p], T_d[p], T[p], errors[p])
        _rotation_error(task, p, T_d[p], T[p], relative, errors[p, 3:])
    for i in range(task.tip.shape[0]):
        p, component = task.tip[i], task.component[i]
        error = errors[p, component]
        e[i] = task.weight[i] * error
        squares[p, component // 3] += error * error
    return sqrt(squares[:, 0].max()), sqrt(squares[:, 1].max())


@kernel
def task_jacobian(
    chain: Chain, task: Task, T_d: Array, axes: Array, T: Array, relative: Array, J: Array
) -> None:
    """Write the Jacobian of the scaled error: J dq is what a small step takes off it.

    Exact for positions and TWIST. For VECTOR and SWING it takes the angular velocity along the
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
    _missing_rotation(task.in_target[p], T_d, T, relative)
    if turning == VECTOR:
        rotation_vector(relative, out)
    elif turning == SWING:
        _swing(relative, axis, out)
    else:
        out[axis] = _twist(relative, axis)


@inlined
def _missing_rotation(in_target: bool, T_d: Array, T: Array, E: Array) -> None:
    """Write E (3, 3): R_d R^T, or R^T R_d, the same rotation along the target's axes."""
    for i in range(3):
        for j in range(3):
            E[i, j] = 0.0
            for c in range(3):
                E[i, j] += T[c, i] * T_d[c, j] if in_target else T_d[i, c] * T[j, c]


@inlined
def _swing(E: Array, axis: int, out: Array) -> None:
    """Write the shortest rotation vector (3,) [rad] that takes the tip's axis to the target's.

    In the frame the target's axis a_d is a unit vector, and the tip's is a = E^T a_d. At half a
    turn it is about the next axis, one of all that are perpendicular.
    """
    u, v = (axis + 1) % 3, (axis + 2) % 3
    sine, cosine = hypot(E[axis, u], E[axis, v]), E[axis, axis]  # |a x a_d|, a . a_d
    angle = atan2(sine, cosine)
    out[axis] = 0.0
    if sine > 0.0:
        out[u], out[v] = angle * (E[axis, v] / sine), -angle * (E[axis, u] / sine)
    else:
        out[u], out[v] = angle, 0.0


@inlined
def _twist(E: Array, axis: int) -> float:
    """Return the angle of E about an axis, in (-pi, pi] [rad].

    That of the factor about the axis where E is a rotation about the axis and one across it, with
    the unit quaternion (w, v) of E, w >= 0: 2 atan2(v . a, w).
    """
    w, x, y, z = quaternion(E)
    p = x if axis == 0 else y if axis == 1 else z
    if w == 0.0:
        return pi if p != 0.0 else 0.0
    return 2.0 * atan2(p, w)


@inlined
def _direction(
    task: Task, p: int, component: int, T_d: Array, T: Array, relative: Array, out: Array
) -> None:
    """Write the direction (3,), in the base frame, along which a row takes the tip's velocity."""
    turning, in_target = task.turning[p], task.in_target[p]
    if component >= 3 and turning == TWIST:
        _missing_rotation(in_target, T_d, T, relative)
        x, y, z = _twist_gradient(relative, task.axis[p])
    else:
        x, y, z = _unit(component % 3)
    out[0], out[1], out[2] = x, y, z
    if in_target:
        for c in range(3):
            out[c] = T_d[c, 0] * x + T_d[c, 1] * y + T_d[c, 2] * z


@inlined
def _unit(c: int) -> tuple[float, float, float]:
    return 1.0 if c == 0 else 0.0, 1.0 if c == 1 else 0.0, 1.0 if c == 2 else 0.0


@inlined
def _twist_gradient(E: Array, axis: int) -> tuple[float, float, float]:
    """Return g of d(twist)/dt = -g . omega, omega the angular velocity of the tip in the frame.

    With dw/dt = v . omega / 2 and dv/dt = -(w omega + v x omega) / 2 it is
    g = (w^2 a + w a x v + p v) / (w^2 + p^2), p = v . a. Without an angle, g is the axis a.
    """
    w, x, y, z = quaternion(E)
    a, b, c = _unit(axis)
    p, whole = a * x + b * y + c * z, w * w + x * x + y * y + z * z
    size = w * w + p * p
    if size <= VANISHING * whole:
        return a, b, c
    gx = w * w * a + w * (b * z - c * y) + p * x
    gy = w * w * b + w * (c * x - a * z) + p * y
    gz = w * w * c + w * (a * y - b * x) + p * z
    return gx / size, gy / size, gz / size
