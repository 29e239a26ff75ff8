"""Messages taken without an executor, which costs more than it brings at hundreds a second."""

from typing import Any

from rclpy.node import Node
from rclpy.qos import QoSProfile

DEPTH = 10_000  # messages kept between two looks


class Inbox:
    """A subscription whose messages are fetched; its node belongs to no executor."""

    def __init__(self, node: Node, kind: Any, topic: str) -> None:
        self._subscription: Any = node.create_subscription(
            kind, topic, lambda _: None, QoSProfile(depth=DEPTH)
        )

    def take(self) -> list[Any]:
        """All messages that wait."""
        found, handle, kind = [], self._subscription.handle, self._subscription.msg_type
        with handle:
            while (pair := handle.take_message(kind, False)) is not None:
                found.append(pair[0])
        return found
