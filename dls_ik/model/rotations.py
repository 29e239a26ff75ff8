"""Rotations in other forms than matrices: unit quaternions x y z w, and URDF's roll, pitch, yaw."""

import math
from collections.abc import Sequence

import numpy as np

from dls_ik.core.types import Array
from dls_ik.exceptions import PoseError

SHORTEST_QUATERNION = 1e-6
LEVEL = 1e-14  # cosine of a pitch that leaves the yaw open


def rotation_from_quaternion(quaternion: Sequence[float]) -> Array:
    """The (3, 3) rotation of a quaternion x y z w; another length than 1 is normalised.

    Raises:
        PoseError: not finite, or too short to have a direction.
    """
    length = math.hypot(*quaternion)
    if not SHORTEST_QUATERNION <= length < math.inf:
        shown = " ".join(f"{component:g}" for component in quaternion)
        raise PoseError(f"the quaternion x y z w {shown} has no direction")
    return np.array(rotation_of_unit(*(component / length for component in quaternion)))


def rotation_of_unit(x: float, y: float, z: float, w: float) -> list[list[float]]:
    """The rows of the rotation of a unit quaternion."""
    return [
        [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - z * w), 2.0 * (x * z + y * w)],
        [2.0 * (x * y + z * w), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - x * w)],
        [2.0 * (x * z - y * w), 2.0 * (y * z + x * w), 1.0 - 2.0 * (x * x + y * y)],
    ]


def quaternion_from_rotation(R: Array) -> tuple[float, float, float, float]:
    """The unit quaternion (x, y, z, w), w >= 0, of a (3, 3) rotation; exact at every angle.

    The columns of 4 q q' are linear in R; the longest of them, normalised, is q.
    """
    (a, b, c), (d, e, f), (g, h, i) = R.tolist()
    columns = (
        (1.0 + a - e - i, d + b, g + c, h - f),  # times x
        (d + b, 1.0 - a + e - i, h + f, c - g),  # times y
        (g + c, h + f, 1.0 - a - e + i, d - b),  # times z
        (h - f, c - g, d - b, 1.0 + a + e + i),  # times w
    )
    longest = max(range(4), key=lambda k: columns[k][k])
    scale = math.copysign(1.0 / math.hypot(*columns[longest]), columns[longest][3])
    x, y, z, w = (scale * component for component in columns[longest])
    return x, y, z, w


def rpy_from_rotation(R: Array) -> tuple[float, float, float]:
    """Roll, pitch, yaw [rad] of a (3, 3) rotation Rz(yaw) Ry(pitch) Rx(roll), pitch in +-pi/2.

    Where the pitch is +-pi/2 only the sum or difference of roll and yaw matters, and the roll is
    0. The roll is what remains after the yaw that is taken: no digit of the rotation is lost there.
    """
    horizontal = math.hypot(R[0, 0], R[1, 0])
    yaw = math.atan2(R[1, 0], R[0, 0]) if horizontal > LEVEL else math.atan2(-R[0, 1], R[1, 1])
    sine, cosine = math.sin(yaw), math.cos(yaw)
    pitch = math.atan2(-R[2, 0], cosine * R[0, 0] + sine * R[1, 0])
    roll = math.atan2(sine * R[0, 2] - cosine * R[1, 2], cosine * R[1, 1] - sine * R[0, 1])
    return roll, pitch, yaw
