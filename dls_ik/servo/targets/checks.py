"""What is given as a target: checked, with the reason where it is refused."""

import math
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dls_ik.core.se3 import FARTHEST
from dls_ik.core.types import Array
from dls_ik.exceptions import OptionError, PoseError
from dls_ik.model.rigid import transform
from dls_ik.solver.poses import checked_pose, real_array


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
        raise PoseError(f"{valid}, not {values!r}") from error


def _checked_member(T: Array, k: int) -> Array:
    try:
        return checked_pose(T)
    except PoseError as error:
        raise PoseError(f"pose {k} of the trajectory: {error}") from error


def checked_period(period: Any) -> float:
    """A time between poses [s], or an OptionError."""
    interval = _number(period)
    if not 1e-3 <= interval <= 3600.0:
        raise OptionError(f"period is a time from 0.001 to 3600 [s], not {period!r}")
    return interval


def checked_time(name: str, value: Any) -> float:
    """A time or an age [s], finite, or an OptionError."""
    time = _number(value)
    if not math.isfinite(time):
        raise OptionError(f"{name} is a finite time [s], not {value!r}")
    return time


def _number(value: Any) -> float:
    """It as a float, NaN where it is none."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan
