"""What is given as a target: checked, with the reason where it is refused."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dls_ik.core.se3 import FARTHEST
from dls_ik.core.types import Array
from dls_ik.errors import PoseError
from dls_ik.model.rotations import transform
from dls_ik.solver.poses import checked_pose, real_array
from dls_ik.text import quoted


def checked_twist(V: ArrayLike) -> Array:
    """A twist (6,), or a PoseError."""
    twist = _numbers(V, "a twist is 6 numbers, linear first")
    if twist.shape != (6,):
        raise PoseError(f"a twist is 6 numbers, linear first, not an array {twist.shape}")
    if not (np.abs(twist) <= FARTHEST).all():
        raise PoseError(f"a twist is finite and at most {FARTHEST:g} [m/s, rad/s], not {twist}")
    return twist.copy()


def checked_rotation(R: ArrayLike) -> Array:
    """A rotation (3, 3), or a PoseError."""
    rotation = _numbers(R, "the axes of a twist are a 3x3 rotation")
    if rotation.shape != (3, 3):
        raise PoseError(f"the axes of a twist are a 3x3 rotation, not an array {rotation.shape}")
    return checked_pose(transform(rotation))[:3, :3].copy()


def checked_trajectory(Ts: ArrayLike) -> Array:
    """Poses (m, 4, 4), at least one, or a PoseError that says which one is none."""
    poses = _numbers(Ts, "a trajectory is an array (m, 4, 4) of poses")
    if poses.ndim != 3 or poses.shape[1:] != (4, 4) or not len(poses):
        raise PoseError(f"a trajectory is an array (m, 4, 4) of poses, not {poses.shape}")
    return np.array([_checked_member(T, k) for k, T in enumerate(poses)])


def _numbers(values: Any, valid: str) -> Array:
    try:
        return real_array(values)
    except (TypeError, ValueError, OverflowError) as error:
        raise PoseError(f"{valid}, not {quoted(values)}") from error


def _checked_member(T: Array, k: int) -> Array:
    try:
        return checked_pose(T)
    except PoseError as error:
        raise PoseError(f"pose {k} of the trajectory: {error}") from error
