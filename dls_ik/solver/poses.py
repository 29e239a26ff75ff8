"""Poses given by users: checks, and rotations made exact."""

from typing import Any, cast

import numpy as np

from dls_ik.core.se3 import FARTHEST, is_pose
from dls_ik.core.search_rows import POSE_TOLERANCE
from dls_ik.core.types import Array
from dls_ik.errors import OptionError, PoseError
from dls_ik.model.joint import real_array
from dls_ik.model.rotations import EXACT, nearest_rotation, not_a_rotation, roughness
from dls_ik.text import quoted

ROUGHNESS = 1e-3  # passes a rotation typed with four digits, not a scaled or sheared one


def checked_pose(T: Any) -> Array:
    """Return a good pose as it is, and :func:`validated_pose` of any other.

    A good one is (4, 4), float64, contiguous and writable: any other array would be another type
    to the kernels.

    Raises:
        PoseError: as :func:`validated_pose`.
    """
    if is_plain(T, (4, 4)) and is_pose(T, POSE_TOLERANCE):
        return cast(Array, T)
    return validated_pose(T)


def checked_poses(Ts: Any, k: int) -> Array:
    """Return the poses of k tips as (k, 4, 4), each as :func:`checked_pose` has it.

    Args:
        Ts: (k, 4, 4); for a single tip also (4, 4).

    Raises:
        PoseError: another number of poses; as :func:`validated_pose`.
    """
    if k == 1:
        return checked_pose(_only(Ts)).reshape(1, 4, 4)
    if is_plain(Ts, (k, 4, 4)) and all(is_pose(T, POSE_TOLERANCE) for T in Ts):
        return cast(Array, Ts)
    return np.stack([_pose_of_tip(T, i, k) for i, T in enumerate(_separate(Ts, k))])


def is_plain(T: Any, shape: tuple[int, ...]) -> bool:
    """Return whether a value is an array as kernels take it."""
    is_plain = type(T) is np.ndarray and T.dtype == np.float64 and T.flags.carray
    return bool(is_plain and T.shape == shape)


def _only(Ts: Any) -> Any:
    """Return the pose itself, given as it is or in a sequence of one."""
    several = isinstance(Ts, (list, tuple)) or (isinstance(Ts, np.ndarray) and Ts.ndim == 3)
    return Ts[0] if several and len(Ts) == 1 else Ts


def _separate(Ts: Any, k: int) -> list[Any]:
    """Return a list of k poses."""
    try:
        given = list(Ts)
    except TypeError as error:
        raise PoseError(f"{k} tips have {k} poses (4, 4), one each, not {quoted(Ts)}") from error
    if len(given) != k:
        shape = f"an array of shape {Ts.shape}" if isinstance(Ts, np.ndarray) else str(len(given))
        raise PoseError(f"{k} tips have {k} poses (4, 4), one each, not {shape}")
    return given


def _pose_of_tip(T: Any, i: int, k: int) -> Array:
    try:
        return validated_pose(T)
    except PoseError as error:
        raise PoseError(f"pose {i + 1} of {k}: {error}") from error


def finite_array(values: Any, shape: tuple[int, ...], name: str) -> Array:
    """Return a copy of finite numbers of a shape, small enough for products not to overflow.

    Raises:
        OptionError: anything else; the message has `name`.
    """
    try:
        given = real_array(values).copy()
    except (TypeError, ValueError, OverflowError):
        given = np.array(np.nan)
    if given.shape != shape or not (np.abs(given) <= FARTHEST).all():
        valid = f"finite numbers of shape {shape}, {FARTHEST:g} at most"
        raise OptionError(f"{name} is {valid}, not {quoted(values)}")
    return given


def validated_pose(T: Any) -> Array:
    """Return T as a (4, 4) float64 rigid transform; a slightly inexact rotation is made exact.

    Raises:
        PoseError: for another shape, NaN or inf, a last row other than (0, 0, 0, 1), or a matrix
            that is not a rotation.
    """
    try:
        pose = real_array(T)
    except (TypeError, ValueError, OverflowError) as error:
        raise PoseError(f"a pose is a 4x4 matrix of numbers, not {quoted(T)}") from error
    if pose.shape != (4, 4):
        raise PoseError(f"a pose is a 4x4 homogeneous matrix, not an array of shape {pose.shape}")
    if not (np.abs(pose) <= FARTHEST).all():
        raise PoseError(f"a pose must be finite, and within {FARTHEST:g} m, not\n{pose}")
    if not np.allclose(pose[3], (0.0, 0.0, 0.0, 1.0), rtol=0.0, atol=1e-9):
        hint = ": is it transposed?" if (pose[:, 3] == (0.0, 0.0, 0.0, 1.0)).all() else ""
        raise PoseError(f"the last row of a pose is (0, 0, 0, 1), not {pose[3]}{hint}")
    rotation = pose[:3, :3]
    off = roughness(rotation)
    if not off <= ROUGHNESS:
        raise PoseError(
            "the upper left 3x3 block of a pose is a rotation; "
            f"{not_a_rotation(rotation, ROUGHNESS)}; given\n{rotation}"
        )
    if off > EXACT:
        pose = pose.copy()
        pose[:3, :3] = nearest_rotation(rotation)
    return pose
