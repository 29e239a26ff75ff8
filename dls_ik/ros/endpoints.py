# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Texts for log lines that describe topics, message types and publishers."""

from contextlib import suppress
from typing import Any

from rclpy.node import Node
from rclpy.service import Service
from rclpy.subscription import Subscription
from rclpy.timer import Timer

from dls_ik.text import listing

MAX_NAMED_PUBLISHERS = 3  # maximum number of publishers that a log line names


def type_name(message_type: Any, folder: str = "msg") -> str:
    """Return the ROS name of a message or service type, such as ``geometry_msgs/msg/Twist``.

    Args:
        message_type: Python class of the type.
        folder: ``msg`` for a message type, ``srv`` for a service type.
    """
    return f"{message_type.__module__.partition('.')[0]}/{folder}/{message_type.__name__}"


def publisher_words(node: Node, topic: str) -> str:
    """Return a text that names the publishers of a topic, such as "published by /joystick".

    Args:
        node: Node that looks up the publishers.
        topic: Resolved name of the topic.
    """
    infos = node.get_publishers_info_by_topic(topic)
    names = sorted({f"{info.node_namespace.rstrip('/')}/{info.node_name}" for info in infos})
    others = len(names) - MAX_NAMED_PUBLISHERS
    known = listing([*names[:MAX_NAMED_PUBLISHERS], *([f"{others} others"] if others > 0 else [])])
    if not names:
        return "published by a node that has exited"
    return f"published by {known}" if len(names) == 1 else f"published by one of {known}"


def entity_words(node: Node, entity: Any) -> str:
    """Return a text that describes a subscription, service or timer.

    The text about a subscription contains the topic, the message type and the publishers.

    Args:
        node: Node of the entity.
        entity: rclpy object of the subscription, service or timer.
    """
    if isinstance(entity, Subscription):
        topic = entity.topic_name
        words = f"topic {topic} ({type_name(entity.msg_type)})"
        with suppress(Exception):  # the context may be shut down already
            words = f"{words}, {publisher_words(node, topic)}"
        return words
    if isinstance(entity, Service):
        name = node.resolve_service_name(entity.srv_name)
        return f"service {name} ({type_name(entity.srv_type, 'srv')})"
    return "a timer" if isinstance(entity, Timer) else f"a {type(entity).__name__.lower()}"
