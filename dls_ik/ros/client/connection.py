# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Connection of a client to ROS: a node of its own, service calls with retries, and errors."""

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

RETRY = 1.0  # [s] time until the first retry; the time doubles after each retry
CLIENT_NODE_NAME = "dls_ik_client"
HIGHEST_DOMAIN = 232  # maximum of DDS; Fast DDS exits the process if ROS_DOMAIN_ID is higher
POLL = 0.01  # [s] polling period
PATIENCE = 5.0  # [s] maximum time to wait for an answer
# number of queued answers, including answers to other clients of the service
ANSWER_QUEUE_DEPTH = 10


class ServiceMissingError(DlsIkError):
    """Error of a service that no node offers; the message lists services of the same type."""


class NoAnswerError(DlsIkError):
    """Error of a service that did not answer in time."""


class ClientStartError(DlsIkError):
    """Error of a client that cannot start ROS 2; the message gives the reason."""


class NotSpunError(DlsIkError):
    """Error of a blocking call with a node that no executor spins."""


NOT_THERE = (ServiceMissingError, NoAnswerError, ClientStartError)  # errors that end a command


def call_with_retry(
    send: Callable[[], Any], is_served: Callable[[], bool], patience: float, expected: float = 0.0
) -> Any:
    """Send a request repeatedly until it is answered, and return the future of the answer.

    A server drops the answer to a client that the server has not discovered yet, even if the client
    has discovered the server. Therefore the answer to the first request can be lost. When a future
    is done, the futures of the other requests are cancelled.

    Args:
        send: Function that sends the request and returns its future. The server may execute the
            request more than once.
        is_served: Function that returns whether the service is available.
        patience: Maximum time to wait beyond `expected` [s].
        expected: Expected time until the answer arrives [s].

    Returns:
        The future that is done; None on timeout.
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
    """Wait until a condition holds; return False if it does not hold by the deadline.

    Args:
        is_done: Function that returns a true value if the condition holds.
        deadline: Latest time by the steady clock [s].
    """
    while not is_done():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL)
    return True


class OwnNode:
    """Node with its own rclpy context and thread; rclpy installs no signal handlers.

    Args:
        namespace: Namespace of the node.
        name: Name of the node.

    Raises:
        OptionError: If the namespace is not valid.
        ClientStartError: If ROS 2 cannot be started because of its domain, log folder or keystore.
    """

    def __init__(self, namespace: str, name: str = CLIENT_NODE_NAME) -> None:
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
        except RuntimeError as error:  # the message of rcl ends with a line of source code
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
        """Stop the thread, then destroy the node; a second call has no effect."""
        if not self._context.ok():
            return
        self._end.set_result(None)
        if self._thread is not threading.current_thread():
            self._thread.join()
        self._executor.shutdown()  # called last, as the thread needs the executor to wake up
        self.node.destroy_node()
        self._context.try_shutdown()

    def _spin(self) -> None:
        log = Throttle(self.node)
        while not self._end.done() and self._context.ok():
            self._spin_until_end(log)

    def _spin_until_end(self, log: Throttle) -> None:
        try:
            with suppress(InvalidHandle):  # another thread destroyed an entity of the wait set
                self._executor.spin_until_future_complete(self._end)
        except ExternalShutdownException:
            pass
        except Exception as error:  # noqa: BLE001  for example because of an invalid message
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
    """Client of one service; for calls from threads that do not spin the node.

    Args:
        node: Node of the client.
        kind: Service type.
        name: Service name.
        depth: Number of queued answers.
        group: Callback group; None: the default group of the node.
    """

    def __init__(
        self, node: Node, kind: Any, name: str, depth: int = ANSWER_QUEUE_DEPTH, group: Any = None
    ) -> None:
        self._node, self._kind = node, kind
        self._client = node.create_client(
            kind, name, qos_profile=QoSProfile(depth=depth), callback_group=group
        )
        self.name: str = node.resolve_service_name(name)

    @property
    def is_served(self) -> bool:
        """Whether a node offers the service."""
        return bool(self._client.service_is_ready())

    def close(self) -> None:
        """Destroy the rclpy client."""
        self._node.destroy_client(self._client)

    def send(self, request: Any) -> Any:
        """Send a request, and return the rclpy future of the response."""
        return self._client.call_async(request)

    def wait(self, patience: float) -> None:
        """Wait until a node offers the service.

        Args:
            patience: Maximum time [s].

        Raises:
            ServiceMissingError: If no node offers the service within `patience`.
        """
        if not wait_until(lambda: self.is_served, time.monotonic() + patience):
            after = f", after {patience:g} s" if patience else ""
            raise ServiceMissingError(f"{self.describe_missing()}{after}")

    def describe_missing(self) -> str:
        """Return a message about the missing service that lists services of the same type."""
        kind = f"{self._kind.__module__.partition('.')[0]}/srv/{self._kind.__name__}"
        services = self._node.get_service_names_and_types()
        others = [name for name, kinds in services if kind in kinds and name != self.name]
        found = f"there is {listing(others)}" if others else "nobody here serves that type"
        return f"no service {self.name} ({kind}); {found}"

    def call(self, wait: float = 0.0, **fields: Any) -> Any:
        """Call the service and return the response.

        The request is sent again if no answer arrives, so the server may execute it twice.

        Args:
            wait: Maximum time until the service is available [s].
            fields: Fields of the request.

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
