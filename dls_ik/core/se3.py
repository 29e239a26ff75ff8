# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Rotations, errors between poses, motions of poses, and derivatives of rotation errors.

The notation [v] stands for the skew-symmetric matrix of a vector v, the cross product with v.
"""

from math import atan2, cos, hypot, pi, sin, sqrt, tan

import numpy as np

from dls_ik.core.jit import allocating, force_inline, kernel
from dls_ik.core.types import MAX_POSE_COORDINATE, Array


@force_inline
def quaternion(R: Array) -> tuple[float, float, float, float]:
    """Return the quaternion (w, x, y, z) of a rotation matrix R (3, 3), with w >= 0.

    The quaternion is not normalised; its length is between 2 and 4. The largest component is
    computed first, so that the result is accurate for every R (Shepperd 1978).
    """
    trace = R[0, 0] + R[1, 1] + R[2, 2]
    if trace >= max(R[0, 0], R[1, 1], R[2, 2]):
        w = 1.0 + trace
        x, y, z = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]
    elif R[0, 0] >= R[1, 1] and R[0, 0] >= R[2, 2]:
        x = 1.0 + R[0, 0] - R[1, 1] - R[2, 2]
        w, y, z = R[2, 1] - R[1, 2], R[1, 0] + R[0, 1], R[0, 2] + R[2, 0]
    elif R[1, 1] >= R[2, 2]:
        y = 1.0 + R[1, 1] - R[0, 0] - R[2, 2]
        w, x, z = R[0, 2] - R[2, 0], R[1, 0] + R[0, 1], R[2, 1] + R[1, 2]
    else:
        z = 1.0 + R[2, 2] - R[0, 0] - R[1, 1]
        w, x, y = R[1, 0] - R[0, 1], R[0, 2] + R[2, 0], R[2, 1] + R[1, 2]
    if w < 0.0:
        w, x, y, z = -w, -x, -y, -z
    return w, x, y, z


@force_inline
def rotation_vector(R: Array, out: Array) -> None:
    """Write the rotation vector of a rotation matrix: its axis times its angle [rad].

    The vector is computed from the quaternion, so that it is accurate up to 180 degrees. At 180
    degrees the axis may have either sign.

    Args:
        R: (3, 3) rotation matrix.
        out: (3,) rotation vector, written [rad].
    """
    w, x, y, z = quaternion(R)
    sine = sqrt(x * x + y * y + z * z)
    scale = 2.0 * atan2(sine, w) / sine if sine > 0.0 else 0.0
    out[0], out[1], out[2] = scale * x, scale * y, scale * z


@force_inline
def norm3(v: Array) -> float:
    """Return the 2-norm of the first three entries of v."""
    return sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2])


@force_inline
def half_skew(R: Array, out: Array) -> float:
    """Write the axis of a rotation matrix times the sine of its angle; return the angle [rad].

    If the matrix is the rotation R_d R^T from an orientation R to a desired orientation R_d, the
    vector is half of n x n_d + s x s_d + a x a_d, with the columns n, s and a of R, and n_d, s_d
    and a_d of R_d.

    Args:
        R: (3, 3) rotation matrix.
        out: (3,) axis times sine, written.
    """
    out[0] = 0.5 * (R[2, 1] - R[1, 2])
    out[1] = 0.5 * (R[0, 2] - R[2, 0])
    out[2] = 0.5 * (R[1, 0] - R[0, 1])
    return atan2(norm3(out), 0.5 * (R[0, 0] + R[1, 1] + R[2, 2] - 1.0))


@force_inline
def pose_error(T_d: Array, T: Array, relative: Array, e: Array) -> None:
    """Write the motion in the base frame that moves the pose `T` to the pose `T_d`.

    Args:
        T_d: (3, 4) or (4, 4) desired pose.
        T: (3, 4) or (4, 4) actual pose.
        relative: (3, 3) scratch.
        e: (6,) position difference [m] and rotation vector of ``R_d R^T`` [rad], written; ``R_d``
            and ``R`` are the rotations of the desired and of the actual pose.
    """
    for i in range(3):
        e[i] = T_d[i, 3] - T[i, 3]
        for j in range(3):
            relative[i, j] = T_d[i, 0] * T[j, 0] + T_d[i, 1] * T[j, 1] + T_d[i, 2] * T[j, 2]
    rotation_vector(relative, e[3:])


@kernel
def is_pose(T: Array, tolerance: float) -> bool:
    """Return whether T (4, 4) is a finite rigid transform.

    Args:
        T: (4, 4) matrix.
        tolerance: Maximum deviation of the entries of R R^T from the identity, with R the rotation
            of T, and of the last row from (0, 0, 0, 1).
    """
    for i in range(4):
        for j in range(4):
            if not abs(T[i, j]) <= MAX_POSE_COORDINATE:
                return False
    for j in range(4):
        if abs(T[3, j] - (1.0 if j == 3 else 0.0)) > tolerance:
            return False
    for i in range(3):
        for j in range(3):
            dot = 0.0
            for c in range(3):
                dot += T[i, c] * T[j, c]
            if abs(dot - (1.0 if i == j else 0.0)) > tolerance:
                return False
    triple = T[0, 0] * (T[1, 1] * T[2, 2] - T[1, 2] * T[2, 1])
    triple -= T[0, 1] * (T[1, 0] * T[2, 2] - T[1, 2] * T[2, 0])
    triple += T[0, 2] * (T[1, 0] * T[2, 1] - T[1, 1] * T[2, 0])
    return triple > 0.0


@allocating
def difference(T_a: Array, T_b: Array) -> Array:
    """Return the motion (6,) in the base frame that moves the pose T_a to the pose T_b.

    The motion is a translation [m] and a rotation vector [rad]; see :func:`moved`.

    Args:
        T_a, T_b: (4, 4) poses.
    """
    V = np.empty(6)
    pose_error(T_b, T_a, np.empty((3, 3)), V)
    return V


@allocating
def moved(T: Array, V: Array) -> Array:
    """Return the pose (4, 4) that results if a pose is translated and rotated in the base frame.

    The rotation is about an axis through the origin of T, so that the origin is only translated.

    Args:
        T: (4, 4) pose.
        V: (6,) translation [m] and rotation vector [rad].
    """
    x, y, z = V[3], V[4], V[5]
    angle = sqrt(x * x + y * y + z * z)
    a = sin(angle) / angle if angle > 1e-8 else 1.0
    b = (1.0 - cos(angle)) / (angle * angle) if angle > 1e-4 else 0.5 - angle * angle / 24.0
    out = T.copy()
    for j in range(3):
        r0, r1, r2 = T[0, j], T[1, j], T[2, j]
        c0, c1, c2 = y * r2 - z * r1, z * r0 - x * r2, x * r1 - y * r0
        out[0, j] += a * c0 + b * (y * c2 - z * c1)
        out[1, j] += a * c1 + b * (z * c0 - x * c2)
        out[2, j] += a * c2 + b * (x * c1 - y * c0)
    for i in range(3):
        out[i, 3] += V[i]
    return out


# Rows of a rotation error -------------------------------------------------------------------------
# E is the rotation that the tip must still make, expressed in the task frame (see core/task.py). w
# is the angular velocity of the tip in the task frame. Each kind of rotation error has a function
# that computes its rows from E, and a function that computes the vector g of a row: the row
# decreases at the rate g . w.


# A quaternion (w, v) whose w^2 + (v . a)^2, relative to the squared length, is smaller than this
# value is a half turn about an axis perpendicular to a, which has no angle about a.
VANISHING = 1e-20
MAX_SERIES_ANGLE = 1e-4  # [rad] maximum angle for which the first terms of a series are used
FLATTEST = 0.05  # minimum divisor that replaces small cosines of the second Euler angle


@force_inline
def missing_rotation(in_target: bool, T_d: Array, T: Array, E: Array) -> None:
    """Write the rotation E (3, 3) that the tip must still make, expressed in the task frame.

    Args:
        in_target: Whether the task frame has the axes of the target (E = R^T R_d) instead of those
            of the base (E = R_d R^T).
        T_d: (4, 4) desired pose with the rotation R_d.
        T: (3, 4) or (4, 4) actual pose with the rotation R.
        E: (3, 3) rotation, written.
    """
    for i in range(3):
        for j in range(3):
            E[i, j] = 0.0
            for c in range(3):
                E[i, j] += T[c, i] * T_d[c, j] if in_target else T_d[i, c] * T[j, c]


@force_inline
def swing(E: Array, axis: int, out: Array) -> None:
    """Write the shortest rotation vector that rotates an axis of the tip to that of the target.

    In the task frame, the axis of the target is a coordinate axis a_d, and the axis of the tip is
    a = E^T a_d. At half a turn, every perpendicular rotation axis is valid, and the coordinate axis
    that follows a_d (y after x) is used.

    Args:
        E: (3, 3) rotation that the tip must still make.
        axis: Index of the axis, 0 to 2.
        out: (3,) rotation vector, written [rad].
    """
    u, v = (axis + 1) % 3, (axis + 2) % 3
    sine, cosine = hypot(E[axis, u], E[axis, v]), E[axis, axis]  # |a x a_d|, a . a_d
    angle = atan2(sine, cosine)
    out[axis] = 0.0
    if sine > 0.0:
        out[u], out[v] = angle * (E[axis, v] / sine), -angle * (E[axis, u] / sine)
    else:
        out[u], out[v] = angle, 0.0


@force_inline
def twist(E: Array, axis: int) -> float:
    """Return the angle of a rotation about a coordinate axis, in (-pi, pi] [rad].

    The angle is that of the twist in the swing-twist decomposition of E: 2 atan2(v . a, w) with the
    unit quaternion (w, v) of E, w >= 0, and the axis a.

    Args:
        E: (3, 3) rotation.
        axis: Index of the axis a, 0 to 2.
    """
    w, x, y, z = quaternion(E)
    p = x if axis == 0 else y if axis == 1 else z
    if w == 0.0:
        return pi if p != 0.0 else 0.0
    return 2.0 * atan2(p, w)


@force_inline
def unit(c: int) -> tuple[float, float, float]:
    """Return the unit vector of the coordinate axis with the index c, 0 to 2."""
    return 1.0 if c == 0 else 0.0, 1.0 if c == 1 else 0.0, 1.0 if c == 2 else 0.0


@force_inline
def twist_gradient(E: Array, axis: int) -> tuple[float, float, float]:
    """Return the vector g for which the angle of :func:`twist` decreases at the rate g . omega.

    omega is the angular velocity of the tip in the task frame. The quaternion (w, v) of E has the
    derivatives dw/dt = v . omega / 2 and dv/dt = -(w omega + v x omega) / 2. Therefore,
    g = (w^2 a + w a x v + p v) / (w^2 + p^2), with the axis a and p = v . a. If the angle does not
    exist, because w and p are zero, g is a.

    Args:
        E: (3, 3) rotation that the tip must still make.
        axis: Index of the axis a, 0 to 2.
    """
    w, x, y, z = quaternion(E)
    a, b, c = unit(axis)
    p, whole = a * x + b * y + c * z, w * w + x * x + y * y + z * z
    size = w * w + p * p
    if size <= VANISHING * whole:
        return a, b, c
    gx = w * w * a + w * (b * z - c * y) + p * x
    gy = w * w * b + w * (c * x - a * z) + p * y
    gz = w * w * c + w * (a * y - b * x) + p * z
    return gx / size, gy / size, gz / size


@force_inline
def euler(E: Array, out: Array) -> None:
    """Write the negative Euler angles of the orientation of the tip relative to the target.

    The angles a, b and c are those of E^T = Rx(a) Ry(b) Rz(c).

    Args:
        E: (3, 3) rotation that the tip must still make.
        out: (3,) values -a, -b and -c, written [rad].
    """
    out[0] = atan2(E[2, 1], E[2, 2])
    out[1] = -atan2(E[2, 0], hypot(E[0, 0], E[1, 0]))
    out[2] = atan2(E[1, 0], E[0, 0])


@force_inline
def euler_gradient(angles: Array, c: int) -> tuple[float, float, float]:
    """Return the vector g for which value c of :func:`euler` decreases at the rate g . w.

    g follows from the angular velocity w = a' x + b' Rx(a) y + c' Rx(a) Ry(b) z of the tip in the
    task frame. g is bounded where the first and the third axis of rotation become parallel.

    Args:
        angles: (3,) result of :func:`euler` [rad].
        c: Index of the value, 0 to 2.
    """
    a, b = -angles[0], -angles[1]
    flat = max(cos(b), FLATTEST)
    if c == 0:
        return 1.0, sin(b) / flat * sin(a), -sin(b) / flat * cos(a)
    if c == 1:
        return 0.0, cos(a), sin(a)
    return 0.0, -sin(a) / flat, cos(a) / flat


@force_inline
def vector_gradient(phi: Array, c: int) -> tuple[float, float, float]:
    """Return the vector g for which entry c of a rotation vector decreases at the rate g . w.

    w is the angular velocity of the tip in the task frame. g is row c of the inverse right Jacobian
    of SO(3), I + [phi] / 2 + k [phi]^2 with k = (1 - (t / 2) cot(t / 2)) / t^2 and t = |phi|
    (Chirikjian 2012).

    Args:
        phi: (3,) rotation vector of the rotation that the tip must still make [rad].
        c: Index of the entry, 0 to 2.
    """
    x, y, z = phi[0], phi[1], phi[2]
    t2 = x * x + y * y + z * z
    share = 1.0 / 12.0
    if t2 > MAX_SERIES_ANGLE * MAX_SERIES_ANGLE:
        half = 0.5 * sqrt(t2)
        share = (1.0 - half / tan(half)) / t2
    i, j, k = unit(c)
    along, stays = share * phi[c], 1.0 - share * t2
    gx = stays * i + 0.5 * (j * z - k * y) + along * x
    gy = stays * j + 0.5 * (k * x - i * z) + along * y
    gz = stays * k + 0.5 * (i * y - j * x) + along * z
    return gx, gy, gz


@force_inline
def swing_gradient(E: Array, axis: int, c: int) -> tuple[float, float, float]:
    """Return the vector g for which entry c of :func:`swing` decreases at the rate g . w.

    w is the angular velocity of the tip in the task frame. The axis a = E^T b of the tip has the
    velocity w x a, with b the axis of the target. The result of :func:`swing` is f(a . b) a x b
    with f(cos t) = t / sin t. At half a turn it has no derivative, and g is coordinate axis c.

    Args:
        E: (3, 3) rotation that the tip must still make.
        axis: Index of the axis of tip and target, 0 to 2.
        c: Index of the entry, 0 to 2.
    """
    a = E[axis]
    u, v = (axis + 1) % 3, (axis + 2) % 3
    sine, cosine = hypot(a[u], a[v]), a[axis]
    f, slope = 1.0, -1.0 / 3.0
    if sine > MAX_SERIES_ANGLE:
        t = atan2(sine, cosine)
        f, slope = t / sine, (t * cosine - sine) / sine**3
    elif cosine < 0.0:
        return unit(c)
    bx, by, bz = unit(axis)
    i, j, k = unit(c)
    sx, sy, sz = a[1] * bz - a[2] * by, a[2] * bx - a[0] * bz, a[0] * by - a[1] * bx
    s = sx if c == 0 else sy if c == 1 else sz
    p, r = -slope * s, f * cosine
    q = -f * a[c]
    return p * sx + q * bx + r * i, p * sy + q * by + r * j, p * sz + q * bz + r * k
