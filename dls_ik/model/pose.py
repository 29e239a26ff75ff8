# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Conversion of poses that callers give as matrices, positions with quaternions, or messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from dls_ik.core.types import MAX_POSE_COORDINATE, Array
from dls_ik.errors import PoseError
from dls_ik.model.joint import real_array
from dls_ik.model.rotations import (
    EXACT_ROTATION_DEVIATION,
    SHORTEST_QUATERNION,
    nearest_rotation,
    not_a_rotation,
    quaternion_from_rotation,
    rotation_from_quaternion,
    rotation_from_rpy,
    rotation_of_unit,
    roughness,
    transform,
)
from dls_ik.text import quoted

# maximum deviation from a rotation: four digits suffice, scaling is rejected
MAX_ROTATION_DEVIATION = 1e-3
POSE_FORMS = (
    "a pose must be a 4x4 matrix of numbers, a dls_ik.Pose, (position, quaternion x y z w), or a "
    "message with position and orientation"
)
ALONE = (
    "a position alone needs a task without rotation, task=Task.position_only(); a full pose is "
    "(position, quaternion x y z w)"
)


@dataclass(frozen=True)
class Pose:
    """A position and an orientation, immutable and compared by value.

    Attributes:
        position: (x, y, z) [m].
        quaternion: (x, y, z, w), normalised.

    Raises:
        PoseError: If the values are not three and four finite numbers, or the quaternion has zero
            length.
    """

    position: tuple[float, float, float] = (0.0, 0.0, 0.0)
    quaternion: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 1.0)

    def __post_init__(self) -> None:
        """Validate and normalise the fields."""
        position, quaternion = _vector(self.position, 3), _vector(self.quaternion, 4)
        if position is None or not (np.abs(position) <= MAX_POSE_COORDINATE).all():
            given = quoted(self.position)
            raise PoseError(f"position must be x y z within {MAX_POSE_COORDINATE:g} m; got {given}")
        if quaternion is None:
            raise PoseError(f"quaternion must be x y z w; got {quoted(self.quaternion)}")
        rotation_from_quaternion(quaternion.tolist())
        unit = quaternion / np.linalg.norm(quaternion)
        object.__setattr__(self, "position", tuple(position.tolist()))
        object.__setattr__(self, "quaternion", tuple(unit.tolist()))

    @classmethod
    def from_matrix(cls, T: ArrayLike) -> Pose:
        """Return the pose of a matrix (4, 4) [m].

        Raises:
            PoseError: If the matrix is not a rigid transform.
        """
        pose = validated_pose(T)
        x, y, z = pose[:3, 3].tolist()
        return cls((x, y, z), quaternion_from_rotation(pose[:3, :3]))

    @classmethod
    def from_rpy(cls, position: ArrayLike, rpy: ArrayLike) -> Pose:
        """Return the pose with a position and roll, pitch and yaw angles.

        Args:
            position: (x, y, z) [m].
            rpy: (roll, pitch, yaw) [rad]; the rotation is Rz(yaw) Ry(pitch) Rx(roll).

        Raises:
            PoseError: If an argument is not three finite numbers.
        """
        angles = _vector(rpy, 3)
        if angles is None or not np.isfinite(angles).all():
            raise PoseError(f"rpy must be roll, pitch and yaw [rad]; got {quoted(rpy)}")
        rotation = rotation_from_rpy(*angles.tolist())
        return cls(position, quaternion_from_rotation(rotation))  # type: ignore[arg-type]  # checked

    @property
    def matrix(self) -> Array:
        """Matrix (4, 4) [m], a new array at each access."""
        return transform(np.array(rotation_of_unit(*self.quaternion)), np.array(self.position))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return the matrix (4, 4), so that NumPy accepts a pose as an array."""
        return self.matrix if dtype is None else self.matrix.astype(dtype)


class PoseMessage(Protocol):
    """A message such as ``geometry_msgs/msg/Pose``."""

    @property
    def position(self) -> Any:
        """Position with the fields x, y, z [m]."""

    @property
    def orientation(self) -> Any:
        """Quaternion with the fields x, y, z, w."""


PoseLike: TypeAlias = ArrayLike | Sequence[Any] | PoseMessage


class PoseParts(NamedTuple):
    """A pose as position and quaternion, not validated."""

    position: Array  # (3,) [m]
    quaternion: Array  # (4,) x y z w


def validated_pose(T: Any, position_only: bool = False) -> Array:
    """Return a pose as a float64 array (4, 4) [m]; a slightly inexact rotation is made exact.

    Args:
        T: Pose in any form; see :func:`pose_matrix`.
        position_only: Whether a position without rotation is accepted.

    Raises:
        PoseError: If the pose has another form, contains NaN or inf, has a last row other than (0,
            0, 0, 1), or has an upper left 3x3 block that is not a rotation.
    """
    matrix = pose_matrix(T, position_only)
    try:
        pose = real_array(matrix)
    except (TypeError, ValueError, OverflowError) as error:
        raise PoseError(f"{POSE_FORMS}; got {quoted(T)}") from error
    if pose.shape != (4, 4):
        raise PoseError(f"{POSE_FORMS}; got an array of shape {pose.shape}{_hint(pose.shape)}")
    if not (np.abs(pose) <= MAX_POSE_COORDINATE).all():
        raise PoseError(f"a pose must be finite, and within {MAX_POSE_COORDINATE:g} m; got\n{pose}")
    if not np.allclose(pose[3], (0.0, 0.0, 0.0, 1.0), rtol=0.0, atol=1e-9):
        hint = ": is it transposed?" if (pose[:, 3] == (0.0, 0.0, 0.0, 1.0)).all() else ""
        raise PoseError(f"the last row of a pose must be (0, 0, 0, 1); got {pose[3]}{hint}")
    rotation = pose[:3, :3]
    off = roughness(rotation)
    if not off <= MAX_ROTATION_DEVIATION:
        raise PoseError(
            "the upper left 3x3 block of a pose must be a rotation; "
            f"{not_a_rotation(rotation, MAX_ROTATION_DEVIATION)}; got\n{rotation}"
        )
    if off > EXACT_ROTATION_DEVIATION:
        pose = pose.copy()
        pose[:3, :3] = nearest_rotation(rotation)
    return pose


def _hint(shape: tuple[int, ...]) -> str:
    """Return a hint for a common mistake in the shape of a pose, or ""."""
    if shape == (7,):
        return ": write x y z and a quaternion x y z w as (T[:3], T[3:])"
    return f": {ALONE}" if shape == (3,) else ""


def pose_matrix(given: Any, position_only: bool = False) -> Any:
    """Return a pose in any form as a matrix (4, 4) [m]; unknown forms are returned unchanged.

    Valid forms are a matrix; (position, quaternion x y z w); a position; an object with
    ``as_matrix()`` (SciPy, jaxlie) or ``homogeneous`` (Pinocchio); and a message with ``position``
    and ``orientation``, or with ``translation`` and ``rotation``.

    Args:
        given: Pose.
        position_only: Whether a position without rotation is accepted.

    Raises:
        PoseError: If the message is stamped, a position is given but not accepted, or the
            quaternion has zero length.
    """
    parts = pose_parts(given, position_only)
    if not isinstance(parts, PoseParts):
        return parts
    return transform(rotation_from_quaternion(parts.quaternion.tolist()), parts.position)


def pose_parts(given: Any, position_only: bool) -> Any:
    """Return the position and quaternion of a pose; a matrix or unknown form is returned unchanged.

    Args:
        given: Pose in any form of :func:`pose_matrix`.
        position_only: Whether a position without rotation is accepted.

    Raises:
        PoseError: If the message is stamped, or a position is given but not accepted.
    """
    if isinstance(given, np.ndarray | Pose):
        pair = None
    elif isinstance(given, list | tuple):
        pair = given if len(given) == 2 else None
    else:
        pair = _message_parts(given)
        if pair is None:
            given = _library_matrix(given)
    if pair is not None:
        position, quaternion = _vector(pair[0], 3), _vector(pair[1], 4)
        if position is not None and quaternion is not None:
            return PoseParts(position, quaternion)
    alone = None if isinstance(given, Pose) else _vector(given, 3)
    if alone is None:
        return given
    if not position_only:
        raise PoseError(f"{ALONE}; got {quoted(alone.tolist())}")
    return PoseParts(alone, np.array([0.0, 0.0, 0.0, 1.0]))


def _message_parts(given: Any) -> tuple[list[Any], list[Any]] | None:
    """Return the position and the quaternion of a message, or None for an object of another type.

    Raises:
        PoseError: If the message is stamped.
    """
    for stamped in ("pose", "transform"):
        if hasattr(given, "header") and hasattr(given, stamped):
            raise PoseError(
                f"a {type(given).__name__} has a frame of its own; give its .{stamped}, in the "
                "base frame of the robot"
            )
    for names in (("position", "orientation"), ("translation", "rotation")):
        place, turn = (getattr(given, name, None) for name in names)
        if all(hasattr(place, axis) for axis in "xyz") and all(hasattr(turn, c) for c in "xyzw"):
            return [place.x, place.y, place.z], [turn.x, turn.y, turn.z, turn.w]  # type: ignore[union-attr]
    return None


def _library_matrix(given: Any) -> Any:
    """Return the matrix of a transform of another library; other objects are returned unchanged."""
    if hasattr(given, "homogeneous"):
        return given.homogeneous
    return given.as_matrix() if callable(getattr(given, "as_matrix", None)) else given


def _vector(values: Any, n: int) -> Array | None:
    """Return n numbers as an array (n,), or None for any other value."""
    try:
        vector = real_array(values)
    except (TypeError, ValueError, OverflowError):
        return None
    return vector if vector.shape == (n,) else None


def rotations_from_quaternions(quaternions: Array) -> Array:
    """Return rotations (..., 3, 3) of quaternions (..., 4), which need not be normalised.

    The rotation of a quaternion with zero or infinite length is NaN.
    """
    lengths = np.linalg.norm(quaternions, axis=-1)
    is_good = (lengths >= SHORTEST_QUATERNION) & (lengths < np.inf)
    scale = np.where(is_good, lengths, np.nan)
    x, y, z, w = np.moveaxis(quaternions / scale[..., None], -1, 0)
    rows = rotation_of_unit(x, y, z, w)
    return np.moveaxis(np.array(rows), (0, 1), (-2, -1))


def matrices(positions: Array, quaternions: Array) -> Array:
    """Return pose matrices (..., 4, 4) of positions (..., 3) and quaternions (..., 4)."""
    T = np.zeros((*positions.shape[:-1], 4, 4))
    T[..., :3, :3] = rotations_from_quaternions(quaternions)
    T[..., :3, 3] = positions
    T[..., 3, 3] = 1.0
    return T
