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

# Maximum deviation of a matrix from a rotation, see roughness(). Rotations written with four digits
# are accepted, scaled rotations are rejected.
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
        quaternion: (x, y, z, w); the constructor normalises it.

    Raises:
        PoseError: If the position is not three finite numbers, or the quaternion is not four finite
            numbers or has zero length.
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
        """Return the pose that a matrix (4, 4) [m] describes.

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
        """Pose as a homogeneous matrix (4, 4) [m], a new array at each access."""
        return transform(np.array(rotation_of_unit(*self.quaternion)), np.array(self.position))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return the pose as a matrix (4, 4) [m]; NumPy calls this method to convert a pose.

        Args:
            dtype: Data type of the matrix; None stands for float64.
            copy: Ignored, because the matrix is always a new array.
        """
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
    """Position and quaternion of a pose; neither is validated."""

    position: Array  # (3,) [m]
    quaternion: Array  # (4,) x y z w


def validated_pose(T: Any, position_only: bool = False) -> Array:
    """Validate a pose in any form, and return it as a float64 matrix (4, 4) [m].

    Small errors of the rotation matrix are corrected.

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
        shown = f"an array of shape {pose.shape}" if pose.ndim else quoted(T)
        raise PoseError(f"{POSE_FORMS}; got {shown}{_hint(pose.shape)}")
    if not (np.abs(pose) <= MAX_POSE_COORDINATE).all():
        raise PoseError(f"a pose must be finite, and within {MAX_POSE_COORDINATE:g} m; got\n{pose}")
    if not np.allclose(pose[3], (0.0, 0.0, 0.0, 1.0), rtol=0.0, atol=1e-9):
        is_transposed = (pose[:, 3] == (0.0, 0.0, 0.0, 1.0)).all()
        hint = ": it seems transposed, use T.T" if is_transposed else ""
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
    """Return the end of an error message for a pose with a wrong array shape.

    The text explains a common mistake; it is empty if the shape is not that of a common mistake.
    """
    if shape == (7,):
        return ": write x y z and a quaternion x y z w as (T[:3], T[3:])"
    if len(shape) == 3 and shape[1:] == (4, 4):
        return ": use solve_batch for several poses of one tip"
    return f": {ALONE}" if shape == (3,) else ""


def pose_matrix(given: Any, position_only: bool = False) -> Any:
    """Convert a pose in any valid form to a matrix (4, 4) [m]; return other objects unchanged.

    Valid forms are a matrix; (position, quaternion x y z w); a position; an object with
    ``as_matrix()`` (SciPy, jaxlie) or ``homogeneous`` (Pinocchio); and a message with ``position``
    and ``orientation``, or with ``translation`` and ``rotation``. A matrix is not validated.

    Args:
        given: Pose.
        position_only: Whether a position without rotation is accepted. The rotation of its matrix
            is the identity.

    Raises:
        PoseError: If the pose is a message with a header, such as a PoseStamped, is a position and
            `position_only` is false, or has a quaternion of zero length.
    """
    parts = pose_parts(given, position_only)
    if not isinstance(parts, PoseParts):
        return parts
    return transform(rotation_from_quaternion(parts.quaternion.tolist()), parts.position)


def pose_parts(given: Any, position_only: bool) -> Any:
    """Return the position and quaternion of a pose as :class:`PoseParts`.

    A pose that is not given by a quaternion or a position, such as a matrix, is returned as a
    matrix. Objects of unknown form are returned unchanged.

    Args:
        given: Pose in any form of :func:`pose_matrix`.
        position_only: Whether a position without rotation is accepted.

    Raises:
        PoseError: If the pose is a message with a header, such as a PoseStamped, or is a position
            and `position_only` is false.
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
    """Return the position [x, y, z] and the quaternion [x, y, z, w] of a pose message.

    The result is None for an object that is not a pose message.

    Raises:
        PoseError: If the message has a header, such as a PoseStamped or TransformStamped.
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
    """Return the matrix of a transform object of SciPy, jaxlie or Pinocchio.

    Any other object is returned unchanged.
    """
    if hasattr(given, "homogeneous"):
        return given.homogeneous
    return given.as_matrix() if callable(getattr(given, "as_matrix", None)) else given


def _vector(values: Any, n: int) -> Array | None:
    """Return `values` as an array (n,), or None if `values` is not a sequence of n numbers."""
    try:
        vector = real_array(values)
    except (TypeError, ValueError, OverflowError):
        return None
    return vector if vector.shape == (n,) else None


def rotations_from_quaternions(quaternions: Array) -> Array:
    """Return the rotation matrices (..., 3, 3) of quaternions x y z w (..., 4).

    Quaternions need not be normalised. All entries of the matrix are NaN if the length of the
    quaternion is almost zero or infinite.
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
