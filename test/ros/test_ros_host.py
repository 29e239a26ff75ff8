"""The node of a client, and its thread."""

import threading
import time

import pytest

pytest.importorskip("rclpy", reason="needs rclpy")

from std_msgs.msg import String

from dls_ik.ros.client.connection import OwnNode

PATIENCE = 60.0  # [s]


def test_closing_ends_the_thread_wherever_it_is():
    host = OwnNode("closed")
    between, closing = threading.Event(), threading.Event()
    nodes = host._executor.get_nodes

    def put_aside():
        """The thread gets no processor between two waits, until the other one closes."""
        found = nodes()
        between.set()
        closing.wait(PATIENCE)
        return found

    host._executor.get_nodes = put_aside
    host._executor.wake()
    assert between.wait(PATIENCE)
    closer = threading.Thread(target=host.close, daemon=True)
    closer.start()
    time.sleep(0.5)  # enough for it to be done with all that it does without the thread
    closing.set()
    closer.join(PATIENCE)
    assert not closer.is_alive()
    assert not host._thread.is_alive()
    host.close()


def test_the_thread_goes_on_where_another_takes_away_what_it_waits_for():
    host, heard = OwnNode("goes_on"), threading.Event()
    taken = host.node.create_subscription(String, "taken", print, 1)
    waits_for, gone = host._executor.can_execute, threading.Event()

    def take_away(entity):
        """It is there when the thread looks, and gone before it waits."""
        found = waits_for(entity)
        if entity in taken.event_handlers and not gone.is_set():
            host.node.destroy_subscription(taken)
            gone.set()
        return found

    host._executor.can_execute = take_away
    host._executor.wake()
    assert gone.wait(PATIENCE)
    host.node.create_timer(0.01, heard.set)
    assert heard.wait(PATIENCE)
    host.close()
