"""Log lines that do not flood, and that nobody forges: what others sent stays inside a line."""

import logging
import time
import traceback
from collections.abc import Callable
from textwrap import indent

from rclpy.node import Node

from dls_ik.text import escape


def trace(error: BaseException) -> str:
    """Where an exception came from, its lines set in."""
    return indent(escape("".join(traceback.format_exception(error)), keep="\n"), "  ")


class LogHandler(logging.Handler):
    """Passes what the package says to Python's log on to the log of a node."""

    def __init__(self, node: Node) -> None:
        super().__init__(logging.WARNING)
        self._logger = node.get_logger()

    def emit(self, record: logging.LogRecord) -> None:
        """Log a warning."""
        self._logger.warning(escape(record.getMessage()))


class Throttle:
    """Passes a message of each topic at most once in a while, on the steady clock.

    The throttle of rclpy's logger looks its caller up in the source at every call, which costs more
    than a cycle of the loop may, and follows a clock that can be wound back.
    """

    def __init__(
        self, node: Node, period: float = 2.0, clock: Callable[[], float] = time.monotonic
    ):
        self._logger = node.get_logger()
        self._period = period  # [s]
        self._clock = clock
        self._said: dict[str, float] = {}  # when, by topic

    def warn(self, topic: str, message: str) -> None:
        """Log a warning, unless there was one of this topic just now."""
        if self._is_due(topic):
            self._logger.warning(escape(message))

    def failed(self, topic: str, message: str, error: BaseException) -> None:
        """Log a warning with where an exception came from."""
        if self._is_due(topic):
            self._logger.warning(f"{escape(message)}:\n{trace(error)}")

    def info(self, topic: str, message: str) -> None:
        """Log a line, unless there was one of this topic just now."""
        if self._is_due(topic):
            self._logger.info(escape(message))

    def once(self, topic: str, message: str) -> None:
        """Log a warning the first time."""
        if topic not in self._said:
            self._said[topic] = self._clock()
            self._logger.warning(escape(message))

    def _is_due(self, topic: str) -> bool:
        now = self._clock()
        if now - self._said.get(topic, -self._period) < self._period:
            return False
        self._said[topic] = now
        return True
