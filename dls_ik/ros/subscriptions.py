# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Subscriptions with size checks, warnings of mismatched types, and shared steady timers."""

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
MAX_MESSAGE_BYTES = 64 * 1024  # default size limit; joint states of 500 joints take half of it
MAX_REPORTS = 100  # maximum number of log lines about publishers with another type
CHECK_PERIOD = 1.0  # [s] period of checks of the publishers

Value = TypeVar("Value")


def merge_bounded(known: Mapping[str, Value], new: Mapping[str, Value]) -> dict[str, Value]:
    """Return the known values updated with new values, by name, with at most MAX_NAMES names.

    New names longer than MAX_NAME characters are dropped.
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
    """Subscribe to a topic; log and ignore messages that are too large or not readable.

    Messages arrive serialized, and a message that is too large is not deserialized, because that
    would block all threads.

    Args:
        store: Called with each message and its source timestamp [ns]; 0 if unknown.
        max_bytes: Maximum size of a serialized message [bytes].
        receiver: Receives the messages; None: the node's executor receives them.
    """
    name = node.resolve_topic_name(topic)

    def read(data: bytes, sent: int = 0) -> None:
        if len(data) > max_bytes:
            message = f"a message on {name} has {len(data)} bytes, more than {max_bytes}: ignored"
            log.warn(f"bytes on {name}", message)
            return
        content = read_bytes(node, data, kind, name, log)
        if content is not None:
            store(content, sent)

    subscribe = node.create_subscription if receiver is None else receiver.create_subscription
    return subscribe(kind, topic, with_time(read), qos, raw=True)


def read_bytes(node: Node, data: bytes, kind: Any, topic: str, log: Throttle) -> Any | None:
    """Deserialize a message; log a throttled warning and return None if that fails."""
    try:
        return read_message(data, kind)
    except Exception as error:  # noqa: BLE001  the type depends on the middleware
        reason = " ".join(str(error).split()) or type(error).__name__
        log.warn(
            f"unreadable on {topic}",
            lambda: (
                f"a message on {topic}, {publisher_words(node, topic)}, is ignored: its "
                f"{len(data)} bytes are not a {type_name(kind)} ({reason})"
            ),
        )
        return None


def with_time(store: Callable[..., None]) -> Callable[..., None]:
    """Wrap `store(message, timestamp)` as a callback of rclpy; the timestamp is in [ns].

    rclpy passes the source timestamp to callbacks since ROS 2 Humble. Before, `store` is called
    with the message only.
    """
    if not hasattr(Subscription, "CallbackType"):
        return lambda message: store(message)
    return lambda message, info: store(message, info["source_timestamp"])


class SharedCallback:
    """Timer callback that calls several functions, because each call of a timer takes 1 ms."""

    def __init__(self) -> None:
        self.callbacks: list[Callable[[], None]] = []

    def __call__(self) -> None:
        """Call all functions in order; if one raises an exception, raise it after all calls."""
        with ExitStack() as stack:
            for callback in reversed(self.callbacks):
                stack.callback(callback)


def steady_timer(node: Node, period: float, callback: Callable[[], None]) -> Timer:
    """Create a timer with a period [s] on the steady clock, whichever clock the node uses."""
    return node.create_timer(period, callback, clock=Clock(clock_type=ClockType.STEADY_TIME))


def call_every(node: Node, period: float, callback: Callable[[], None]) -> None:
    """Call a function every `period` [s] on the steady clock; equal periods share one timer."""
    nanoseconds = int(period * 1e9)
    for timer in node.timers:
        if isinstance(timer.callback, SharedCallback) and timer.timer_period_ns == nanoseconds:
            timer.callback.callbacks.append(callback)
            return
    shared = SharedCallback()
    shared.callbacks.append(callback)
    steady_timer(node, period, shared)


class TypeMonitor:
    """Monitor that warns once about each publisher whose type differs from the subscription's.

    The middleware silently drops messages of another type. A warning needs two consecutive checks
    with different types, because some subscriptions change their type to that of the publisher.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._before: set[str] = set()
        self._reported: set[str] = set()
        call_every(node, CHECK_PERIOD, self._check)

    def _check(self) -> None:
        found = {
            f"{info.node_namespace.rstrip('/')}/{info.node_name} publishes {info.topic_type} on "
            f"{subscription.topic_name}, but the type there is {read}: its messages are lost"
            for subscription in list(self._node.subscriptions)
            for info in self._node.get_publishers_info_by_topic(subscription.topic_name)
            if info.topic_type != (read := type_name(subscription.msg_type))
        }
        for message in sorted((found & self._before) - self._reported):
            if len(self._reported) < MAX_REPORTS:
                self._reported.add(message)
                self._node.get_logger().warning(escape(message))
        self._before = found
