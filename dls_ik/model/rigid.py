"""Rigid transforms as 4x4 matrices: ``T_a_b`` maps coordinates in frame b to frame a."""

import numpy as np

from dls_ik.core.types import Array


def transform(rotation: Array | None = None, translation: Array | None = None) -> Array:
    """The 4x4 transform of a (3, 3) rotation and a (3,) translation [m]."""
    T = np.eye(4)
    if rotation is not None:
        T[:3, :3] = rotation
    if translation is not None:
        T[:3, 3] = translation
    return T


def inverse(T: Array) -> Array:
    """The inverse of a rigid 4x4 transform."""
    R = T[:3, :3]
    return transform(R.T, -R.T @ T[:3, 3])


def rotation_about(axis: Array, angle: float) -> Array:
    """Rodrigues: the (3, 3) rotation by ``angle`` [rad] about a (3,) unit axis."""
    x, y, z = axis
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    R: Array = np.eye(3) + np.sin(angle) * K + (1.0 - np.cos(angle)) * (K @ K)
    return R


def rotation_from_rpy(roll: float, pitch: float, yaw: float) -> Array:
    """The (3, 3) rotation Rz(yaw) Ry(pitch) Rx(roll), angles in [rad], as URDF has it."""
    X, Y, Z = np.eye(3)
    return rotation_about(Z, yaw) @ rotation_about(Y, pitch) @ rotation_about(X, roll)


def rotation_from_z(axis: Array) -> Array:
    """A (3, 3) rotation that takes z to a (3,) unit axis; the identity for z itself."""
    helper = np.array([1.0, 0.0, 0.0]) if abs(axis[0]) < 0.9 else np.array([0.0, 1.0, 0.0])
    x = helper - (helper @ axis) * axis
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(axis, x), axis])
