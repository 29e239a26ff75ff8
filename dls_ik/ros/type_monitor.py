"""Publishers whose messages nobody here can read, as their type is another."""

from typing import Any

from rclpy.clock import Clock, ClockType
from rclpy.node import Node

from dls_ik.text import escape

LOOK_OUT = 1.0  # [s] between looks
MOST = 100  # that are told of


class TypeMonitor:
    """Says once of each publisher that it sends another type than a subscription of the node reads.

    The middleware keeps such messages back without a word. A publisher is told of when it is there
    at two looks, so that subscriptions may suit themselves to it meanwhile.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._before: set[str] = set()
        self._said: set[str] = set()
        node.create_timer(LOOK_OUT, self._look, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def _look(self) -> None:
        found = {
            f"{info.node_namespace.rstrip('/')}/{info.node_name} sends {info.topic_type} on "
            f"{subscription.topic_name}, where {read} is read: it is not heard"
            for subscription in list(self._node.subscriptions)
            for info in self._node.get_publishers_info_by_topic(subscription.topic_name)
            if info.topic_type != (read := type_name(subscription.msg_type))
        }
        for words in sorted((found & self._before) - self._said):
            if len(self._said) < MOST:
                self._said.add(words)
                self._node.get_logger().warning(escape(words))
        self._before = found


def type_name(message_type: Any) -> str:
    """A type as the graph names it, such as ``geometry_msgs/msg/Twist``."""
    return f"{message_type.__module__.partition('.')[0]}/msg/{message_type.__name__}"
