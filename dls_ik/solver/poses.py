# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Conversion of desired poses, single or in batches, to validated arrays for the kernels."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from dls_ik.core.se3 import is_pose
from dls_ik.core.search_rows import POSE_TOLERANCE
from dls_ik.core.types import Array, Flags
from dls_ik.errors import PoseError
from dls_ik.model.joint import real_array
from dls_ik.model.pose import ALONE, POSE_FORMS, PoseParts, matrices, pose_parts, validated_pose
from dls_ik.text import quoted

IDENTITY = (0.0, 0.0, 0.0, 1.0)  # quaternion x y z w


def checked_pose(T: Any, position_only: bool = False) -> Array:
    """Return a pose as an array (4, 4) for the kernels [m].

    A valid array is returned without a copy if it is float64, contiguous and writable, because
    kernels are compiled for this type only. Other values are converted by :func:`validated_pose`.

    Args:
        T: Pose in any form of :func:`dls_ik.model.pose.pose_matrix`.
        position_only: Whether a position without rotation is accepted.

    Raises:
        PoseError: If the pose is not valid.
    """
    if is_plain(T, (4, 4)) and is_pose(T, POSE_TOLERANCE):
        return cast(Array, T)
    return validated_pose(T, position_only)


def checked_poses(Ts: Any, k: int, position_only: Sequence[bool] = ()) -> Array:
    """Return the poses of k tips as an array (k, 4, 4) [m] for the kernels.

    A valid array is returned without a copy.

    Args:
        Ts: Array (k, 4, 4), or a sequence with a pose in any form for each tip. If k is 1, the pose
            need not be in a sequence.
        k: Number of tips.
        position_only: (k,) whether a position without rotation is accepted for a tip; () if it is
            accepted for no tip.

    Raises:
        PoseError: If the number of poses is not k, or a pose is not valid.
    """
    free = position_only or (False,) * k
    if k == 1:
        return checked_pose(_only(Ts), free[0]).reshape(1, 4, 4)
    if is_plain(Ts, (k, 4, 4)) and all(is_pose(T, POSE_TOLERANCE) for T in Ts):
        return cast(Array, Ts)
    return np.stack([_pose_of_tip(T, i, free) for i, T in enumerate(_separate(Ts, k))])


def is_plain(T: Any, shape: tuple[int, ...]) -> bool:
    """Return whether a value is a C-contiguous, writable float64 array of the given shape."""
    is_plain = type(T) is np.ndarray and T.dtype == np.float64 and T.flags.carray
    return bool(is_plain and T.shape == shape)


def _only(Ts: Any) -> Any:
    """Return the only member of a sequence of length 1; return any other value unchanged.

    The value is the pose of a single tip, which may be given alone or in a sequence.
    """
    is_array = isinstance(Ts, np.ndarray) and (Ts.ndim == 3 or Ts.shape == (1, 3))
    return Ts[0] if (isinstance(Ts, (list, tuple)) or is_array) and len(Ts) == 1 else Ts


def _separate(Ts: Any, k: int) -> list[Any]:
    """Return the members of a sequence of k poses as a list, without checking the poses.

    Raises:
        PoseError: If the value is not a sequence of k poses.
    """
    try:
        given = list(Ts)
    except TypeError as error:
        raise PoseError(
            f"{k} tips need {k} poses (4, 4), one for each; got {quoted(Ts)}"
        ) from error
    if len(given) != k:
        shape = f"an array of shape {Ts.shape}" if isinstance(Ts, np.ndarray) else str(len(given))
        raise PoseError(f"{k} tips need {k} poses (4, 4), one for each; got {shape}")
    return given


def _pose_of_tip(T: Any, i: int, free: Sequence[bool]) -> Array:
    """Validate the pose of tip i, and return it as an array (4, 4).

    Args:
        T: Pose in any form.
        i: Index of the tip, for the message.
        free: (k,) whether a position without rotation is accepted for a tip.

    Raises:
        PoseError: If the pose is not valid; the message gives the number of the pose.
    """
    try:
        return validated_pose(T, free[i])
    except PoseError as error:
        raise PoseError(f"pose {i + 1} of {len(free)}: {error}") from error


# Batches


def batch_poses(Ts: Any, k: int, position_only: Sequence[bool] = ()) -> Array:
    """Return a batch of poses of k tips as an array (b, k, 4, 4), copied only if needed.

    Only the form of the poses is checked here; the kernels check the numbers.

    Args:
        Ts: (b, k, 4, 4), or a pair of positions (b, k, 3) and quaternions (b, k, 4), or a sequence
            of b poses in any form, or positions (b, k, 3) if positions are accepted. For a single
            tip the dimension k is omitted.
        k: Number of tips.
        position_only: (k,) whether a position without rotation is accepted for a tip; () if it is
            accepted for no tip.

    Raises:
        PoseError: If the values are not numbers, or have none of the forms of `Ts`.
    """
    free = tuple(position_only) or (False,) * k
    tips = () if k == 1 else (k,)
    try:
        given = real_array(Ts)
    except (TypeError, ValueError, OverflowError):
        return _gathered(Ts, tips, free).reshape(-1, k, 4, 4)
    if given.ndim == 3 + len(tips) and given.shape[1:] == (*tips, 4, 4):
        return given.reshape(-1, k, 4, 4)
    if given.ndim == 2 + len(tips) and given.shape[1:] == (*tips, 3):
        if not all(free):
            raise PoseError(f"{ALONE}; got an array of shape {given.shape}")
        quaternions = np.broadcast_to(IDENTITY, (*given.shape[:-1], 4))
        return matrices(given, quaternions).reshape(-1, k, 4, 4)
    is_single = given.shape == (*tips, 4, 4)
    hint = ": use solve for a single pose, or solve_batch with a list of poses" if is_single else ""
    raise PoseError(f"{_batch_forms(tips)}; got an array of shape {given.shape}{hint}")


def _batch_forms(tips: tuple[int, ...]) -> str:
    """Return a sentence for error messages with the valid forms of a batch.

    Args:
        tips: Shape of the dimension of the tips: () for a single tip, (k,) for k tips.
    """
    shape = ", ".join(map(str, ("b", *tips)))
    many = f" for {tips[0]} tips" if tips else ""
    return (
        f"a batch of poses must be an array of numbers ({shape}, 4, 4){many}, (positions ({shape}, "
        f"3), quaternions x y z w ({shape}, 4)), or a list of poses"
    )


def _gathered(Ts: Any, tips: tuple[int, ...], free: tuple[bool, ...]) -> Array:
    """Convert a batch that is not one array of numbers to an array of poses.

    Args:
        Ts: Sequence of b poses (of k tips each), or a pair of a position array and a quaternion
            array.
        tips: () for a single tip, (k,) for k tips.
        free: (k,) whether a position without rotation is accepted for a tip.

    Returns:
        Poses with the shape (b * k, 4, 4) or (b, k, 4, 4).

    Raises:
        PoseError: If the value is neither a sequence of poses nor a pair of arrays, or a pose has
            no valid form.
    """
    if not isinstance(Ts, Sequence) or isinstance(Ts, str):
        raise PoseError(f"{_batch_forms(tips)}; got {quoted(Ts)}")
    together = _from_two_arrays(Ts, tips)
    if together is not None:
        return together
    b, k = len(Ts), len(free)
    poses, at, positions, quaternions = np.empty((b * k, 4, 4)), [], [], []
    for i, row in enumerate(Ts):
        for j, parts in enumerate(_row_parts(row, f"pose {i + 1} of {b}", tips, free), i * k):
            if isinstance(parts, PoseParts):
                at.append(j)
                positions.append(parts[0])
                quaternions.append(parts[1])
            else:
                poses[j] = parts
    if at:
        poses[at] = matrices(np.array(positions), np.array(quaternions))
    return poses


def _row_parts(row: Any, name: str, tips: tuple[int, ...], free: tuple[bool, ...]) -> list[Any]:
    """Return a list with the pose of each tip in one row of a batch.

    A pose is a matrix (4, 4), or a position with a quaternion.

    Args:
        row: Row of the batch.
        name: Name of the row for messages, such as "pose 3 of 10".
        tips: () for a single tip, (k,) for k tips.
        free: (k,) whether a position without rotation is accepted for a tip.

    Raises:
        PoseError: If a pose has no valid form; the message starts with `name`.
    """
    try:
        members = _separate(row, tips[0]) if tips else [_only(row)]
        parts = [pose_parts(T, alone) for T, alone in zip(members, free, strict=True)]
        return [each if isinstance(each, PoseParts) else _numbers(each) for each in parts]
    except PoseError as error:
        raise PoseError(f"{name}: {error}") from error


def _from_two_arrays(Ts: Sequence[Any], tips: tuple[int, ...]) -> Array | None:
    """Return poses (b, k, 4, 4) from a pair of position and quaternion arrays.

    Args:
        Ts: Positions (b, k, 3) and quaternions (b, k, 4), without k for a single tip.
        tips: () for a single tip, (k,) for k tips.

    Returns:
        The poses; None if the value is not a pair of arrays with last dimensions 3 and 4.

    Raises:
        PoseError: If the shapes of positions and quaternions differ, or the pair is a single pose.
    """
    try:
        positions, quaternions = map(real_array, Ts)
    except (TypeError, ValueError, OverflowError):
        return None
    if (positions.shape[-1:], quaternions.shape[-1:]) != ((3,), (4,)):
        return None
    if positions.ndim == 1 + len(tips):
        raise PoseError(f"{_batch_forms(tips)}; give a single pose to solve, or in a list")
    if positions.ndim != 2 + len(tips) or positions.shape[:-1] != quaternions.shape[:-1]:
        shapes = f"{positions.shape} and {quaternions.shape}"
        raise PoseError(f"{_batch_forms(tips)}; got arrays of shape {shapes}")
    return matrices(positions, quaternions)


def _numbers(T: Any) -> Array:
    """Return a pose matrix as a float64 array (4, 4), without checking the rotation.

    Raises:
        PoseError: If the value is not an array of numbers of shape (4, 4).
    """
    try:
        pose = real_array(T)
    except (TypeError, ValueError, OverflowError):
        pose = np.empty(0)
    if pose.shape != (4, 4):
        raise PoseError(f"{POSE_FORMS}; got {quoted(T)}")
    return pose


def valid_poses(poses: Array, tips: int) -> tuple[Array, Flags]:
    """Return the poses (b, k, 4, 4) with exact rotations, and whether each of them is valid."""
    R, last = poses[..., :3, :3], poses[..., 3, :]
    with np.errstate(invalid="ignore", over="ignore"):
        deviation = np.abs(R @ R.swapaxes(-1, -2) - np.eye(3)).max(axis=(1, 2, 3), initial=0.0)
        deviation = np.maximum(deviation, np.abs(last - [0.0, 0.0, 0.0, 1.0]).max(axis=(1, 2)))
    is_valid = (deviation <= 0.5 * POSE_TOLERANCE) & np.isfinite(poses).all(axis=(1, 2, 3))
    exact = np.array(poses, np.float64, order="C")
    for i in np.flatnonzero(~is_valid).tolist():
        try:
            exact[i] = checked_poses(poses[i], tips)
        except PoseError:
            continue
        is_valid[i] = True
    return exact, is_valid
