"""The node that a client's messages go through: somebody's, or one with a thread of its own."""

import os
import threading
from contextlib import suppress

import rclpy
from rclpy.context import Context
from rclpy.exceptions import InvalidHandle, InvalidNamespaceException
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rclpy.task import Future
from rclpy.validate_namespace import validate_namespace

from dls_ik.exceptions import OptionError
from dls_ik.model.names import quoted
from dls_ik.ros.client.errors import ClientStartError

NAME = "dls_ik_client"
HIGHEST_DOMAIN = 232  # of DDS; Fast DDS ends the process at a higher one


class OwnHost:
    """A node in a context of its own, whose callbacks a thread runs; signals stay Python's.

    Raises:
        OptionError: the namespace is not valid.
        ClientStartError: ROS 2 cannot be joined: its domain, log folder or keystore.
    """

    def __init__(self, namespace: str, name: str = NAME) -> None:
        _check(namespace)
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


def _check(namespace: str) -> None:
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
