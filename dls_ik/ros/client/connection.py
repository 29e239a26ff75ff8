"""Connections of a client: its own node, calls of services that are sent anew, and their errors."""

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
from rclpy.qos import qos_profile_services_default
from rclpy.signals import SignalHandlerOptions
from rclpy.task import Future
from rclpy.validate_namespace import validate_namespace

from dls_ik.errors import DlsIkError, OptionError
from dls_ik.text import quoted

ANEW = 1.0  # [s] that an answer is overdue before it is asked for again; then twice that, and so on
NAME = "dls_ik_client"
HIGHEST_DOMAIN = 232  # of DDS; Fast DDS ends the process at a higher one
POLL = 0.05  # [s]
PATIENCE = 5.0  # [s] for an answer


class ServiceMissingError(DlsIkError):
    """Nobody serves what is asked for; the message names it, and what is there instead."""


class NoAnswerError(DlsIkError):
    """A service took a request, and did not answer in time."""


class ClientStartError(DlsIkError):
    """ROS 2 cannot be joined from here; the message says why."""


class NotSpunError(DlsIkError):
    """A call that waits, on a node whose callbacks nobody runs."""


NOT_THERE = (ServiceMissingError, NoAnswerError, ClientStartError)  # what a command ends by


def first_answered(
    send: Callable[[], Any], is_served: Callable[[], bool], patience: float, expected: float = 0.0
) -> Any:
    """The first future of a request that is done; None: none is, and all are cancelled.

    A server sends no answer to a client that it has not found yet, and a client cannot tell: that
    it has found the server says nothing of the other way. So a first request can be lost.

    Args:
        send: sends the request, which may be carried out more than once, and gives its future.
        patience: how long an answer may be overdue [s].
        expected: how long an answer takes [s].
    """
    answers: SimpleQueue[Any] = SimpleQueue()
    sent: list[Any] = []
    deadline, wait = time.monotonic() + expected + patience, expected + ANEW
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


class OwnHost:
    """A node in a context of its own, whose callbacks a thread runs; signals stay Python's.

    Raises:
        OptionError: the namespace is not valid.
        ClientStartError: ROS 2 cannot be joined: its domain, log folder or keystore.
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
        except RuntimeError as error:  # of rcl, with the line of its source at the end
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
        """End the thread, then the node; nothing the second time."""
        if not self._context.ok():
            return
        self._end.set_result(None)
        if self._thread is not threading.current_thread():
            self._thread.join()
        self._executor.shutdown()  # only now: it takes away what wakes the thread
        self.node.destroy_node()
        self._context.try_shutdown()

    def _spin(self) -> None:
        with suppress(ExternalShutdownException):
            while not self._end.done() and self._context.ok():
                with suppress(InvalidHandle):  # another thread destroyed what is waited for
                    self._executor.spin_until_future_complete(self._end)


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


class Service:
    """One service; the node's callbacks run in another thread than the one that calls it."""

    def __init__(self, node: Node, kind: Any, name: str) -> None:
        self._node = node
        self._client = node.create_client(kind, name, qos_profile=qos_profile_services_default)
        self._kind = kind
        self.name = node.resolve_service_name(name)

    @property
    def is_served(self) -> bool:
        """Whether there is anybody to answer."""
        return bool(self._client.service_is_ready())

    def close(self) -> None:
        """Leave the ROS graph."""
        self._node.destroy_client(self._client)

    def call(self, wait: float = 0.0, **fields: Any) -> Any:
        """The response to a request with these fields, of a service that may come within a time.

        It is sent anew where no answer comes: that the service does twice what is asked for does
        no harm.

        Raises:
            ServiceMissingError: nobody serves it.
            NoAnswerError: it did not answer.
        """
        deadline = time.monotonic() + wait
        while not self.is_served:
            if time.monotonic() >= deadline:
                after = f" after {wait:g} s" if wait else ""
                raise ServiceMissingError(f"there is no service {self.name}{after}")
            time.sleep(POLL)
        request = self._kind.Request(**fields)
        future = first_answered(
            lambda: self._client.call_async(request), lambda: self.is_served, PATIENCE
        )
        if future is None:
            raise NoAnswerError(f"{self.name} did not answer within {PATIENCE:g} s")
        return future.result()
