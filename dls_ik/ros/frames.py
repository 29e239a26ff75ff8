# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Conversion of poses between messages and matrices, and lookup of frames in robot and tf2."""

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
QUATERNION_TOLERANCE = 1e-3  # maximum deviation of the norm from 1 that is a rounding error
MAX_TF2_MESSAGE_LENGTH = 500  # maximum number of characters that are quoted from a tf2 message
# Maximum time by which a stamp may be newer than the latest transform [ns]. Clients such as
# pymoveit2 use the current time as the stamp.
MAX_TRANSFORM_DELAY = 100_000_000

# Function of (target, source, stamp) that returns T_target_source (4, 4) at the time `stamp`, a
# builtin_interfaces/Time. A stamp of None or zero selects the latest transform. The function raises
# a LookupError with the reason if there is no transform.
Lookup = Callable[[str, str, Any], Array]


def matrix_from_pose(pose: Any) -> Array:
    """Return a ``geometry_msgs/Pose`` as a matrix (4, 4); the quaternion is normalised.

    Raises:
        PoseError: If a number is not finite, or the quaternion is zero.
    """
    p, o = pose.position, pose.orientation
    position, quaternion = (p.x, p.y, p.z), (o.x, o.y, o.z, o.w)
    if not math.hypot(*position) <= MAX_POSE_COORDINATE:
        raise PoseError(
            f"the position of a pose must be within {MAX_POSE_COORDINATE:g} m of the origin; "
            f"got {position}"
        )
    if not all(map(math.isfinite, quaternion)):
        raise PoseError(f"the quaternion (x, y, z, w) of a pose must be finite; got {quaternion}")
    length = math.hypot(*quaternion)
    if not SHORTEST_QUATERNION <= length < math.inf:
        raise PoseError(
            f"the quaternion (x, y, z, w) of a pose must not be zero or too large to normalise; "
            f"got {quaternion}"
        )
    R = rotation_of_unit(*(component / length for component in quaternion))
    rows = [[*row, p] for row, p in zip(R, position, strict=True)]
    return np.array([*rows, [0.0, 0.0, 0.0, 1.0]])


def pose_from_matrix(T: Array) -> Any:
    """Return a pose (4, 4) as a ``geometry_msgs/Pose``."""
    pose = Pose()
    fill_pose(pose, T)
    return pose


def fill_pose(pose: Any, T: Array) -> None:
    """Set the fields of a ``geometry_msgs/Pose`` to a pose T (4, 4)."""
    p, o = pose.position, pose.orientation
    p.x, p.y, p.z = T[:3, 3].tolist()
    o.x, o.y, o.z, o.w = quaternion_from_rotation(T[:3, :3])


def pose_errors(T: Array, other: Array) -> tuple[float, float]:
    """Return the distance [m] and the rotation angle [rad, 0 to pi] between two poses (4, 4)."""
    R = T[:3, :3].T @ other[:3, :3]
    sine = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    angle = np.arctan2(np.linalg.norm(sine), np.trace(R) - 1.0)
    return float(np.linalg.norm(other[:3, 3] - T[:3, 3])), float(angle)


def quaternion_note(poses: Iterable[Any]) -> str:
    """Return a text about the first quaternion whose norm is not 1.

    The text is empty if all norms are 1. Another norm is usually a mistake of the sender, for
    example if the sender omits ``w``, whose default value is 1.

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
                f"the quaternion (x, y, z, w) ({given}) has length {length:.4g} and was normalised "
                f"to ({taken}); an omitted w means w = 1"
            )
    return ""


def nanoseconds(time: Any) -> int:
    """Return a ``builtin_interfaces/Time`` as a number of nanoseconds."""
    return int(time.sec * 10**9 + time.nanosec)


def strip_slash(frame: str) -> str:
    """Return the name of a frame without the leading slash that ROS 1 nodes put before names."""
    return frame.removeprefix("/")


def base_from_root(T_root_link: Array, tree: Tree, base: str, values: JointValues) -> Array:
    """Return a pose ``T_root_link`` (4, 4) relative to a base link, ``T_base_link`` (4, 4).

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
    """Raise a LookupError, because tf2 is not installed; has the arguments of a `Lookup`."""
    raise LookupError("tf2_ros is not installed, so only links of the robot are valid frames")


def tf2_lookup(node: Node) -> Lookup:
    """Subscribe to TF, and return a function that looks up transforms (see `Lookup`)."""
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
    """Return the ``TransformStamped`` between two frames at the time of a stamp.

    Return the latest transform if the stamp is 0 or None, or if the stamp is newer than the latest
    transform by at most MAX_TRANSFORM_DELAY.

    Args:
        buffer: Buffer of tf2.
        target: Name of the target frame.
        source: Name of the source frame.
        stamp: ``builtin_interfaces/Time``, or None.
    """
    stamp_ns = 0 if stamp is None else nanoseconds(stamp)
    latest = buffer.lookup_transform(target, source, Time())
    newest = nanoseconds(latest.header.stamp)
    if stamp_ns == 0 or 0 <= stamp_ns - newest <= MAX_TRANSFORM_DELAY:
        return latest
    return buffer.lookup_transform(target, source, Time(nanoseconds=stamp_ns))


class Frames:
    """Lookup of frames by name, first among the links of a robot, then in TF.

    Args:
        lookup: Function that looks up transforms in TF.
    """

    def __init__(self, lookup: Lookup = no_tf2) -> None:
        self._lookup = lookup

    def pose_in_base(
        self, stamped: Any, tree: Tree, base: str, values: JointValues, at_stamp: bool = False
    ) -> Array:
        """Return a ``geometry_msgs/PoseStamped`` as a pose ``T_base_pose`` (4, 4).

        Args:
            stamped: Pose message.
            tree: Robot.
            base: Name of the base link.
            values: Joint positions by name [rad or m].
            at_stamp: Whether to look up TF frames at the stamp of the message; if False, the latest
                transform is used.

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
        """Return the pose ``T_root_frame`` (4, 4) of a frame.

        Args:
            frame: Name of a link or a TF frame; empty: the root link.
            tree: Robot.
            values: Joint positions by name [rad or m].
            stamp: ``builtin_interfaces/Time`` at which TF frames are looked up; None or zero: the
                latest transform.

        Raises:
            FrameError: If the frame is unknown; the message lists the links of the robot.
        """
        frame = strip_slash(frame) or tree.root
        if frame in tree.child_joints:
            return tree.pose(frame, values)
        try:
            if len(frame) > MAX_NAME:
                raise LookupError(f"a name may have at most {MAX_NAME} characters")
            return self._lookup(tree.root, frame, stamp)
        except LookupError as error:
            raise FrameError(
                f"unknown frame {quoted(frame)}: {error}; links of the robot: "
                f"{listing(tree.links)}; an empty name means the root {tree.root!r}"
            ) from error
