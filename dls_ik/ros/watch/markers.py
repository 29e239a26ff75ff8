"""Markers for RViz, often enough for the eye, while somebody listens."""

import time

from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from visualization_msgs.msg import MarkerArray

from dls_ik.ros.watch.marker_array import MarkerMessage
from dls_ik.ros.watch.seen import NOTHING
from dls_ik.ros.watch.trail import Trail

TOPIC = "~/markers"
PERIOD = 0.1  # [s]


class Markers:
    """Publishes ``visualization_msgs/MarkerArray`` from what was seen last, outside the loop."""

    def __init__(self, node: Node) -> None:
        self.seen = NOTHING  # written by the loop
        self._publisher = node.create_publisher(MarkerArray, TOPIC, 1)
        self._message: MarkerMessage | None = None
        self._trail: Trail | None = None
        node.create_timer(PERIOD, self._publish, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def _publish(self) -> None:
        seen = self.seen
        if seen.trail is None or seen.output is None:
            return
        if self._publisher.get_subscription_count() == 0:
            return
        tip, T_d = seen.trail.tip, seen.output.T_d
        if self._message is None or self._trail is not seen.trail:
            self._message, self._trail = MarkerMessage(tip.frame, tip.length()), seen.trail
        T_root_target = None if T_d is None else tip.in_root(T_d)
        trail = seen.trail.points(time.monotonic())
        message = self._message.fill(seen.state, tip.poses(seen.output.q), T_root_target, trail)
        self._publisher.publish(message)
