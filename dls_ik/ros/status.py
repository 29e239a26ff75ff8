"""What the loop is doing, for those who watch."""

from typing import Any

from rclpy.node import Node

from dls_ik.ros.logs import Throttle
from dls_ik.servo import ServoState

try:
    from moveit_msgs.msg import ServoStatus
except ImportError:  # before moveit_msgs 2.3
    ServoStatus = None

TOPIC = "~/status"
USUAL = (ServoState.WAITING, ServoState.FOLLOWING, ServoState.REACHED)


class StatusReport:
    """Publishes ``moveit_msgs/msg/ServoStatus`` each cycle, and logs when the state changes."""

    def __init__(self, node: Node) -> None:
        self._log = Throttle(node)
        self._last = ServoState.FOLLOWING
        self._publisher: Any = None
        if ServoStatus is not None:
            self._publisher = node.create_publisher(ServoStatus, TOPIC, 1)

    def report(self, state: ServoState, words: str = "") -> None:
        """Say the state, in other words than its own where they are given."""
        words = words or state.explanation
        if state is not self._last:
            self._last = state
            if state not in USUAL:
                self._log.info(state.name, f"stream: {words}")
        if self._publisher is not None and self._publisher.get_subscription_count() > 0:
            self._publisher.publish(ServoStatus(code=state.code, message=words))
