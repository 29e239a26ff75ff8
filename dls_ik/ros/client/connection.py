# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Connection of clients to ROS: nodes with their own threads, and service calls with retries."""

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
PATIENCE = 5.0  # [s] maximum time until the answer to a ServiceClient.call arrives
# default number of queued answers, including answers to other clients of the service
ANSWER_QUEUE_DEPTH = 10


class ServiceMissingError(DlsIkError):
    """Error that is raised if no node offers a requested service or topic.

    The message lists services or topics of the same type.
    """


class NoAnswerError(DlsIkError):
    """Error that is raised if a node does not answer a request, or publishes nothing, in time."""


class ClientStartError(DlsIkError):
    """Error that is raised if a client cannot start ROS 2; the message gives the reason."""


class NotSpunError(DlsIkError):
    """Error that is raised by a blocking call if no executor spins the node of the client."""


# Errors of a client that cannot reach a node; they end a command of the command line.
NOT_THERE = (ServiceMissingError, NoAnswerError, ClientStartError)


def call_with_retry(
    send: Callable[[], Any], is_served: Callable[[], bool], patience: float, expected: float = 0.0
) -> Any:
    """Send a request repeatedly until an answer arrives, and return the future of the answer.

    A server drops the answer to a client that the server has not discovered yet, even if the client
    has discovered the server. Therefore the answer to the first request can be lost. When the
    future of one request is done, the futures of all other requests are cancelled.

    Args:
        send: Function that sends the request and returns its future. The server may execute the
            request more than once.
        is_served: Function that returns whether the service is available.
        patience: Maximum time to wait after the `expected` time has passed [s].
        expected: Expected time until the answer arrives [s].

    Returns:
        Future of the first answer; None if no answer arrives within `expected` + `patience`.
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
    """Wait until a condition holds or a deadline passes; return whether the condition holds.

    Args:
        is_done: Function that returns a true value if the condition holds.
        deadline: Deadline on the steady clock (``time.monotonic``) [s].
    """
    while not is_done():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL)
    return True


class OwnNode:
    """ROS node with its own rclpy context, and with a thread that spins the node.

    The context installs no signal handlers.

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
        except RuntimeError as error:  # the message of rcl ends with a position in its source code
            self._context.try_shutdown()
            reason = str(error).rpartition(", at /")[0] or str(error)
            raise ClientStartError(
                f"cannot start ROS 2: {reason}; dls-ik doctor shows more"
            ) from error
        self._end = Future()
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self.node)
        self._thread = threading.Thread(target=self._spin, name=name, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop the thread, then destroy the node and its context; a second call has no effect."""
        if not self._context.ok():
            return
        self._end.set_result(None)
        if self._thread is not threading.current_thread():
            self._thread.join()
        self._executor.shutdown()  # only now, because the executor wakes the thread up
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
            "namespace must be names separated by '/', each of letters, digits and '_', and not "
            f"starting with a digit; got {namespace!r}"
        ) from None


def _check_domain() -> None:
    given = os.environ.get("ROS_DOMAIN_ID", "")
    is_number = given.isascii() and given.isdigit() and len(given) < 10
    if given and not (is_number and int(given) <= HIGHEST_DOMAIN):
        raise ClientStartError(
            f"ROS_DOMAIN_ID must be a number from 0 to {HIGHEST_DOMAIN}; got {quoted(given, 40)}; "
            "dls-ik doctor shows more"
        )


class ServiceClient:
    """Client of one ROS service, for calls from threads that do not spin the node of the client.

    Args:
        node: Node of the client.
        kind: Service type.
        name: Service name, resolved in the namespace of the node.
        depth: Number of queued answers.
        group: Callback group of the answers; None: the default group of the node.
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
        """Destroy the underlying rclpy client."""
        self._node.destroy_client(self._client)

    def send(self, request: Any) -> Any:
        """Send a request, and return the rclpy future of the response."""
        return self._client.call_async(request)

    def wait(self, patience: float) -> None:
        """Wait until a node offers the service.

        Args:
            patience: Maximum time to wait [s].

        Raises:
            ServiceMissingError: If no node offers the service within `patience`.
        """
        if not wait_until(lambda: self.is_served, time.monotonic() + patience):
            waited = f"; waited {patience:g} s" if patience else ""
            raise ServiceMissingError(f"{self.describe_missing()}{waited}")

    def describe_missing(self) -> str:
        """Return an error message that no node offers the service.

        The message lists available services of the same type.
        """
        kind = f"{self._kind.__module__.partition('.')[0]}/srv/{self._kind.__name__}"
        services = self._node.get_service_names_and_types()
        others = [name for name, kinds in services if kind in kinds and name != self.name]
        known = f"available services of this type: {listing(others)}"
        return f"no service {self.name} ({kind}); {known}"

    def call(self, wait: float = 0.0, **fields: Any) -> Any:
        """Call the service and return the response message.

        The request is sent again if no answer arrives within a second. Therefore the server may
        execute the request more than once.

        Args:
            wait: Maximum time until the service is available [s].
            fields: Fields of the request message.

        Raises:
            ServiceMissingError: If no node offers the service within the time `wait`.
            NoAnswerError: If no answer arrives within `PATIENCE` seconds.
        """
        self.wait(wait)
        request = self._kind.Request(**fields)
        future = call_with_retry(lambda: self.send(request), lambda: self.is_served, PATIENCE)
        if future is None:
            raise NoAnswerError(f"{self.name} did not answer within {PATIENCE:g} s")
        return future.result()
