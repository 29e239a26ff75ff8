"""What the loop is doing, for those who watch."""

from typing import Any

from rclpy.node import Node

from dls_ik.ros.logs import Throttle
from dls_ik.servo import ServoCode

try:
    from moveit_msgs.msg import ServoStatus
except ImportError:  # before moveit_msgs 2.3
    ServoStatus = None

TOPIC = "~/status"


class StatusReport:
    """Publishes ``moveit_msgs/msg/ServoStatus`` each cycle, and logs when the code changes."""

    def __init__(self, node: Node) -> None:
        self._log = Throttle(node)
        self._last = ServoCode.OK
        self._publisher: Any = None
        if ServoStatus is not None:
            self._publisher = node.create_publisher(ServoStatus, TOPIC, 1)

    def report(self, code: ServoCode, words: str = "") -> None:
        """Say the code, in other words than its own where they are given."""
        words = words or code.explanation
        if code != self._last:
            self._last = code
            self._log.info(code.name, f"stream: {words}")
        if self._publisher is not None and self._publisher.get_subscription_count() > 0:
            self._publisher.publish(ServoStatus(code=int(code), message=words))
