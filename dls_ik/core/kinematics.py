"""Forward kinematics and the geometric Jacobian of a chain."""

from math import cos, sin

from dls_ik.core.jit import inlined
from dls_ik.core.types import Array, Chain


@inlined
def forward(chain: Chain, q: Array, axes: Array, T: Array) -> None:
    """Write the pose of the tip and the axis of every element, all in the base frame.

    Args:
        q: (n,) joint values [rad or m].
        axes: (m, 2, 3) out: z axis and origin of each element's frame.
        T: (3, 4) out: ``T_base_tip`` without its last row.
    """
    m = chain.prismatic.shape[0]
    for i in range(3):
        for j in range(4):
            T[i, j] = chain.fixed[0, i, j]
    for k in range(m):
        value = chain.scale[k] * q[chain.variable[k]] + chain.offset[k]
        for i in range(3):
            axes[k, 0, i] = T[i, 2]
            axes[k, 1, i] = T[i, 3]
        if chain.prismatic[k]:
            for i in range(3):
                T[i, 3] += value * T[i, 2]
        else:
            c, s = cos(value), sin(value)
            for i in range(3):
                x, y = T[i, 0], T[i, 1]
                T[i, 0] = c * x + s * y
                T[i, 1] = c * y - s * x
        after = chain.fixed[k + 1]
        for i in range(3):
            x, y, z = T[i, 0], T[i, 1], T[i, 2]
            for j in range(3):
                T[i, j] = x * after[0, j] + y * after[1, j] + z * after[2, j]
            T[i, 3] += x * after[0, 3] + y * after[1, 3] + z * after[2, 3]


@inlined
def jacobian(chain: Chain, axes: Array, T: Array, J: Array) -> None:
    """Write the geometric Jacobian of the tip in the base frame, linear rows first.

    Args:
        axes: (m, 2, 3) from :func:`forward`.
        T: (3, 4) from :func:`forward`.
        J: (6, n) out, [m/rad, rad/rad] or [m/m, 0] by joint.
    """
    J.fill(0.0)
    for k in range(chain.prismatic.shape[0]):
        v, scale = chain.variable[k], chain.scale[k]
        zx, zy, zz = axes[k, 0, 0] * scale, axes[k, 0, 1] * scale, axes[k, 0, 2] * scale
        if chain.prismatic[k]:
            J[0, v] += zx
            J[1, v] += zy
            J[2, v] += zz
        else:
            rx, ry, rz = T[0, 3] - axes[k, 1, 0], T[1, 3] - axes[k, 1, 1], T[2, 3] - axes[k, 1, 2]
            J[0, v] += zy * rz - zz * ry
            J[1, v] += zz * rx - zx * rz
            J[2, v] += zx * ry - zy * rx
            J[3, v] += zx
            J[4, v] += zy
            J[5, v] += zz
