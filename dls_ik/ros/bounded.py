"""Bounds on what anybody may send: the bytes of a message, and the names that are kept."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.serialization import deserialize_message

from dls_ik.ros.logs import Throttle
from dls_ik.ros.stream.transit import with_time

MOST = 10_000  # names
MAX_NAME = 256  # characters, as in a URDF
MAX_BYTES = 64 * 1024  # of a message that is read; the joint states of 500 joints are half of it

Value = TypeVar("Value")


def with_news(known: Mapping[str, Value], news: Mapping[str, Value]) -> dict[str, Value]:
    """What is known, with the news of these names, and of new ones as far as there is room.

    Names longer than MAX_NAME are dropped.
    """
    room = MOST - len(known)
    new = [name for name in news if name not in known and len(name) <= MAX_NAME]
    taken = set(new[: max(room, 0)])
    return {**known, **{n: value for n, value in news.items() if n in known or n in taken}}


def subscribe_bounded(
    node: Node,
    kind: Any,
    topic: str,
    store: Callable[[Any, int], None],
    qos: QoSProfile,
    log: Throttle,
    most: int = MAX_BYTES,
) -> Any:
    """Subscribe to a topic; messages of more than `most` bytes are named in the log, and not read.

    Messages come serialized, because to read a large one would hold all threads up.

    Args:
        store: called with each message, and when it was sent [ns] or 0, as by :func:`with_time`.
    """
    name = node.resolve_topic_name(topic)

    def read(data: bytes, sent: int = 0) -> None:
        if len(data) > most:
            words = f"a message on {name} has {len(data)} bytes, more than {most}: not used"
            log.warn(f"bytes on {name}", words)
        else:
            store(deserialize_message(data, kind), sent)

    return node.create_subscription(kind, topic, with_time(read), qos, raw=True)
