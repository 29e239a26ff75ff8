"""Rival senders of targets: publishers of different target types that take turns."""

import threading
import time
from collections import deque
from collections.abc import Iterable
from typing import Any

from rclpy.node import Node

from dls_ik.ros.subscriptions import CHECK_PERIOD, call_every
from dls_ik.ros.util import Throttle
from dls_ik.text import listing

WINDOW = 5.0  # [s] in which changes of the type are counted
MIN_CHANGES = 4  # of the type within the window; a person who changes the sender makes fewer
WARNING_PERIOD = 10.0  # [s]
UNKNOWN_NAME = "_NODE_NAME_UNKNOWN_"  # of rmw, before a node has announced itself


class RivalTargets:
    """Changes of the topic that targets arrive on. One thread notes them, another asks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = ""  # topic of the newest target
        self._changes: deque[tuple[float, str]] = deque(maxlen=MIN_CHANGES)  # time [s], new topic

    def note(self, topic: str, now: float) -> None:
        """Note a target that arrived on a topic now [s]."""
        if topic == self._last:
            return
        with self._lock:
            if self._last:
                self._changes.append((now, topic))
            self._last = topic

    def topics(self, now: float) -> list[str]:
        """Return the topics that targets take turns on now [s]; empty if they do not."""
        with self._lock:
            recent = [topic for at, topic in self._changes if now - at <= WINDOW]
        return sorted(set(recent)) if len(recent) >= MIN_CHANGES else []


class RivalMonitor:
    """Warns of publishers of different target types that take turns, by the names of their nodes.

    One node that publishes several types is no conflict.

    Args:
        node: Node that receives the targets.
        rivals: Topics that the targets arrive on.
    """

    def __init__(self, node: Node, rivals: RivalTargets) -> None:
        self._node, self._rivals = node, rivals
        self._log = Throttle(node, period=WARNING_PERIOD)
        call_every(node, CHECK_PERIOD, self._check)

    def _check(self) -> None:
        topics = [
            self._node.resolve_topic_name(each) for each in self._rivals.topics(time.monotonic())
        ]
        names = {topic: publisher_names(self._node, topic) for topic in topics}
        if len({name for each in names.values() for name in each}) < 2:
            return
        senders = " and ".join(f"{topic} from {listing(each)}" for topic, each in names.items())
        self._log.warn(
            "rivals",
            f"targets of different types take turns: {senders}; the arm follows the newest, so it "
            "alternates between them: stop one sender, or remap its topic",
        )


def publisher_names(node: Node, topic: str) -> list[str]:
    """Return the full names of the nodes that publish on a topic, sorted, each once."""
    return sorted(set(_names(node.get_publishers_info_by_topic(topic))))


def _names(publishers: Iterable[Any]) -> Iterable[str]:
    for each in publishers:
        is_known = each.node_name != UNKNOWN_NAME
        name = f"{each.node_namespace.rstrip('/')}/{each.node_name}"
        yield name if is_known else "a node that has not announced its name"
