# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Path of an object that two arms carry: ``python -m dls_ik.ros.demo.carry``.

The node attaches a bar between the two tips of a running ``ik_node`` to the first tip, and then
publishes targets of the first tip on a loop that starts at its position. The second tip follows the
first because the parameter ``relative_pose`` of ``ik_node`` is set.
"""

import contextlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import rclpy
from geometry_msgs.msg import PoseStamped
from moveit_msgs.msg import AttachedCollisionObject, CollisionObject
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from shape_msgs.msg import SolidPrimitive

from dls_ik.core.types import Array
from dls_ik.model.rotations import rotation_from_z, transform
from dls_ik.ros.frames import matrix_from_pose, pose_from_matrix
from dls_ik.ros.servo.target_buffer import topic_of

WIDTH = 0.04  # [m] width and height of the bar
GROWTH_TIME = 2.0  # [s] time in which the path grows to its full size


class Carrier(Node):
    """Publishes the object and the path of the first tip."""

    def __init__(self) -> None:
        super().__init__("carry")
        tips = self.declare_parameter("tips", ["left_wam_tip", "right_wam_tip"]).value
        links = self.declare_parameter("touch_links", [""]).value
        self._radius = self.declare_parameter("radius", 0.1).value  # [m]
        self._period = self.declare_parameter("period", 6.0).value  # [s] of a loop
        self._tips, self._links = list(tips), [link for link in links if link]
        self._starts: dict[str, Array] = {}  # poses of the tips in the root frame
        self._frame = ""
        for tip in self._tips:
            topic = topic_of("dls_ik/tip_pose", tip)
            self.create_subscription(PoseStamped, topic, self._keep(tip), 1)
        self._targets = self.create_publisher(
            PoseStamped, topic_of("target_pose", self._tips[0]), 1
        )
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._objects = self.create_publisher(
            AttachedCollisionObject, "attached_collision_object", latched
        )
        rate = self.declare_parameter("rate", 100.0).value  # [Hz]
        self._begin = 0.0
        self.create_timer(1.0 / rate, self._publish)

    def _keep(self, tip: str) -> Callable[[Any], None]:
        """Return a callback that keeps the first pose of a tip."""

        def keep(message: Any) -> None:
            self._frame = message.header.frame_id
            self._starts.setdefault(tip, matrix_from_pose(message.pose))

        return keep

    def _now(self) -> float:
        """Return the current time [s]."""
        return float(self.get_clock().now().nanoseconds) * 1e-9

    def _publish(self) -> None:
        """Publish the current target; attach the object before the first target."""
        if len(self._starts) < len(self._tips):
            return
        if self._begin == 0.0:
            self._begin = self._now()
            self._objects.publish(self._bar())
            self.get_logger().info("the arms carry the object along a loop")
        t = self._now() - self._begin
        size, turn = self._radius * min(1.0, t / GROWTH_TIME), 2.0 * np.pi * t / self._period
        T = self._starts[self._tips[0]].copy()
        T[:3, 3] += size * np.array([np.sin(turn), 0.5 * np.sin(2.0 * turn), 1.0 - np.cos(turn)])
        message = PoseStamped(pose=pose_from_matrix(T))
        message.header.frame_id = self._frame
        self._targets.publish(message)

    def _bar(self) -> Any:
        """Return the bar between the tips, attached to the first tip."""
        first, second = (self._starts[tip] for tip in self._tips)
        between = (np.linalg.inv(first) @ second)[:3, 3]
        length = float(np.linalg.norm(between))
        bar = CollisionObject(id="bar", operation=CollisionObject.ADD)
        bar.header.frame_id = self._tips[0]
        bar.pose = pose_from_matrix(transform(rotation_from_z(between), 0.5 * between))
        shape = SolidPrimitive(type=SolidPrimitive.BOX, dimensions=[WIDTH, WIDTH, length])
        bar.primitives, bar.primitive_poses = [shape], [pose_from_matrix(np.eye(4))]
        return AttachedCollisionObject(
            link_name=self._tips[0], object=bar, touch_links=[*self._tips, *self._links]
        )


def main() -> int:
    """Run the node until it is interrupted; return the exit code."""
    rclpy.init()
    node = Carrier()
    with contextlib.suppress(KeyboardInterrupt, ExternalShutdownException):
        rclpy.spin(node)
    node.destroy_node()
    rclpy.try_shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
