# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Warnings about rival senders: several nodes that alternately publish targets on several topics.

Each type of target has its own topic.
"""

import threading
import time
from collections import deque
from collections.abc import Iterable
from typing import Any

from rclpy.node import Node

from dls_ik.ros.subscriptions import CHECK_PERIOD, call_every
from dls_ik.ros.util import Throttle
from dls_ik.text import listing

RIVAL_WINDOW = 5.0  # [s] time window in which changes of the topic are counted
# Number of changes in the window that causes a warning. A person who switches between two senders
# causes fewer changes.
MIN_RIVAL_CHANGES = 4
WARNING_PERIOD = 10.0  # [s]
UNKNOWN_NAME = "_NODE_NAME_UNKNOWN_"  # rmw returns this until the node is discovered


class RivalTargets:
    """Record of the moments at which targets began to arrive on another topic.

    One thread writes the record, another thread reads it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = ""  # topic of the newest target
        # The time [s] and the new topic of each change.
        self._changes: deque[tuple[float, str]] = deque(maxlen=MIN_RIVAL_CHANGES)

    def note(self, topic: str, now: float) -> None:
        """Record that a target has arrived on a topic at the time `now` [s]."""
        if topic == self._last:
            return
        with self._lock:
            if self._last:
                self._changes.append((now, topic))
            self._last = topic

    def topics(self, now: float) -> list[str]:
        """Return the topics on which targets arrived alternately in the last 5 s.

        Args:
            now: Current time [s].

        Returns:
            Sorted names of topics; empty if the topic changed fewer than 4 times.
        """
        with self._lock:
            recent = [topic for at, topic in self._changes if now - at <= RIVAL_WINDOW]
        return sorted(set(recent)) if len(recent) >= MIN_RIVAL_CHANGES else []


class RivalMonitor:
    """Warns if different nodes alternately publish targets of different types.

    A single node that publishes several types causes no warning.

    Args:
        node: Node that receives the targets.
        rivals: Record of the topics on which targets arrive.
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
            f"targets of different types alternate: {senders}; the arm follows the newest target, "
            "so it alternates too: stop one sender, or remap its topic",
        )


def publisher_names(node: Node, topic: str) -> list[str]:
    """Return the full names of the nodes that publish on a topic, sorted, without duplicates."""
    return sorted(set(_node_names(node.get_publishers_info_by_topic(topic))))


def _node_names(publishers: Iterable[Any]) -> Iterable[str]:
    """Yield the full name of the node of each publisher, or a text if the name is unknown."""
    for each in publishers:
        is_known = each.node_name != UNKNOWN_NAME
        name = f"{each.node_namespace.rstrip('/')}/{each.node_name}"
        yield name if is_known else "a node with a name that is not known yet"
