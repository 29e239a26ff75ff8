"""Poses as the scene has them, a position and a quaternion, and back."""

import numpy as np
import trimesh.transformations as tf

from dls_ik.core.types import Array
from dls_ik.model.rigid import transform


def wxyz_of(T: Array) -> Array:
    """The unit quaternion (4,) w x y z of a pose (4, 4)."""
    wxyz: Array = np.asarray(tf.quaternion_from_matrix(T), np.float64)
    return wxyz


def pose_of(wxyz: Array, position: Array) -> Array:
    """The pose (4, 4) of a quaternion (4,) w x y z, of any length but 0, and a position (3,)."""
    R: Array = tf.quaternion_matrix(np.asarray(wxyz, np.float64))[:3, :3]
    return transform(R, np.asarray(position, np.float64))
