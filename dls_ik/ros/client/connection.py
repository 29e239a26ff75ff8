# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Connections of a client: its own node, services whose requests are sent again, and errors."""

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

import rclpy
from rclpy.context import Context
from rclpy.exceptions import InvalidHandle, InvalidNamespaceException
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.signals import SignalHandlerOptions
from rclpy.task import Future
from rclpy.validate_namespace import validate_namespace

from dls_ik.errors import DlsIkError, OptionError
from dls_ik.ros.util import Throttle
from dls_ik.text import listing, quoted

RETRY = 1.0  # [s] that an answer is overdue before the request is sent again; then twice that
NAME = "dls_ik_client"
HIGHEST_DOMAIN = 232  # DDS; at a higher one Fast DDS ends the process
POLL = 0.01  # [s]
PATIENCE = 5.0  # [s] for an answer
DEPTH = 10  # answers that wait to be taken, those to other clients among them


class ServiceMissingError(DlsIkError):
    """No node offers the service; the message names it, and similar ones that exist."""


class NoAnswerError(DlsIkError):
    """A service did not answer in time."""


class ClientStartError(DlsIkError):
    """ROS 2 cannot be joined; the message says why."""


class NotSpunError(DlsIkError):
    """A call that waits, on a node that no executor spins."""


NOT_THERE = (ServiceMissingError, NoAnswerError, ClientStartError)  # errors that end a command


def call_with_retry(
    send: Callable[[], Any], is_served: Callable[[], bool], patience: float, expected: float = 0.0
) -> Any:
    """Send a request until a future of it is done; return that one, or None when time is up.

    A server drops the answer to a client that it has not discovered yet, although that client has
    discovered the server. So the first request can be lost. Other futures are cancelled.

    Args:
        send: sends the request, which may be carried out more than once, and returns its future.
        patience: longest time that an answer may be overdue [s].
        expected: time that an answer takes [s].
    """
    answers: SimpleQueue[Any] = SimpleQueue()
    sent: list[Any] = []
    deadline, wait = time.monotonic() + expected + patience, expected + RETRY
    try:
        while True:
            if not sent or is_served():
                sent.append(send())
                sent[-1].add_done_callback(answers.put)
            left = deadline - time.monotonic()
            with suppress(Empty):
                return answers.get(timeout=max(min(wait, left), 0.0))
            if left <= wait:
                return None
            wait *= 2.0
    finally:
        for future in sent:
            future.cancel()


def wait_until(is_done: Callable[[], Any], deadline: float) -> bool:
    """Wait until something is done; return False if it is not by a steady time [s]."""
    while not is_done():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL)
    return True


class OwnNode:
    """A node in a context of its own, spun by a thread; signal handlers stay those of Python.

    Raises:
        OptionError: If the namespace is not valid.
        ClientStartError: If ROS 2 cannot be started because of its domain, log folder or keystore.
    """

    def __init__(self, namespace: str, name: str = NAME) -> None:
        _check_namespace(namespace)
        _check_domain()
        self._context = Context()
        try:
            rclpy.init(
                args=[], context=self._context, signal_handler_options=SignalHandlerOptions.NO
            )
            self.node = Node(
                name, context=self._context, namespace=namespace, use_global_arguments=False
            )
        except RuntimeError as error:  # from rcl, with a source line at the end
            self._context.try_shutdown()
            reason = str(error).rpartition(", at /")[0] or str(error)
            raise ClientStartError(
                f"ROS 2 cannot be joined: {reason}; see dls-ik doctor"
            ) from error
        self._end = Future()
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self.node)
        self._thread = threading.Thread(target=self._spin, name=name, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread, then the node; a second call has no effect."""
        if not self._context.ok():
            return
        self._end.set_result(None)
        if self._thread is not threading.current_thread():
            self._thread.join()
        self._executor.shutdown()  # only now: it destroys what wakes the thread
        self.node.destroy_node()
        self._context.try_shutdown()

    def _spin(self) -> None:
        log = Throttle(self.node)
        while not self._end.done() and self._context.ok():
            self._spin_until_end(log)

    def _spin_until_end(self, log: Throttle) -> None:
        try:
            with suppress(InvalidHandle):  # another thread destroyed what is waited for
                self._executor.spin_until_future_complete(self._end)
        except ExternalShutdownException:
            pass
        except Exception as error:  # noqa: BLE001  such as that of a message that is not valid
            log.failed("callback", "a callback failed", error)


def _check_namespace(namespace: str) -> None:
    try:
        validate_namespace("/" + namespace.removeprefix("/"))
    except InvalidNamespaceException:
        raise OptionError(
            f"namespace {namespace!r} is not valid: it is names of letters, digits and '_' that "
            "begin with no digit, with '/' between them"
        ) from None


def _check_domain() -> None:
    given = os.environ.get("ROS_DOMAIN_ID", "")
    is_number = given.isascii() and given.isdigit() and len(given) < 10
    if given and not (is_number and int(given) <= HIGHEST_DOMAIN):
        raise ClientStartError(
            f"ROS_DOMAIN_ID is {quoted(given, 40)}, not a number from 0 to {HIGHEST_DOMAIN}; "
            "see dls-ik doctor"
        )


class ServiceClient:
    """A client of one service, for calls from other threads than the one that spins the node."""

    def __init__(
        self, node: Node, kind: Any, name: str, depth: int = DEPTH, group: Any = None
    ) -> None:
        self._node, self._kind = node, kind
        self._client = node.create_client(
            kind, name, qos_profile=QoSProfile(depth=depth), callback_group=group
        )
        self.name: str = node.resolve_service_name(name)

    @property
    def is_served(self) -> bool:
        """True if some node offers the service."""
        return bool(self._client.service_is_ready())

    def close(self) -> None:
        """Leave the ROS graph."""
        self._node.destroy_client(self._client)

    def send(self, request: Any) -> Any:
        """Send a request; return rclpy's future of the response."""
        return self._client.call_async(request)

    def wait(self, patience: float) -> None:
        """Wait for the service.

        Raises:
            ServiceMissingError: If no node offers the service within that time [s].
        """
        if not wait_until(lambda: self.is_served, time.monotonic() + patience):
            after = f", after {patience:g} s" if patience else ""
            raise ServiceMissingError(f"{self.describe_missing()}{after}")

    def describe_missing(self) -> str:
        """Say that the service is missing, and which others of its type exist."""
        kind = f"{self._kind.__module__.partition('.')[0]}/srv/{self._kind.__name__}"
        services = self._node.get_service_names_and_types()
        others = [name for name, kinds in services if kind in kinds and name != self.name]
        found = f"there is {listing(others)}" if others else "nobody here serves that type"
        return f"no service {self.name} ({kind}); {found}"

    def call(self, wait: float = 0.0, **fields: Any) -> Any:
        """Return the response to a request with these fields.

        The request is sent again if no answer comes, so the service may carry it out twice.

        Args:
            wait: for the service to appear [s].

        Raises:
            ServiceMissingError: If no node offers the service.
            NoAnswerError: If the node does not answer.
        """
        self.wait(wait)
        request = self._kind.Request(**fields)
        future = call_with_retry(lambda: self.send(request), lambda: self.is_served, PATIENCE)
        if future is None:
            raise NoAnswerError(f"{self.name} did not answer within {PATIENCE:g} s")
        return future.result()
