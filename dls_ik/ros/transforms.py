"""Frames from tf2, where it is installed."""

from typing import Any

from rclpy.node import Node
from rclpy.time import Time

from dls_ik.core.types import Array
from dls_ik.ros.conversions import matrix_from_pose
from dls_ik.ros.frames import Lookup, no_tf2


def tf2_lookup(node: Node) -> Lookup:
    """Listen to tf, and look the latest transform up; without tf2 a lookup that says so."""
    try:
        import tf2_ros
    except ImportError:
        return no_tf2
    buffer = tf2_ros.Buffer()
    listener = tf2_ros.TransformListener(buffer, node)

    def lookup(target: str, source: str, _listener: Any = listener) -> Array:
        try:
            stamped = buffer.lookup_transform(target, source, Time())
        except tf2_ros.TransformException as error:
            raise LookupError(f"tf2 says: {error}") from error
        return _matrix(stamped.transform)

    return lookup


def _matrix(transform: Any) -> Array:
    from geometry_msgs.msg import Point, Pose

    p = transform.translation
    position = Point(x=p.x, y=p.y, z=p.z)
    return matrix_from_pose(Pose(position=position, orientation=transform.rotation))
