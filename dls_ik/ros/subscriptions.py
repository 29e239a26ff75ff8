"""Subscriptions that bound and check messages; reports of publishers of other types; timers."""

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

MAX_NAMES = 10_000  # that are kept of what others send
MAX_BYTES = 64 * 1024  # of a message that is read; the joint states of 500 joints are half of it
MAX_REPORTS = 100  # publishers that are reported
CHECK_PERIOD = 1.0  # [s]

Value = TypeVar("Value")


def merge_bounded(known: Mapping[str, Value], new: Mapping[str, Value]) -> dict[str, Value]:
    """Merge new values into the known ones; keep at most MAX_NAMES names.

    New names longer than MAX_NAME are dropped.
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
    max_bytes: int = MAX_BYTES,
    receiver: MessageReceiver | None = None,
) -> Any:
    """Subscribe to a topic; messages that are too long or not readable are logged and ignored.

    Messages come serialized, because deserializing a large one would block all threads.

    Args:
        store: called with each message, and the time it was sent [ns] or 0, see :func:`with_time`.
        receiver: takes the messages; None: the executor of the node does.
    """
    name = node.resolve_topic_name(topic)

    def read(data: bytes, sent: int = 0) -> None:
        if len(data) > max_bytes:
            message = f"a message on {name} has {len(data)} bytes, more than {max_bytes}: not used"
            log.warn(f"bytes on {name}", message)
            return
        content = read_bytes(node, data, kind, name, log)
        if content is not None:
            store(content, sent)

    subscribe = node.create_subscription if receiver is None else receiver.create_subscription
    return subscribe(kind, topic, with_time(read), qos, raw=True)


def read_bytes(node: Node, data: bytes, kind: Any, topic: str, log: Throttle) -> Any | None:
    """Return a serialized message; None for bytes that are not one, with a throttled warning."""
    try:
        return read_message(data, kind)
    except Exception as error:  # noqa: BLE001  the middleware has several for it
        reason = " ".join(str(error).split()) or type(error).__name__
        log.warn(
            f"unreadable on {topic}",
            lambda: (
                f"a message on {topic}, {publisher_words(node, topic)}, is not used: its "
                f"{len(data)} bytes are not a {type_name(kind)} ({reason})"
            ),
        )
        return None


def with_time(store: Callable[..., None]) -> Callable[..., None]:
    """Wrap a callback so that it gets the source timestamp [ns] too; not before Humble."""
    if not hasattr(Subscription, "CallbackType"):
        return lambda message: store(message)
    return lambda message, info: store(message, info["source_timestamp"])


class SharedCallback:
    """Callback of a timer for several: each timer by itself wakes the executor twice, 1 ms."""

    def __init__(self) -> None:
        self.callbacks: list[Callable[[], None]] = []

    def __call__(self) -> None:
        """Call all of them in order, and raise an exception of one when all have been called."""
        with ExitStack() as stack:
            for callback in reversed(self.callbacks):
                stack.callback(callback)


def steady_timer(node: Node, period: float, callback: Callable[[], None]) -> Timer:
    """Make a timer with a period [s] of the steady clock, whatever clock the node has."""
    return node.create_timer(period, callback, clock=Clock(clock_type=ClockType.STEADY_TIME))


def call_every(node: Node, period: float, callback: Callable[[], None]) -> None:
    """Call back every `period` [s] of the steady clock, by a timer that callbacks share."""
    nanoseconds = int(period * 1e9)
    for timer in node.timers:
        if isinstance(timer.callback, SharedCallback) and timer.timer_period_ns == nanoseconds:
            timer.callback.callbacks.append(callback)
            return
    shared = SharedCallback()
    shared.callbacks.append(callback)
    steady_timer(node, period, shared)


class TypeMonitor:
    """Warns once of each publisher that sends another type than a subscription of the node reads.

    The middleware drops such messages silently. A publisher is reported when two checks in a row
    have found it, so that subscriptions may adapt to its type in between.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._before: set[str] = set()
        self._reported: set[str] = set()
        call_every(node, CHECK_PERIOD, self._check)

    def _check(self) -> None:
        found = {
            f"{info.node_namespace.rstrip('/')}/{info.node_name} sends {info.topic_type} on "
            f"{subscription.topic_name}, where {read} is read: it is not heard"
            for subscription in list(self._node.subscriptions)
            for info in self._node.get_publishers_info_by_topic(subscription.topic_name)
            if info.topic_type != (read := type_name(subscription.msg_type))
        }
        for message in sorted((found & self._before) - self._reported):
            if len(self._reported) < MAX_REPORTS:
                self._reported.add(message)
                self._node.get_logger().warning(escape(message))
        self._before = found
