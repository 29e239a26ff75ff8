# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Kinematics of one serial arm, in frames that need few operations.

Each joint turns about, or slides along, the z axis of its own frame. The transform from one joint
frame to the next is a translation and a rotation about x (model/chain.py converts any serial chain
to this form). The fixed transform from the base to the first frame, and the rotation from the last
frame to the tip, are not applied to the arm but inversely to the target, once per pose.
"""

from math import atan2, cos, sin, sqrt

import numpy as np

from dls_ik.core.jit import force_inline, strict_fp
from dls_ik.core.se3 import norm3, pose_error
from dls_ik.core.types import Array, FastWorkspace, Indices, SerialChain

# Limits of the cosine of the rotation error: the rotation vector is computed by a series above the
# first limit, and by a quaternion below the second limit.
MIN_SERIES_COSINE, MAX_QUATERNION_COSINE = 0.97, -0.9


@force_inline
def aim(base: Array, tip: Array, T_d: Array, target: Array) -> None:
    """Convert a desired pose of the tip to the frames of the fast path.

    Args:
        base: (3, 4) field of :class:`SerialChain`.
        tip: (3, 3) field of :class:`SerialChain`.
        T_d: (4, 4) desired ``T_base_tip``.
        target: (3, 4) desired position of the tip [m] and desired orientation of the last frame,
            both in the first frame of the arm, written.
    """
    for i in range(3):
        a, b, c = base[i, 0], base[i, 1], base[i, 2]
        x = a * T_d[0, 0] + b * T_d[1, 0] + c * T_d[2, 0]
        y = a * T_d[0, 1] + b * T_d[1, 1] + c * T_d[2, 1]
        z = a * T_d[0, 2] + b * T_d[1, 2] + c * T_d[2, 2]
        for j in range(3):
            target[i, j] = x * tip[0, j] + y * tip[1, j] + z * tip[2, j]
        target[i, 3] = a * T_d[0, 3] + b * T_d[1, 3] + c * T_d[2, 3] + base[i, 3]


@force_inline
def observe_arm(
    arm: SerialChain, rotation_weight: float, q: Array, work: FastWorkspace
) -> tuple[float, float]:
    """Compute the forward kinematics and the scaled error at `q`, and write both to `work`.

    Args:
        arm: The chain.
        rotation_weight: Weight w of rotations in the scaled error (dp, w * rotation vector)
            [m/rad].
        q: (n,) joint positions [rad or m].
        work: The desired pose `target` is read; `s`, `c`, `axes`, `T` and the scaled error `e` are
            written.

    Returns:
        Position error [m] and rotation error [rad].
    """
    sines_of_joints(arm.turn, arm.variable, q, work.s, work.c)
    forward_arm(arm.slide, arm.link, arm.variable, q, work.s, work.c, work.axes, work.T)
    return arm_error(work.target, work.T, rotation_weight, work.relative, work.e)


@force_inline
def arm_jacobian_there(arm: SerialChain, rotation_weight: float, work: FastWorkspace) -> None:
    """Write the Jacobian of the scaled error to ``work.J``; call :func:`observe_arm` first.

    Args:
        arm: The chain.
        rotation_weight: w [m/rad], which multiplies rotations in the scaled error.
        work: The kinematics that :func:`observe_arm` wrote are read.
    """
    arm_jacobian(arm.turn, arm.slide, arm.variable, work.axes, work.T, rotation_weight, work.J)


@force_inline
def sines_of_joints(turn: Array, variable: Indices, q: Array, s: Array, c: Array) -> None:
    """Write the sine and the cosine of the rotation angle of each of the m moving elements.

    The angle of element k is turn[k, 0] * q[variable[k]] + turn[k, 1] [rad].

    Args:
        turn, variable: Fields of :class:`SerialChain`.
        q: (n,) joint positions [rad or m].
        s: (m,) sines, written.
        c: (m,) cosines, written.
    """
    for k in range(s.shape[0]):
        s[k] = turn[k, 0] * q[variable[k]] + turn[k, 1]
    sines(s, s, c)


@force_inline
def forward_arm(
    slide: Array,
    link: Array,
    variable: Indices,
    q: Array,
    s: Array,
    c: Array,
    axes: Array,
    T: Array,
) -> None:
    """Compute the frames of the m moving elements and of the tip, in the first frame of the arm.

    Args:
        slide, link, variable: Fields of :class:`SerialChain`.
        q: (n,) joint positions [rad or m].
        s, c: (m,) sine and cosine of the rotation angle of each element.
        axes: (m, 6) z axis and origin of the frame of each element, written.
        T: (3, 4) orientation of the last frame and position of the tip, written.
    """
    x0, x1, x2 = 1.0, 0.0, 0.0
    y0, y1, y2 = 0.0, 1.0, 0.0
    z0, z1, z2 = 0.0, 0.0, 1.0
    p0, p1, p2 = 0.0, 0.0, 0.0
    for k in range(s.shape[0]):
        axes[k, 0], axes[k, 1], axes[k, 2] = z0, z1, z2
        axes[k, 3], axes[k, 4], axes[k, 5] = p0, p1, p2
        sine, cosine = s[k], c[k]
        u0, u1, u2 = cosine * x0 + sine * y0, cosine * x1 + sine * y1, cosine * x2 + sine * y2
        y0, y1, y2 = cosine * y0 - sine * x0, cosine * y1 - sine * x1, cosine * y2 - sine * x2
        x0, x1, x2 = u0, u1, u2
        a, b, d = link[k, 0], link[k, 1], link[k, 2] + slide[k] * q[variable[k]]
        p0 += a * x0 + b * y0 + d * z0
        p1 += a * x1 + b * y1 + d * z1
        p2 += a * x2 + b * y2 + d * z2
        cosine, sine = link[k, 3], link[k, 4]
        u0, u1, u2 = cosine * y0 + sine * z0, cosine * y1 + sine * z1, cosine * y2 + sine * z2
        z0, z1, z2 = cosine * z0 - sine * y0, cosine * z1 - sine * y1, cosine * z2 - sine * y2
        y0, y1, y2 = u0, u1, u2
    T[0, 0], T[0, 1], T[0, 2], T[0, 3] = x0, y0, z0, p0
    T[1, 0], T[1, 1], T[1, 2], T[1, 3] = x1, y1, z1, p1
    T[2, 0], T[2, 1], T[2, 2], T[2, 3] = x2, y2, z2, p2


@force_inline
def arm_error(
    target: Array, T: Array, rotation_weight: float, relative: Array, e: Array
) -> tuple[float, float]:
    """Write the scaled error of an actual frame T relative to a target frame.

    The rotation vector is computed from the sine and the cosine of its angle. Half the sum of the
    cross products of the axes of T with those of the target is the rotation axis times the sine.
    Close to 180 degrees, where the sine vanishes, :func:`dls_ik.core.se3.pose_error` is used.

    Args:
        target, T: (3, 4) desired and actual frame.
        rotation_weight: w [m/rad], which multiplies rotations in the scaled error.
        relative: (3, 3) scratch.
        e: (6,) scaled error, written [m].

    Returns:
        Position error [m] and rotation error [rad].
    """
    e[0], e[1], e[2] = target[0, 3] - T[0, 3], target[1, 3] - T[1, 3], target[2, 3] - T[2, 3]
    u0 = u1 = u2 = trace = 0.0
    for j in range(3):
        a0, a1, a2 = T[0, j], T[1, j], T[2, j]
        b0, b1, b2 = target[0, j], target[1, j], target[2, j]
        u0 += a1 * b2 - a2 * b1
        u1 += a2 * b0 - a0 * b2
        u2 += a0 * b1 - a1 * b0
        trace += a0 * b0 + a1 * b1 + a2 * b2
    square = 0.25 * (u0 * u0 + u1 * u1 + u2 * u2)
    cosine, sine = 0.5 * (trace - 1.0), sqrt(square)
    if cosine > MIN_SERIES_COSINE:
        ratio = 0.0223721590909091 + square * (0.01735276442307692 + square * 0.01396484375)
        ratio = 0.044642857142857144 + square * (0.030381944444444444 + square * ratio)
        ratio = 1.0 + square * (0.16666666666666666 + square * (0.075 + square * ratio))
    elif cosine > MAX_QUATERNION_COSINE:
        ratio = atan2(sine, cosine) / sine
    else:
        pose_error(target, T, relative, e)
        rotation = norm3(e[3:])
        for i in range(3, 6):
            e[i] *= rotation_weight
        return norm3(e), rotation
    scale = 0.5 * ratio * rotation_weight
    e[3], e[4], e[5] = scale * u0, scale * u1, scale * u2
    return norm3(e), ratio * sine


@force_inline
def arm_jacobian(
    turn: Array,
    slide: Array,
    variable: Indices,
    axes: Array,
    T: Array,
    rotation_weight: float,
    J: Array,
) -> None:
    """Write the transposed Jacobian of the scaled error: row j of J (n, 6) belongs to joint j.

    Args:
        turn, slide, variable: Fields of :class:`SerialChain`.
        axes: (m, 6) axes from :func:`forward_arm`.
        T: (3, 4) frame from :func:`forward_arm`.
        rotation_weight: w [m/rad], which multiplies rotations in the scaled error.
        J: (n, 6) transposed Jacobian, written.
    """
    J.fill(0.0)
    for k in range(variable.shape[0]):
        v, rate, along = variable[k], turn[k, 0], slide[k]
        z0, z1, z2 = axes[k, 0], axes[k, 1], axes[k, 2]
        r0 = rate * (T[0, 3] - axes[k, 3])
        r1 = rate * (T[1, 3] - axes[k, 4])
        r2 = rate * (T[2, 3] - axes[k, 5])
        J[v, 0] += z1 * r2 - z2 * r1 + along * z0
        J[v, 1] += z2 * r0 - z0 * r2 + along * z1
        J[v, 2] += z0 * r1 - z1 * r0 + along * z2
        rate *= rotation_weight
        J[v, 3] += rate * z0
        J[v, 4] += rate * z1
        J[v, 5] += rate * z2


# Sines and cosines --------------------------------------------------------------------------------
#
# Sines and cosines of many angles are computed in a form that compiles to vector instructions.


MAX_REDUCED_ANGLE = 1e5  # [rad] maximum angle that can be reduced accurately to [-pi/4, pi/4]
TWO_OVER_PI = 0.6366197723675814
# pi / 2 is the sum of three parts. The first two parts end with zero bits, so that their products
# with whole numbers are exact (Cody & Waite 1980).
PART_1, PART_2, PART_3 = 1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21


@strict_fp
def sines(angles: Array, s: Array, c: Array) -> None:
    """Write the sine and the cosine of every angle with an error of at most 2 ulp.

    Angles are reduced to [-pi/4, pi/4], for which the last coefficients of the Taylor polynomials
    are fitted. The quadrant is selected without branches, so that the loop compiles to vector
    instructions. The functions of the C library would take as long, for seven joints, as all other
    operations of the forward kinematics.

    Args:
        angles: (m,) angles [rad].
        s: (m,) sines, written; may be the array `angles`.
        c: (m,) cosines, written; may be the array `angles`.
    """
    farthest = 0.0
    for k in range(angles.shape[0]):
        farthest = max(farthest, abs(angles[k]))
    if not farthest <= MAX_REDUCED_ANGLE:
        for k in range(angles.shape[0]):
            s[k], c[k] = sin(angles[k]), cos(angles[k])
        return
    for k in range(angles.shape[0]):
        angle = angles[k]
        quarters = np.floor(angle * TWO_OVER_PI + 0.5)
        x = ((angle - quarters * PART_1) - quarters * PART_2) - quarters * PART_3
        y = x * x
        sine = 2.7557313707070068e-06 + y * (-2.5050760253406863e-08 + y * 1.58969099521155e-10)
        sine = 8.33333333332249e-03 + y * (-1.984126982985795e-04 + y * sine)
        sine = x + x * y * (-0.16666666666666632 + y * sine)
        cosine = -2.7557314351390663e-07 + y * (2.087572321298175e-09 - y * 1.1359647557788195e-11)
        cosine = -1.388888888887411e-03 + y * (2.480158728947673e-05 + y * cosine)
        cosine = 1.0 - 0.5 * y + y * y * (0.041666666666666602 + y * cosine)
        half = np.floor(quarters * 0.5)
        odd = quarters != 2.0 * half
        turned = half != 2.0 * np.floor(half * 0.5)
        a = cosine if odd else sine
        b = -sine if odd else cosine
        s[k] = -a if turned else a
        c[k] = -b if turned else b
