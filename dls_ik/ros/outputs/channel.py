"""One output: a topic and a message."""

from contextlib import suppress
from typing import Any

from rclpy.duration import Duration
from rclpy.node import Node

from dls_ik.core.types import Array
from dls_ik.ros.outputs.spec import Output, OutputSpec
from dls_ik.ros.stream.echo import Echo
from dls_ik.servo.limiter import StopPath


class Channel:
    """Publishes commands as messages of a kind.

    Args:
        kind: one of the classes of messages of this package.
        echo: remembers what goes out, where it may come back.
    """

    def __init__(self, node: Node, kind: Any, topic: str, echo: Echo | None) -> None:
        self._kind = kind
        self._publisher = node.create_publisher(kind.message_type, topic, 1)
        self._echo = echo
        self._output: Output | None = None

    def use(self, spec: OutputSpec) -> None:
        """Publish for other joints from now on."""
        self._output = self._kind(spec)

    def publish(self, q: Array, velocity: Array, stamp: int, stop: StopPath | None) -> None:
        """Send a command (n,), (n,) in the order of the outputs, at a time [ns]."""
        if self._output is None:
            return
        message = self._output.fill(q, velocity, stamp, stop)
        if self._echo is not None:
            self._echo.remember(message)
        self._publisher.publish(message)

    def deliver(self, timeout: float) -> None:
        """Wait [s] for all who listen reliably: what a publisher has sent may end with it."""
        with suppress(RuntimeError):  # a middleware may not know
            self._publisher.wait_for_all_acked(Duration(seconds=timeout))
