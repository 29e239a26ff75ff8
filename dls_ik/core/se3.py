# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Rotations, errors between poses, motion of poses, and derivatives of rotation errors."""

from math import atan2, cos, hypot, pi, sin, sqrt, tan

import numpy as np

from dls_ik.core.jit import allocating, force_inline, kernel
from dls_ik.core.types import MAX_POSE_COORDINATE, Array


@force_inline
def quaternion(R: Array) -> tuple[float, float, float, float]:
    """Return the quaternion (w, x, y, z) of a rotation matrix (3, 3), w >= 0, of length 2 to 4.

    The largest component is computed first, so that no case loses digits (Shepperd 1978).
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
    """Write the rotation vector of a rotation matrix [rad], exact up to and at 180 degrees.

    The vector is computed from the quaternion. At 180 degrees the axis may have either sign.

    Args:
        R: (3, 3) rotation matrix.
        out: (3,) rotation vector, written.
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
    """Write the axis times the sine of the angle of a rotation matrix; return the angle [rad].

    The result is half of n x n_d + s x s_d + a x a_d for R = R_d R^T, with the columns n, s and a
    of R, and n_d, s_d and a_d of R_d.

    Args:
        R: (3, 3) rotation matrix.
        out: (3,) vector, written.
    """
    out[0] = 0.5 * (R[2, 1] - R[1, 2])
    out[1] = 0.5 * (R[0, 2] - R[2, 0])
    out[2] = 0.5 * (R[1, 0] - R[0, 1])
    return atan2(norm3(out), 0.5 * (R[0, 0] + R[1, 1] + R[2, 2] - 1.0))


@force_inline
def pose_error(T_d: Array, T: Array, relative: Array, e: Array) -> None:
    """Write the error from `T` to `T_d` in the base frame.

    Args:
        T_d: (3, 4) or (4, 4) desired pose.
        T: (3, 4) or (4, 4) actual pose.
        relative: (3, 3) scratch.
        e: (6,) position difference [m] and rotation vector of ``R_d R^T`` [rad], written.
    """
    for i in range(3):
        e[i] = T_d[i, 3] - T[i, 3]
        for j in range(3):
            relative[i, j] = T_d[i, 0] * T[j, 0] + T_d[i, 1] * T[j, 1] + T_d[i, 2] * T[j, 2]
    rotation_vector(relative, e[3:])


@kernel
def is_pose(T: Array, tolerance: float) -> bool:
    """Return whether T (4, 4) is a finite rigid transform, its rotation within `tolerance`."""
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
    """Return the motion from T_a to T_b (6,) in the base frame: translation [m], rotation [rad]."""
    V = np.empty(6)
    pose_error(T_b, T_a, np.empty((3, 3)), V)
    return V


@allocating
def moved(T: Array, V: Array) -> Array:
    """Return T (4, 4) moved by V (6,): translation [m], rotation vector [rad], in the base frame.

    The origin moves along a line; the rotation is about an axis through the origin of T.
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
# E is the remaining rotation, along the axes of the frame (see core/task.py); w is the angular
# velocity of the tip along the same axes. A row decreases at the rate g . w; g is the exact
# derivative for a row with a tolerance.


VANISHING = 1e-20  # minimum w^2 + p^2 of a twist; smaller ones (half a turn) have no angle
MAX_SERIES_ANGLE = 1e-4  # [rad] maximum angle for the series
FLATTEST = 0.05  # minimum cosine of the second Euler angle that a derivative is divided by


@force_inline
def missing_rotation(in_target: bool, T_d: Array, T: Array, E: Array) -> None:
    """Write E (3, 3): R_d R^T along the axes of the base, or R^T R_d along those of the target."""
    for i in range(3):
        for j in range(3):
            E[i, j] = 0.0
            for c in range(3):
                E[i, j] += T[c, i] * T_d[c, j] if in_target else T_d[i, c] * T[j, c]


@force_inline
def swing(E: Array, axis: int, out: Array) -> None:
    """Write the shortest rotation vector (3,) [rad] that takes the tip's axis to the target's.

    In the frame, the axis a_d of the target is a unit vector, and that of the tip is a = E^T a_d.
    At half a turn, for which all perpendicular axes are valid, the rotation is about the next axis.
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
    """Return the angle of E about an axis, in (-pi, pi] [rad].

    It is the angle of the twist in the swing-twist decomposition of E: 2 atan2(v . a, w) with the
    unit quaternion (w, v) of E, w >= 0.
    """
    w, x, y, z = quaternion(E)
    p = x if axis == 0 else y if axis == 1 else z
    if w == 0.0:
        return pi if p != 0.0 else 0.0
    return 2.0 * atan2(p, w)


@force_inline
def unit(c: int) -> tuple[float, float, float]:
    """Return the unit vector of an axis of the frame."""
    return 1.0 if c == 0 else 0.0, 1.0 if c == 1 else 0.0, 1.0 if c == 2 else 0.0


@force_inline
def twist_gradient(E: Array, axis: int) -> tuple[float, float, float]:
    """Return g of d(twist)/dt = -g . omega, omega the angular velocity of the tip in the frame.

    From dw/dt = v . omega / 2 and dv/dt = -(w omega + v x omega) / 2 follows
    g = (w^2 a + w a x v + p v) / (w^2 + p^2), p = v . a. Without an angle, g is the axis a.
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
    """Write the negative angles (a, b, c) of E^T = Rx(a) Ry(b) Rz(c), the tip in the target."""
    out[0] = atan2(E[2, 1], E[2, 2])
    out[1] = -atan2(E[2, 0], hypot(E[0, 0], E[1, 0]))
    out[2] = atan2(E[1, 0], E[0, 0])


@force_inline
def euler_gradient(angles: Array, c: int) -> tuple[float, float, float]:
    """Return g for row `c` of :func:`euler`, bounded if the first and third axes are parallel.

    g follows from w = a' x + b' Rx(a) y + c' Rx(a) Ry(b) z.
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
    """Return g for the rotation vector of E: row `c` of the inverse right Jacobian of SO(3).

    The inverse is I + [phi] / 2 + k [phi]^2, k = (1 - (t / 2) cot(t / 2)) / t^2, t = |phi|
    (Chirikjian 2012).
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
    """Return g for row `c` of :func:`swing`.

    With the axis b of the target, the axis a = E^T b of the tip moves by w x a, and the swing is
    f(a . b) a x b with f(cos t) = t / sin t. At half a turn the swing has no derivative, and g is
    the axis `c`.
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
