"""Messages to arrays and back."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from geometry_msgs.msg import Pose

from dls_ik.core.se3 import FARTHEST
from dls_ik.core.types import Array
from dls_ik.model.rotations import (
    SHORTEST_QUATERNION,
    quaternion_from_rotation,
    rotation_of_unit,
)
from dls_ik.ros.services.codes import Code, RequestError

LENGTH_TOLERANCE = 1e-3  # of quaternions, which people round


def matrix_from_pose(pose: Any) -> Array:
    """(4, 4) of a ``geometry_msgs/Pose``; a quaternion of another length than 1 is normalised.

    Raises:
        RequestError: numbers that are not finite, or a zero quaternion.
    """
    p, o = pose.position, pose.orientation
    position, quaternion = (p.x, p.y, p.z), (o.x, o.y, o.z, o.w)
    if not math.hypot(*position) <= FARTHEST:
        raise _invalid(f"the target's position {position} is not finite, or beyond all reach")
    if not all(map(math.isfinite, quaternion)):
        raise _invalid(f"the target's quaternion (x, y, z, w) {quaternion} is not finite")
    length = math.hypot(*quaternion)
    if not SHORTEST_QUATERNION <= length < math.inf:
        raise _invalid(f"the target's quaternion (x, y, z, w) {quaternion} has no direction")
    T = np.eye(4)
    T[:3, :3] = rotation_of_unit(*(component / length for component in quaternion))
    T[:3, 3] = position
    return T


def length_note(poses: Iterable[Any]) -> str:
    """A sentence about the first of ``geometry_msgs/Pose`` whose quaternion is not of length 1.

    It was normalised, which is seldom the pose that was meant: a ``w`` that is left out is 1.
    """
    for pose in poses:
        o = pose.orientation
        length = math.hypot(o.x, o.y, o.z, o.w)
        if abs(length - 1.0) > LENGTH_TOLERANCE and 0.0 < length < math.inf:
            given = ", ".join(f"{c:.4g}" for c in (o.x, o.y, o.z, o.w))
            taken = ", ".join(f"{c / length:.4g}" for c in (o.x, o.y, o.z, o.w))
            return (
                f"the quaternion (x, y, z, w) ({given}) has length {length:.4g} and was taken as "
                f"({taken}): w is 1 where it is left out"
            )
    return ""


def _invalid(message: str) -> RequestError:
    return RequestError(Code.GOAL_STATE_INVALID, message)


def pose_from_matrix(T: Array) -> Any:
    """A ``geometry_msgs/Pose`` of a (4, 4) rigid transform."""
    pose = Pose()
    fill_pose(pose, T)
    return pose


def fill_pose(pose: Any, T: Array) -> None:
    """Write a (4, 4) rigid transform into a ``geometry_msgs/Pose``."""
    p, o = pose.position, pose.orientation
    p.x, p.y, p.z = T[:3, 3].tolist()
    o.x, o.y, o.z, o.w = quaternion_from_rotation(T[:3, :3])


def seconds(duration: Any, default: float) -> float:
    """The timeout that a ``builtin_interfaces/Duration`` asks for [s]; zero: the default.

    Raises:
        RequestError: below zero.
    """
    time = duration.sec + 1e-9 * duration.nanosec
    if time < 0.0:
        raise RequestError(Code.FAILURE, f"timeout is a time from 0 on [s], not {time:g}")
    return time or default
