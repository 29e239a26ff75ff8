"""A service whose requests are answered later, from any thread."""

import threading
from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from rclpy.qos import QoSProfile

Reply = Callable[[Any], None]  # takes the response, once


class LaterService:
    """Hands each request on with a way to answer it, and does not wait for that.

    rclpy calls the callback of a service and then ``send_response`` with what it returned and the
    header of the request, from Humble on. A callback does not see the header, so the request goes
    on from there. A coroutine as callback is no way: what it waits for does not wake the executor
    (rclpy 9.1), or is asked over and over (Humble).

    Args:
        handle: called with a request, an empty response and the reply, in the executor's thread.
        depth: requests and responses that the middleware keeps; one too many takes the place of
            the oldest, whose client waits in vain.
    """

    def __init__(
        self,
        node: Node,
        kind: Any,
        name: str,
        handle: Callable[[Any, Any, Reply], None],
        depth: int,
    ) -> None:
        self._handle = handle
        self._lock = threading.Lock()  # rcl sends from one thread at a time
        service = node.create_service(
            kind, name, lambda *pair: pair, qos_profile=QoSProfile(depth=depth)
        )
        self._send = service.send_response
        service.send_response = self._hand_on

    def _hand_on(self, pair: tuple[Any, Any], header: Any) -> None:
        def reply(response: Any) -> None:
            with self._lock:
                self._send(response, header)

        self._handle(*pair, reply)
