# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""A callback that fails is named in the log: topic, type and publisher, or service and type."""

import threading

import pytest
import rclpy
from rclpy.context import Context
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.task import Future
from std_msgs.msg import String
from std_srvs.srv import Trigger

from dls_ik.ros.endpoints import entity_words, publisher_words
from dls_ik.ros.process import spin
from dls_ik.ros.receiver import MessageReceiver, OneReply
from dls_ik.ros.util import Throttle

pytestmark = [pytest.mark.ros]

LONG = 120.0  # [s] timeout of an immediate event
TOPIC = "a callback failed: topic /words (std_msgs/msg/String), published by /sender"


class FailedError(Exception):
    """What the callbacks of these tests raise."""


@pytest.fixture
def nodes(private_domain):
    """A node that receives, and one that sends."""
    context = Context()
    rclpy.init(context=context)
    made = [Node(name, context=context, use_global_arguments=False) for name in ("taker", "sender")]
    yield made
    for node in made:
        node.destroy_node()
    context.try_shutdown()


def publish_until(sender, event):
    publisher = sender.create_publisher(String, "words", 10)
    while not event.wait(0.05):
        publisher.publish(String(data="x"))


def test_failing_executor_callback_is_logged_with_its_topic(nodes, capfd):
    taker, sender = nodes
    stop, failed = Future(), threading.Event()

    def fail(message):
        failed.set()
        stop.set_result(None)
        raise FailedError

    taker.create_subscription(String, "words", fail, 10)
    thread = threading.Thread(target=publish_until, args=(sender, failed))
    thread.start()
    spin(taker, stop)
    thread.join(LONG)
    assert TOPIC in capfd.readouterr().err


def test_failing_receiver_callback_is_logged_with_its_topic(nodes, capfd):
    taker, sender = nodes
    failed = threading.Event()

    def fail(*given):
        failed.set()
        raise FailedError

    receiver = MessageReceiver(taker, Throttle(taker))
    receiver.create_subscription(String, "words", fail, QoSProfile(depth=1), raw=False)
    thread = threading.Thread(target=receiver.serve)
    thread.start()
    publish_until(sender, failed)
    receiver.close()
    thread.join(LONG)
    assert TOPIC in capfd.readouterr().err


def test_descriptions_name_service_timer_and_exited_publisher(nodes):
    taker, _ = nodes
    service = taker.create_service(Trigger, "go", lambda request, response: response)
    assert entity_words(taker, service) == "service /go (std_srvs/srv/Trigger)"
    assert entity_words(taker, taker.create_timer(1.0, print)) == "a timer"
    assert publisher_words(taker, "/nothing") == "published by a node that has exited"


def test_only_the_first_reply_is_sent():
    sent = []
    reply = OneReply(sent.append)
    for word in "ab":
        reply(word)
    assert sent == ["a"]
