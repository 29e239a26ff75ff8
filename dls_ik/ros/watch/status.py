"""What the loop is doing, each cycle."""

from typing import Any

from rclpy.node import Node

from dls_ik.ros.logs import Throttle
from dls_ik.servo.state import ServoState

try:
    from moveit_msgs.msg import ServoStatus
except ImportError:  # before moveit_msgs 2.3
    ServoStatus = None

TOPIC = "~/status"


class StatusReport:
    """Publishes ``moveit_msgs/msg/ServoStatus`` each cycle, and logs when things go wrong or well.

    States of the same code 0 come and go with every target, and are not logged.
    """

    def __init__(self, node: Node) -> None:
        self._log = Throttle(node)
        self._last = ServoState.WAITING
        self._publisher: Any = None
        if ServoStatus is not None:
            self._publisher = node.create_publisher(ServoStatus, TOPIC, 1)
            self._message = ServoStatus()

    def report(self, state: ServoState, words: str = "") -> None:
        """Say the state, in other words than its own where they are given."""
        words = words or state.explanation
        if state is not self._last and (state.code, self._last.code) != (0, 0):
            self._log.info(state.name, f"stream: {words}")
        self._last = state
        if self._publisher is not None and self._publisher.get_subscription_count() > 0:
            self._message.code, self._message.message = state.code, words
            self._publisher.publish(self._message)
