# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Forward kinematics and geometric Jacobian of a chain with one or several tips."""

from math import cos, sin

from dls_ik.core.jit import force_inline
from dls_ik.core.types import Array, Chain


@force_inline
def forward(chain: Chain, q: Array, axes: Array, T: Array) -> None:
    """Write the poses of the k tips and the axes of the m moving elements, in the base frame.

    Args:
        chain: The paths from the base to the tips.
        q: (n,) joint positions [rad or m].
        axes: (m, 2, 3) z axis (unit vector) and origin [m] of the frame of each element, written.
        T: (k, 3, 4) ``T_base_tip`` of each tip without its last row, written.
    """
    for p in range(T.shape[0]):
        tip, start = T[p], chain.first[p]
        before = chain.fixed[start + p]
        for i in range(3):
            for j in range(4):
                tip[i, j] = before[i, j]
        for k in range(start, chain.first[p + 1]):
            value = chain.scale[k] * q[chain.variable[k]] + chain.offset[k]
            for i in range(3):
                axes[k, 0, i] = tip[i, 2]
                axes[k, 1, i] = tip[i, 3]
            move_joint(chain.prismatic[k], value, tip)
            after = chain.fixed[k + p + 1]
            for i in range(3):
                x, y, z = tip[i, 0], tip[i, 1], tip[i, 2]
                for j in range(3):
                    tip[i, j] = x * after[0, j] + y * after[1, j] + z * after[2, j]
                tip[i, 3] += x * after[0, 3] + y * after[1, 3] + z * after[2, 3]


@force_inline
def move_joint(prismatic: int, value: float, T: Array) -> None:
    """Move a frame along or about its own z axis, in place.

    Args:
        prismatic: Nonzero to translate along the axis, 0 to rotate about the axis.
        value: Translation [m] or angle [rad].
        T: (3, 4) frame, read and written.
    """
    if prismatic:
        for i in range(3):
            T[i, 3] += value * T[i, 2]
    else:
        c, s = cos(value), sin(value)
        for i in range(3):
            x, y = T[i, 0], T[i, 1]
            T[i, 0] = c * x + s * y
            T[i, 1] = c * y - s * x


@force_inline
def compose(A: Array, B: Array, out: Array) -> None:
    """Write the product A B of two transforms (3, 4) to `out` (3, 4), which must not be A or B."""
    for i in range(3):
        a, b, c = A[i, 0], A[i, 1], A[i, 2]
        for j in range(4):
            out[i, j] = a * B[0, j] + b * B[1, j] + c * B[2, j]
        out[i, 3] += A[i, 3]


@force_inline
def jacobian(chain: Chain, axes: Array, T: Array, J: Array) -> None:
    """Write the geometric Jacobian of every tip in the base frame.

    Args:
        chain: The paths from the base to k tips, with n joint variables.
        axes: (m, 2, 3) axes of the moving elements from :func:`forward`.
        T: (k, 3, 4) poses of the tips from :func:`forward`.
        J: (6 k, n) for each tip three linear rows and three angular rows, written; the units are
            [m/rad] and [rad/rad] for revolute joints, [m/m] and zero for prismatic joints.
    """
    J.fill(0.0)
    for p in range(T.shape[0]):
        rows = J[6 * p : 6 * p + 6]
        for k in range(chain.first[p], chain.first[p + 1]):
            v = chain.variable[k]
            (vx, vy, vz), (wx, wy, wz) = tip_motion(chain, axes, T[p], k)
            rows[0, v] += vx
            rows[1, v] += vy
            rows[2, v] += vz
            rows[3, v] += wx
            rows[4, v] += wy
            rows[5, v] += wz


@force_inline
def tip_motion(
    chain: Chain, axes: Array, tip: Array, k: int
) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    """Return the linear and angular velocity of a tip per unit velocity of a joint variable.

    Only the motion of one moving element counts, although mimic joints may move others.

    Args:
        chain: The paths from the base to the tips.
        axes: (m, 2, 3) axes of the moving elements from :func:`forward`.
        tip: (3, 4) pose of the tip from :func:`forward`.
        k: Index of the moving element, which is on the path to the tip.
    """
    scale = chain.scale[k]
    zx, zy, zz = axes[k, 0, 0] * scale, axes[k, 0, 1] * scale, axes[k, 0, 2] * scale
    if chain.prismatic[k]:
        return (zx, zy, zz), (0.0, 0.0, 0.0)
    rx, ry, rz = tip[0, 3] - axes[k, 1, 0], tip[1, 3] - axes[k, 1, 1], tip[2, 3] - axes[k, 1, 2]
    return (zy * rz - zz * ry, zz * rx - zx * rz, zx * ry - zy * rx), (zx, zy, zz)


@force_inline
def jacobian_change(chain: Chain, axes: Array, T: Array, along: Array, K: Array) -> None:
    """Write the derivatives of the geometric Jacobian by the joint variables, times a vector.

    An element a that is closer to the base than the element b rotates the velocity that b causes.
    With w the angular velocity and v the linear velocity of the tip, the derivative of v_b by q_a
    and that of v_a by q_b are therefore w_a x v_b; that of w_b by q_a is w_a x w_b.

    Args:
        chain: The paths from the base to k tips, with n joint variables.
        axes: (m, 2, 3) axes of the moving elements from :func:`forward`.
        T: (k, 3, 4) poses of the tips from :func:`forward`.
        along: (k, 6) vector; its entries correspond to the rows of :func:`jacobian`.
        K: (n, n) written: row j has the derivatives of the product of column j with `along`.
    """
    K.fill(0.0)
    for p in range(T.shape[0]):
        fx, fy, fz = along[p, 0], along[p, 1], along[p, 2]
        tx, ty, tz = along[p, 3], along[p, 4], along[p, 5]
        for a in range(chain.first[p], chain.first[p + 1]):
            _, (x, y, z) = tip_motion(chain, axes, T[p], a)
            ux, uy, uz = fy * z - fz * y, fz * x - fx * z, fx * y - fy * x
            sx, sy, sz = ty * z - tz * y, tz * x - tx * z, tx * y - ty * x
            for b in range(a, chain.first[p + 1]):
                (vx, vy, vz), (wx, wy, wz) = tip_motion(chain, axes, T[p], b)
                i, j = chain.variable[a], chain.variable[b]
                K[j, i] += ux * vx + uy * vy + uz * vz + sx * wx + sy * wy + sz * wz
                if b > a:
                    K[i, j] += ux * vx + uy * vy + uz * vz
