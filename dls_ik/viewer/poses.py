"""Poses as the scene has them, a position and a quaternion, and back."""

import numpy as np
from viser import transforms

from dls_ik.core.types import Array
from dls_ik.model.rotations import transform


def wxyz_of(T: Array) -> Array:
    """The unit quaternion (4,) w x y z of a pose (4, 4)."""
    wxyz: Array = np.asarray(transforms.SO3.from_matrix(T[:3, :3]).wxyz, np.float64)
    return wxyz


def pose_of(wxyz: Array, position: Array) -> Array:
    """The pose (4, 4) of a quaternion (4,) w x y z, of any length but 0, and a position (3,)."""
    unit = np.asarray(wxyz, np.float64) / np.linalg.norm(wxyz)
    return transform(transforms.SO3(unit).as_matrix(), np.asarray(position, np.float64))
