"""The node of a client, and its thread."""

import threading
import time

import pytest

pytest.importorskip("rclpy", reason="needs rclpy")

from dls_ik.ros.client.host import OwnHost

PATIENCE = 60.0  # [s]


def test_closing_ends_the_thread_wherever_it_is():
    host = OwnHost("closed")
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
