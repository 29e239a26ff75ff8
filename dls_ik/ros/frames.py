# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Conversion of poses in messages, and lookup of frames among links of the robot and in tf2."""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from geometry_msgs.msg import Point, Pose
from rclpy.node import Node
from rclpy.time import Time

from dls_ik.core.types import MAX_POSE_COORDINATE, Array
from dls_ik.errors import FrameError, PoseError
from dls_ik.model.rotations import (
    SHORTEST_QUATERNION,
    inverse,
    quaternion_from_rotation,
    rotation_of_unit,
)
from dls_ik.model.tree import Tree
from dls_ik.text import listing, quoted

JointValues = Mapping[str, float]  # joint positions by name [rad or m]

MAX_NAME = 256  # maximum number of characters of the name of a frame or a joint
QUATERNION_TOLERANCE = 1e-3  # deviation of the norm from 1 that counts as rounding error
MAX_TF2_MESSAGE_LENGTH = 500  # characters; messages of tf2 repeat the frame names
# Maximum time by which a stamp may be newer than the latest transform [ns]. Clients such as
# pymoveit2 use the current time as the stamp.
MAX_TRANSFORM_DELAY = 100_000_000

# Function of (target, source, stamp) that returns T_target_source (4, 4) at the time `stamp`, a
# builtin_interfaces/Time. A stamp of None or zero selects the latest transform. The function raises
# a LookupError with the reason if there is no transform.
Lookup = Callable[[str, str, Any], Array]


def matrix_from_pose(pose: Any) -> Array:
    """Convert a ``geometry_msgs/Pose`` to a transform (4, 4); the quaternion is normalised.

    Raises:
        PoseError: If a number is not finite, or the quaternion is zero.
    """
    p, o = pose.position, pose.orientation
    position, quaternion = (p.x, p.y, p.z), (o.x, o.y, o.z, o.w)
    if not math.hypot(*position) <= MAX_POSE_COORDINATE:
        raise PoseError(f"position {position} of the pose is not valid; give finite numbers [m]")
    if not all(map(math.isfinite, quaternion)):
        raise PoseError(f"quaternion (x, y, z, w) {quaternion} of the pose is not finite")
    length = math.hypot(*quaternion)
    if not SHORTEST_QUATERNION <= length < math.inf:
        raise PoseError(f"quaternion (x, y, z, w) {quaternion} of the pose has no direction")
    R = rotation_of_unit(*(component / length for component in quaternion))
    rows = [[*row, p] for row, p in zip(R, position, strict=True)]
    return np.array([*rows, [0.0, 0.0, 0.0, 1.0]])


def pose_from_matrix(T: Array) -> Any:
    """Convert a (4, 4) rigid transform to a ``geometry_msgs/Pose``."""
    pose = Pose()
    fill_pose(pose, T)
    return pose


def fill_pose(pose: Any, T: Array) -> None:
    """Write a (4, 4) rigid transform into a ``geometry_msgs/Pose``."""
    p, o = pose.position, pose.orientation
    p.x, p.y, p.z = T[:3, 3].tolist()
    o.x, o.y, o.z, o.w = quaternion_from_rotation(T[:3, :3])


def pose_errors(T: Array, other: Array) -> tuple[float, float]:
    """Return the distance [m] and the angle [rad, 0 to pi] between two poses (4, 4)."""
    R = T[:3, :3].T @ other[:3, :3]
    sine = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    angle = np.arctan2(np.linalg.norm(sine), np.trace(R) - 1.0)
    return float(np.linalg.norm(other[:3, 3] - T[:3, 3])), float(angle)


def quaternion_note(poses: Iterable[Any]) -> str:
    """Return a text about the first quaternion whose norm is not 1; empty if there is none.

    A norm other than 1 is usually a mistake of the sender, for example an omitted ``w``, whose
    default value is 1.

    Args:
        poses: ``geometry_msgs/Pose``, or other messages with an orientation.
    """
    for pose in poses:
        o = pose.orientation
        length = math.hypot(o.x, o.y, o.z, o.w)
        if abs(length - 1.0) > QUATERNION_TOLERANCE and 0.0 < length < math.inf:
            given = ", ".join(f"{c:.4g}" for c in (o.x, o.y, o.z, o.w))
            taken = ", ".join(f"{c / length:.4g}" for c in (o.x, o.y, o.z, o.w))
            return (
                f"the quaternion (x, y, z, w) ({given}) has length {length:.4g} and was taken as "
                f"({taken}); an omitted w is 1"
            )
    return ""


def nanoseconds(time: Any) -> int:
    """Convert a ``builtin_interfaces/Time`` to a number of nanoseconds."""
    return int(time.sec * 10**9 + time.nanosec)


def strip_slash(frame: str) -> str:
    """Return the name of a frame without the leading slash that ROS 1 nodes add."""
    return frame.removeprefix("/")


def base_from_root(T_root_link: Array, tree: Tree, base: str, values: JointValues) -> Array:
    """Transform a pose (4, 4) of a link from the root frame to the frame of a base link.

    Args:
        T_root_link: Pose in the root frame.
        tree: Robot.
        base: Name of the base link.
        values: Joint positions by name [rad or m].
    """
    if base == tree.root:
        return T_root_link
    return inverse(tree.pose(base, values)) @ T_root_link


def no_tf2(target: str, source: str, stamp: Any) -> Array:
    """Raise a LookupError: tf2 is not installed."""
    raise LookupError("tf2_ros is not installed, so only links of the robot are known")


def tf2_lookup(node: Node) -> Lookup:
    """Subscribe to TF, and return a function that looks up transforms."""
    try:
        import tf2_ros
    except ImportError:
        return no_tf2
    buffer = tf2_ros.Buffer()
    listener = tf2_ros.TransformListener(buffer, node)

    def lookup(target: str, source: str, stamp: Any, _listener: Any = listener) -> Array:
        try:
            transform = _transform(buffer, target, source, stamp).transform
        except tf2_ros.TransformException as error:
            reason = " ".join(str(error).split())[:MAX_TF2_MESSAGE_LENGTH]
            raise LookupError(f"tf2 says: {reason}") from error
        p = transform.translation
        position = Point(x=p.x, y=p.y, z=p.z)
        return matrix_from_pose(Pose(position=position, orientation=transform.rotation))

    return lookup


def _transform(buffer: Any, target: str, source: str, stamp: Any) -> Any:
    """Look up the transform at a stamp.

    Take the latest transform if the stamp is 0, or up to MAX_TRANSFORM_DELAY newer than that.
    """
    stamp_ns = 0 if stamp is None else nanoseconds(stamp)
    latest = buffer.lookup_transform(target, source, Time())
    newest = nanoseconds(latest.header.stamp)
    if stamp_ns == 0 or 0 <= stamp_ns - newest <= MAX_TRANSFORM_DELAY:
        return latest
    return buffer.lookup_transform(target, source, Time(nanoseconds=stamp_ns))


class Frames:
    """Lookup of frames by name: links of the robot first, then frames of TF."""

    def __init__(self, lookup: Lookup = no_tf2) -> None:
        self._lookup = lookup

    def pose_in_base(
        self, stamped: Any, tree: Tree, base: str, values: JointValues, at_stamp: bool = False
    ) -> Array:
        """Transform a ``geometry_msgs/PoseStamped`` to (4, 4) in the frame of a base link.

        Args:
            values: Joint positions by name [rad or m].
            at_stamp: Whether to look up frames of TF at the stamp of the message; otherwise the
                latest transform is used.

        Raises:
            FrameError: If the frame is unknown.
            PoseError: If the pose is not valid.
        """
        T = matrix_from_pose(stamped.pose)
        frame = strip_slash(stamped.header.frame_id)
        if frame not in ("", tree.root):
            stamp = stamped.header.stamp if at_stamp else None
            T = self.T_root_frame(frame, tree, values, stamp) @ T
        return base_from_root(T, tree, base, values)

    def T_root_frame(self, frame: str, tree: Tree, values: JointValues, stamp: Any = None) -> Array:
        """Return the pose (4, 4) of a frame in the root frame.

        Args:
            stamp: ``builtin_interfaces/Time`` at which frames of TF are looked up; None or zero:
                the latest transform.

        Raises:
            FrameError: If the frame is unknown; the message lists the links of the robot.
        """
        frame = strip_slash(frame) or tree.root
        if frame in tree.child_joints:
            return tree.pose(frame, values)
        try:
            if len(frame) > MAX_NAME:
                raise LookupError(f"names have at most {MAX_NAME} characters")
            return self._lookup(tree.root, frame, stamp)
        except LookupError as error:
            raise FrameError(
                f"unknown frame {quoted(frame)}: {error}; empty is the root {tree.root!r}, links "
                f"of the robot: {listing(tree.links)}"
            ) from error
