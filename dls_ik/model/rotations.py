# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Rotations and rigid transforms: matrices, quaternions, roll-pitch-yaw angles.

``T_a_b`` (4, 4) maps coordinates in frame b to coordinates in frame a. The components of a
quaternion are in the order x y z w.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dls_ik.core.types import MAX_POSE_COORDINATE, Array
from dls_ik.errors import PoseError
from dls_ik.text import quoted

# Deviations of a matrix R from a rotation, see roughness():
EXACT_ROTATION_DEVIATION = 1e-12  # maximum deviation that is not corrected
MAX_CORRECTED_DEVIATION = 1e-6  # maximum deviation in a description; larger deviations are errors
SHORTEST_QUATERNION = 1e-6  # minimum norm of a quaternion before normalisation
MIN_COS_PITCH = 1e-14  # roll and yaw are not both defined at a smaller cosine of the pitch


def transform(rotation: Array | None = None, translation: Array | None = None) -> Array:
    """Return the 4x4 transform with a rotation (3, 3) and a translation (3,) [m].

    None stands for the identity rotation or for zero translation.
    """
    T = np.eye(4)
    if rotation is not None:
        T[:3, :3] = rotation
    if translation is not None:
        T[:3, 3] = translation
    return T


def inverse(T: Array) -> Array:
    """Return the inverse of a rigid 4x4 transform."""
    R = T[:3, :3]
    return transform(R.T, -R.T @ T[:3, 3])


def rigid_transform(given: Any, name: str) -> Array:
    """Validate a rigid transform, and return it as a matrix (4, 4) [m].

    Small errors of the rotation matrix are corrected.

    Args:
        given: Transform, a matrix (4, 4).
        name: Name of the transform for the error message.

    Raises:
        ValueError: If the shape is not (4, 4), the transform is not rigid, or the magnitude of a
            number is larger than `MAX_POSE_COORDINATE` or not finite.
    """
    try:
        T = np.array(given, np.float64)
    except (TypeError, ValueError, OverflowError):
        T = np.empty(0)
    shown = quoted(given.tolist() if isinstance(given, np.ndarray) else given)
    message = (
        f"{name} must be a rigid transform (4, 4) within {MAX_POSE_COORDINATE:g} m; got {shown}"
    )
    is_bounded = T.shape == (4, 4) and bool((np.abs(T) <= MAX_POSE_COORDINATE).all())
    if not is_bounded or (T[3] != (0.0, 0.0, 0.0, 1.0)).any():
        raise ValueError(message)
    if not roughness(T[:3, :3]) <= MAX_CORRECTED_DEVIATION:
        raise ValueError(
            f"{message}: for its rotation R, {not_a_rotation(T[:3, :3], MAX_CORRECTED_DEVIATION)}"
        )
    T[:3, :3] = nearest_rotation(T[:3, :3])
    return T


def nearest_rotation(R: Array) -> Array:
    """Return the rotation (3, 3) closest to an almost orthonormal matrix R (3, 3).

    R is returned unchanged if it is a rotation within `EXACT_ROTATION_DEVIATION`; see
    :func:`roughness`.
    """
    if roughness(R) <= EXACT_ROTATION_DEVIATION:
        return R
    U, _, Vt = np.linalg.svd(R)
    rotation: Array = U @ Vt
    return rotation


def roughness(R: Array) -> float:
    """Return the deviation of a matrix R (3, 3) from a rotation.

    The deviation is the largest magnitude of an entry of R R^T - I; it is infinite if the
    determinant of R is not positive.
    """
    off = float(np.abs(R @ R.T - np.eye(3)).max())
    return off if np.linalg.det(R) > 0.0 else np.inf


def not_a_rotation(R: Array, allowed: float) -> str:
    """Return a text that says why a matrix is not a rotation and how to correct the matrix.

    Args:
        R: (3, 3) finite matrix that is not a rotation.
        allowed: Maximum deviation of a valid rotation; see :func:`roughness`.
    """
    lengths = np.linalg.norm(R, axis=0)
    off = np.abs(R @ R.T - np.eye(3)).max()
    if np.linalg.det(R) < 0.0 and off <= allowed:
        return "it is a reflection (determinant -1): flip the sign of one column"
    message = f"R R^T differs by {off:.2g} from the identity, at most {allowed:g} is allowed"
    is_scaled = np.ptp(lengths) <= allowed * lengths.max() and abs(lengths.mean() - 1.0) > 1e-5
    if is_scaled and lengths.min() > 0.0:
        return f"{message}: it is scaled by {lengths.mean():.6g}; divide it by that number"
    return f"{message}: the closest rotation is U @ Vt of U, _, Vt = numpy.linalg.svd(R)"


def rotation_about(axis: Array, angle: float) -> Array:
    """Return the (3, 3) rotation by `angle` [rad] about a unit axis (3,), by Rodrigues' formula."""
    x, y, z = axis
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    R: Array = np.eye(3) + np.sin(angle) * K + (1.0 - np.cos(angle)) * (K @ K)
    return R


def rotation_from_rpy(roll: float, pitch: float, yaw: float) -> Array:
    """Return the rotation (3, 3) Rz(yaw) Ry(pitch) Rx(roll), as ``rpy`` in URDF.

    The angles are in [rad].
    """
    X, Y, Z = np.eye(3)
    return rotation_about(Z, yaw) @ rotation_about(Y, pitch) @ rotation_about(X, roll)


def rotation_from_z(axis: Array) -> Array:
    """Return a rotation (3, 3) that maps the z axis to a unit vector `axis` (3,).

    If `axis` is the z axis, the rotation is the identity.
    """
    helper = np.array([1.0, 0.0, 0.0]) if abs(axis[0]) < 0.9 else np.array([0.0, 1.0, 0.0])
    x = helper - (helper @ axis) * axis
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(axis, x), axis])


def rotation_from_quaternion(quaternion: Sequence[float]) -> Array:
    """Return the (3, 3) rotation of a quaternion x y z w, which need not be normalised.

    Raises:
        PoseError: If the quaternion is not finite, or too short to normalise.
    """
    length = math.hypot(*quaternion)
    if not SHORTEST_QUATERNION <= length < math.inf:
        shown = " ".join(f"{component:g}" for component in quaternion)
        raise PoseError(
            f"quaternion x y z w = {shown} cannot be normalised; 0 0 0 1 is no rotation, and the "
            "length must be finite and above 0"
        )
    return np.array(rotation_of_unit(*(component / length for component in quaternion)))


def rotation_of_unit(x: float, y: float, z: float, w: float) -> list[list[float]]:
    """Return the three rows of the rotation matrix of a unit quaternion x y z w.

    The components may be numbers, or arrays of equal shape for several quaternions.
    """
    return [
        [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - z * w), 2.0 * (x * z + y * w)],
        [2.0 * (x * y + z * w), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - x * w)],
        [2.0 * (x * z - y * w), 2.0 * (y * z + x * w), 1.0 - 2.0 * (x * x + y * y)],
    ]


def quaternion_from_rotation(R: Array) -> tuple[float, float, float, float]:
    """Return the unit quaternion q = (x, y, z, w), with w >= 0, of a rotation R (3, 3).

    The entries of the matrix 4 q q' are linear in the entries of R, and each column of 4 q q' is a
    multiple of q. Normalising the longest column gives q accurately at any rotation angle.
    """
    (a, b, c), (d, e, f), (g, h, i) = R.tolist()
    columns = (
        (1.0 + a - e - i, d + b, g + c, h - f),  # 4 x q
        (d + b, 1.0 - a + e - i, h + f, c - g),  # 4 y q
        (g + c, h + f, 1.0 - a - e + i, d - b),  # 4 z q
        (h - f, c - g, d - b, 1.0 + a + e + i),  # 4 w q
    )
    longest = max(range(4), key=lambda k: columns[k][k])
    scale = math.copysign(1.0 / math.hypot(*columns[longest]), columns[longest][3])
    x, y, z, w = (scale * component for component in columns[longest])
    return x, y, z, w


def rpy_from_rotation(R: Array) -> tuple[float, float, float]:
    """Return roll, pitch and yaw [rad] of a rotation R (3, 3) = Rz(yaw) Ry(pitch) Rx(roll).

    The pitch is within +-pi/2. At a pitch of +-pi/2 only the sum or the difference of roll and yaw
    is defined; in this case the roll is 0. Roll and pitch are computed from Rz(-yaw) R, which is
    accurate near a pitch of +-pi/2, too.
    """
    horizontal = math.hypot(R[0, 0], R[1, 0])
    is_level = horizontal > MIN_COS_PITCH
    yaw = math.atan2(R[1, 0], R[0, 0]) if is_level else math.atan2(-R[0, 1], R[1, 1])
    sine, cosine = math.sin(yaw), math.cos(yaw)
    pitch = math.atan2(-R[2, 0], cosine * R[0, 0] + sine * R[1, 0])
    roll = math.atan2(sine * R[0, 2] - cosine * R[1, 2], cosine * R[1, 1] - sine * R[0, 1])
    return roll, pitch, yaw
