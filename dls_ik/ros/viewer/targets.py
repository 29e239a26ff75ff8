"""Targets that are sent to the node that is shown."""

import threading
import time

from geometry_msgs.msg import PoseStamped
from rclpy.node import Node

from dls_ik.core.types import Array
from dls_ik.ros.conversions import fill_pose

MARGIN = 0.1  # [s] beyond the node's timeout


class Targets:
    """Sends poses as they come, which makes a stream, and the last one once more by itself.

    A stream that ceases stops the arm where it is; a pose by itself stays in force.
    """

    def __init__(self, node: Node, frame: str) -> None:
        self._node, self._frame = node, frame
        self._publisher = node.create_publisher(PoseStamped, "target_pose", 1)
        self._lock = threading.Lock()
        self._last: Array | None = None  # to be sent once more
        self._sent = 0.0  # [s] steady

    def send(self, T: Array, stamped: bool) -> None:
        """Send a pose (4, 4), stamped with the time of this machine or as of now."""
        with self._lock:
            self._last = T.copy()
            self._publish(T, stamped)

    def settle(self, timeout: float, stamped: bool) -> None:
        """Send the last pose by itself, once, if none was sent for the node's timeout [s]."""
        with self._lock:
            if self._last is None or time.monotonic() < self._sent + timeout + MARGIN:
                return
            self._publish(self._last, stamped)
            self._last = None

    def forget(self) -> None:
        """Send nothing more of itself."""
        with self._lock:
            self._last = None

    def _publish(self, T: Array, stamped: bool) -> None:
        message = PoseStamped()
        message.header.frame_id = self._frame
        if stamped:
            message.header.stamp = self._node.get_clock().now().to_msg()
        fill_pose(message.pose, T)
        self._publisher.publish(message)
        self._sent = time.monotonic()
