# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Source of the SRDF of the robot: a parameter or a topic."""

import threading
import time
from collections.abc import Callable

from rclpy.node import Node
from std_msgs.msg import String

from dls_ik.model.xml import MAX_XML_BYTES as MAX_SRDF_BYTES
from dls_ik.ros.robot_source import DESCRIPTION_QOS
from dls_ik.ros.subscriptions import read_bytes
from dls_ik.ros.util import Throttle

SRDF_TOPIC = "robot_description_semantic"
# Maximum times since the start of the node [s]: until a publisher of an SRDF is discovered, and
# until the SRDF of a discovered publisher arrives.
DISCOVERY_TIME = 0.5
SRDF_TIMEOUT = 2.0


class SrdfSource:
    """Source of the SRDF: a parameter, or the topic ``robot_description_semantic``.

    Args:
        node: ROS node.
        xml: Value of the parameter, as XML; if it is empty, subscribe to the topic.
        log: Log of the node.
        changed: Function that is called when a different SRDF arrives on the topic.
    """

    def __init__(self, node: Node, xml: str, log: Throttle, changed: Callable[[], None]) -> None:
        self._node, self._xml, self._log, self._changed = node, xml, log, changed
        self._has_arrived = threading.Event()
        self._start = time.monotonic()
        self._topic = node.resolve_topic_name(SRDF_TOPIC)
        if not xml:
            node.create_subscription(String, SRDF_TOPIC, self._receive, DESCRIPTION_QOS, raw=True)

    def wait(self) -> str:
        """Return the SRDF as XML; an empty text if no SRDF arrives shortly after the start.

        The wait saves time if an SRDF arrives, because without an SRDF the pairs of links that may
        touch are found by random sampling, which is slow.
        """
        while not self._xml:
            has_publisher = self._node.count_publishers(self._topic) > 0
            timeout = SRDF_TIMEOUT if has_publisher else DISCOVERY_TIME
            if time.monotonic() - self._start > timeout or self._has_arrived.wait(0.05):
                break
        return self._xml

    def _receive(self, data: bytes) -> None:
        if len(data) > MAX_SRDF_BYTES + 16:
            words = f"ignored the SRDF on {self._topic}: it has more than {MAX_SRDF_BYTES} bytes"
            self._log.warn("srdf", words)
            return
        message = read_bytes(self._node, data, String, self._topic, self._log)
        if message is None or message.data == self._xml:
            return
        self._xml = message.data
        self._has_arrived.set()
        self._changed()
