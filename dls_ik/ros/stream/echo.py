"""Our own messages, recognised when they come back on a topic that a driver may use too."""

from collections import OrderedDict
from typing import Any

Identity = tuple[int, int, bytes, tuple[str, ...]]
MEMORY = 2000  # messages; two seconds at the highest rate


class Echo:
    """Remembers what was published lately by its stamp and positions, exactly.

    Who sent a message is not told by rclpy before Kilted. A stamp in nanoseconds from our clock
    together with the names and positions is as good: a driver that says the same at the same
    nanosecond only relays us.
    """

    def __init__(self) -> None:
        self._published: OrderedDict[Identity, None] = OrderedDict()

    def remember(self, message: Any) -> None:
        """Keep what identifies a ``sensor_msgs/JointState`` that is about to be published."""
        self._published[_identity(message)] = None
        if len(self._published) > MEMORY:
            self._published.popitem(last=False)

    def is_own(self, message: Any) -> bool:
        """Whether a message received is one that was published here."""
        return _identity(message) in self._published


def _identity(message: Any) -> Identity:
    stamp = message.header.stamp  # under simulated time the same for several messages
    return stamp.sec, stamp.nanosec, message.position.tobytes(), tuple(message.name)
