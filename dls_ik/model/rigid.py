"""Rigid transforms as 4x4 matrices: ``T_a_b`` maps coordinates in frame b to frame a."""

import numpy as np

from dls_ik.core.types import Array

EXACT = 1e-12  # roughness of a rotation that is left as it is


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


def nearest_rotation(R: Array) -> Array:
    """The (3, 3) rotation nearest to a matrix that is almost one, which stays if it is exact."""
    if roughness(R) <= EXACT:
        return R
    U, _, Vt = np.linalg.svd(R)
    rotation: Array = U @ Vt
    return rotation


def roughness(R: Array) -> float:
    """How far (3, 3) is from a rotation: the largest entry of R R^T - 1; infinite for a mirror."""
    off = float(np.abs(R @ R.T - np.eye(3)).max())
    return off if np.linalg.det(R) > 0.0 else np.inf


def not_a_rotation(R: Array, allowed: float) -> str:
    """Words for a finite (3, 3) that is none: by how much, and how to mend it."""
    lengths = np.linalg.norm(R, axis=0)
    off = np.abs(R @ R.T - np.eye(3)).max()
    if np.linalg.det(R) < 0.0 and off <= allowed:
        return "it mirrors (its determinant is -1): turn the sign of one of its columns around"
    words = f"R R^T is off by {off:.2g} from the identity, and may be by {allowed:g}"
    is_scaled = np.ptp(lengths) <= allowed * lengths.max() and abs(lengths.mean() - 1.0) > 1e-5
    if is_scaled and lengths.min() > 0.0:
        return f"{words}: it is scaled by {lengths.mean():.6g}"
    return f"{words}: the nearest rotation is U @ Vt of U, _, Vt = numpy.linalg.svd(R)"


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
