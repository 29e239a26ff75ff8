# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Subscriptions with size limits, warnings about mismatched types, and shared steady timers."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any, TypeVar

from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.subscription import Subscription
from rclpy.timer import Timer

from dls_ik.ros.cdr import read_message
from dls_ik.ros.endpoints import publisher_words, type_name
from dls_ik.ros.frames import MAX_NAME
from dls_ik.ros.receiver import MessageReceiver
from dls_ik.ros.util import Throttle
from dls_ik.text import escape

MAX_NAMES = 10_000  # maximum number of joints stored from all received messages
MAX_MESSAGE_BYTES = 64 * 1024  # default size limit; joint states of 500 joints need half of it
MAX_REPORTS = 100  # maximum number of log lines about publishers with another type
CHECK_PERIOD = 1.0  # [s] period of checks of the publishers

Value = TypeVar("Value")


def merge_bounded(known: Mapping[str, Value], new: Mapping[str, Value]) -> dict[str, Value]:
    """Return known values by name, updated with new values, of at most MAX_NAMES names.

    New names are dropped if they exceed this number, or if they are longer than MAX_NAME.
    """
    space = max(MAX_NAMES - len(known), 0)
    added = [name for name in new if name not in known and len(name) <= MAX_NAME][:space]
    kept = {*known, *added}
    return {**known, **{name: value for name, value in new.items() if name in kept}}


def subscribe_bounded(
    node: Node,
    kind: Any,
    topic: str,
    store: Callable[[Any, int], None],
    qos: QoSProfile,
    log: Throttle,
    max_bytes: int = MAX_MESSAGE_BYTES,
    receiver: MessageReceiver | None = None,
) -> Any:
    """Subscribe to a topic; ignore messages that are too large or not readable, and log this.

    A message that is too large is not deserialized, because that would block all threads.

    Args:
        node: ROS node.
        kind: Message type.
        topic: Topic name.
        store: Function that is called with each message and its source timestamp [ns] (0 if
            unknown).
        qos: Quality-of-service settings.
        log: Log for ignored messages.
        max_bytes: Maximum size of a serialized message [bytes].
        receiver: Receiver of the messages; None: the executor of the node.

    Returns:
        rclpy subscription.
    """
    name = node.resolve_topic_name(topic)

    def read(data: bytes, sent: int = 0) -> None:
        if len(data) > max_bytes:
            message = (
                f"ignored a message on {name}: it has {len(data)} bytes, more than {max_bytes}"
            )
            log.warn(f"bytes on {name}", message)
            return
        content = read_bytes(node, data, kind, name, log)
        if content is not None:
            store(content, sent)

    subscribe = node.create_subscription if receiver is None else receiver.create_subscription
    return subscribe(kind, topic, with_time(read), qos, raw=True)


def read_bytes(node: Node, data: bytes, kind: Any, topic: str, log: Throttle) -> Any | None:
    """Return a deserialized message; if this fails, log a throttled warning and return None.

    Args:
        node: ROS node.
        data: Serialized message.
        kind: Message type.
        topic: Resolved topic name, for the log.
        log: Log for the warning.
    """
    try:
        return read_message(data, kind)
    except Exception as error:  # noqa: BLE001  the type depends on the middleware
        reason = " ".join(str(error).split()) or type(error).__name__
        log.warn(
            f"unreadable on {topic}",
            lambda: (
                f"ignored a message on {topic}, {publisher_words(node, topic)}: its "
                f"{len(data)} bytes are not a {type_name(kind)} ({reason})"
            ),
        )
        return None


def with_time(store: Callable[..., None]) -> Callable[..., None]:
    """Return a subscription callback that calls ``store(message, timestamp)``.

    The timestamp is the source timestamp of the message [ns], which rclpy provides since ROS 2
    Humble. With older versions, `store` is called with the message only.
    """
    if not hasattr(Subscription, "CallbackType"):
        return lambda message: store(message)
    return lambda message, info: store(message, info["source_timestamp"])


class SharedCallback:
    """Callback of one timer that calls several functions; each further timer would take 1 ms."""

    def __init__(self) -> None:
        self.callbacks: list[Callable[[], None]] = []

    def __call__(self) -> None:
        """Call all functions in order; raise the exception of a function after all calls."""
        with ExitStack() as stack:
            for callback in reversed(self.callbacks):
                stack.callback(callback)


def steady_timer(node: Node, period: float, callback: Callable[[], None]) -> Timer:
    """Create and return a timer on the steady clock, independently of the clock of the node.

    Args:
        node: ROS node.
        period: Period of the calls [s].
        callback: Function that is called.
    """
    return node.create_timer(period, callback, clock=Clock(clock_type=ClockType.STEADY_TIME))


def call_every(node: Node, period: float, callback: Callable[[], None]) -> None:
    """Call a function in each period [s] of the steady clock, while the node is spun.

    Functions of a node with the same period share one timer.
    """
    nanoseconds = int(period * 1e9)
    for timer in node.timers:
        if isinstance(timer.callback, SharedCallback) and timer.timer_period_ns == nanoseconds:
            timer.callback.callbacks.append(callback)
            return
    shared = SharedCallback()
    shared.callbacks.append(callback)
    steady_timer(node, period, shared)


class TypeMonitor:
    """Monitor that warns about publishers whose message type differs from that of a subscription.

    The middleware silently drops messages of another type. Each publisher is reported once, when
    two successive checks have found different types, because some subscriptions of the node change
    their type to that of the publisher.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._before: set[str] = set()
        self._reported: set[str] = set()
        call_every(node, CHECK_PERIOD, self._check)

    def _check(self) -> None:
        found = {
            f"{info.node_namespace.rstrip('/')}/{info.node_name} publishes {info.topic_type} on "
            f"{subscription.topic_name}, but this node subscribes to {read}: its messages are lost"
            for subscription in list(self._node.subscriptions)
            for info in self._node.get_publishers_info_by_topic(subscription.topic_name)
            if info.topic_type != (read := type_name(subscription.msg_type))
        }
        for message in sorted((found & self._before) - self._reported):
            if len(self._reported) < MAX_REPORTS:
                self._reported.add(message)
                self._node.get_logger().warning(escape(message))
        self._before = found
