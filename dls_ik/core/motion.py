"""Motion of poses: what leads from one to another, and where a pose moves."""

from math import cos, sin, sqrt

import numpy as np

from dls_ik.core.jit import kernel
from dls_ik.core.se3 import pose_error
from dls_ik.core.types import Array


@kernel
def difference(T_a: Array, T_b: Array) -> Array:
    """What moves T_a to T_b, (6,): translation [m] and rotation vector [rad], in the base frame."""
    V = np.empty(6)
    pose_error(T_b, T_a, np.empty((3, 3)), V)
    return V


@kernel
def moved(T: Array, V: Array) -> Array:
    """Return T (4, 4) moved by V (6,): translation [m], rotation vector [rad], in the base frame.

    The tip goes straight on, and turns about an axis through itself.
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
