"""Rotations and the error between two poses."""

from math import atan2, sqrt

from dls_ik.core.jit import inlined, kernel
from dls_ik.core.types import Array

FARTHEST = 1e9  # [m] of a pose from the base; beyond, squares would lose the arm


@inlined
def quaternion(R: Array) -> tuple[float, float, float, float]:
    """Return (w, x, y, z) of a rotation matrix (3, 3), w >= 0; its length is 2 to 4.

    From the largest component, so that no case loses digits (Shepperd 1978).
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


@inlined
def rotation_vector(R: Array, out: Array) -> None:
    """Write the rotation vector of a rotation matrix [rad], right up to and at 180 degrees.

    By way of the quaternion. At 180 degrees the axis may have either sign.

    Args:
        R: (3, 3).
        out: (3,) out.
    """
    w, x, y, z = quaternion(R)
    sine = sqrt(x * x + y * y + z * z)
    scale = 2.0 * atan2(sine, w) / sine if sine > 0.0 else 0.0
    out[0], out[1], out[2] = scale * x, scale * y, scale * z


@inlined
def pose_error(T_d: Array, T: Array, relative: Array, e: Array) -> None:
    """Write what is missing from `T` to `T_d`, in the base frame.

    Args:
        T_d: (3, 4) or (4, 4) desired pose.
        T: (3, 4) or (4, 4) actual pose.
        relative: (3, 3) scratch.
        e: (6,) out: position difference [m], rotation vector of ``R_d R^T`` [rad].
    """
    for i in range(3):
        e[i] = T_d[i, 3] - T[i, 3]
        for j in range(3):
            relative[i, j] = T_d[i, 0] * T[j, 0] + T_d[i, 1] * T[j, 1] + T_d[i, 2] * T[j, 2]
    rotation_vector(relative, e[3:])


@inlined
def norm3(v: Array) -> float:
    """Length of the first three entries."""
    return sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2])


@kernel
def is_pose(T: Array, tolerance: float) -> bool:
    """Whether T (4, 4) is a finite rigid transform, its rotation within `tolerance` of one."""
    for i in range(4):
        for j in range(4):
            if not abs(T[i, j]) <= FARTHEST:
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
