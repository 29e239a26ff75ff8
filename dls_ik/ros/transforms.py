"""Frames from tf2, where it is installed."""

from typing import Any

from rclpy.node import Node
from rclpy.time import Time

from dls_ik.core.types import Array
from dls_ik.ros.conversions import matrix_from_pose
from dls_ik.ros.frames import Lookup, no_tf2

# [ns] that transforms come later than stamps: clients such as pymoveit2 stamp a pose with now.
DELAY = 100_000_000
LONGEST = 500  # characters of what tf2 says, which repeats the names


def tf2_lookup(node: Node) -> Lookup:
    """Listen to tf, and look transforms up; without tf2 a lookup that says so."""
    try:
        import tf2_ros
    except ImportError:
        return no_tf2
    buffer = tf2_ros.Buffer()
    listener = tf2_ros.TransformListener(buffer, node)

    def lookup(target: str, source: str, stamp: Any, _listener: Any = listener) -> Array:
        try:
            return _matrix(_transform(buffer, target, source, stamp).transform)
        except tf2_ros.TransformException as error:
            raise LookupError(f"tf2 says: {' '.join(str(error).split())[:LONGEST]}") from error

    return lookup


def _transform(buffer: Any, target: str, source: str, stamp: Any) -> Any:
    """The transform at a stamp; the latest for none, or one that is not much later."""
    wanted = 0 if stamp is None else stamp.sec * 10**9 + stamp.nanosec
    latest = buffer.lookup_transform(target, source, Time())
    newest = latest.header.stamp.sec * 10**9 + latest.header.stamp.nanosec
    if wanted == 0 or 0 <= wanted - newest <= DELAY:
        return latest
    return buffer.lookup_transform(target, source, Time(nanoseconds=wanted))


def _matrix(transform: Any) -> Array:
    from geometry_msgs.msg import Point, Pose

    p = transform.translation
    position = Point(x=p.x, y=p.y, z=p.z)
    return matrix_from_pose(Pose(position=position, orientation=transform.rotation))
