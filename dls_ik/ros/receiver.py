# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Subscriptions, services and actions whose messages one thread receives without an executor.

An rclpy executor takes 0.3 ms more per message, because it builds a wait set of all entities of the
node before and after each message. The executor also wakes a second thread.
"""

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from rclpy.callback_groups import CallbackGroup
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.service import Service
from rclpy.subscription import Subscription

from dls_ik import compat
from dls_ik.ros.endpoints import entity_words
from dls_ik.ros.util import Throttle

try:
    from rclpy.event_handler import SubscriptionEventCallbacks
except ImportError:  # Humble
    from rclpy.qos_event import SubscriptionEventCallbacks

MAX_ERROR_PAUSE = 0.1  # [s] maximum pause after an error, in case the error repeats
MAX_WAIT = 60.0  # [s] default maximum time of a wait for messages
# Function that sends a response; only the first call sends one. Any thread may call it.
Reply = Callable[[Any], None]


class MessageReceiver(CallbackGroup):
    """Callback group with subscriptions and services that one thread serves instead of an executor.

    The subscriptions have no event handlers, because these would wake the executor of the node for
    each message. Therefore incompatible quality-of-service settings are not reported: create only
    subscriptions whose settings are compatible with every publisher.

    Args:
        node: ROS node of the subscriptions and services.
        log: Log for exceptions of callbacks.
    """

    def __init__(self, node: Node, log: Throttle) -> None:
        super().__init__()
        self._node, self._log = node, log
        self._entities: tuple[Any, ...] = ()  # subscriptions, services and waitables
        self._waiter = compat.EntityWaiter(node.context)
        self._sending = threading.Lock()  # rcl allows one sending thread at a time
        self._closed = threading.Event()
        self._guard = node.create_guard_condition(_pass, self)

    def create_subscription(
        self, kind: Any, topic: str, callback: Callable[..., None], qos: QoSProfile, raw: bool
    ) -> Subscription:
        """Create and return a subscription of this group.

        The arguments are those of :meth:`rclpy.node.Node.create_subscription`.
        """
        subscription = self._node.create_subscription(
            kind,
            topic,
            callback,
            qos,
            callback_group=self,
            event_callbacks=SubscriptionEventCallbacks(use_default_callbacks=False),
            raw=raw,
        )
        self._use((*self._entities, subscription))
        return subscription

    def create_service(
        self, kind: Any, name: str, callback: Callable[[Any, Reply], None], depth: int
    ) -> Service:
        """Create and return a service whose response may be sent after the callback returns.

        Coroutines of rclpy are no alternative, because their futures do not wake the executor
        (rclpy 9.1), or are polled (Humble).

        Args:
            kind: Service type.
            name: Service name.
            callback: Function that is called with each request, and with a function that sends the
                response to this request.
            depth: Number of requests and responses that the middleware queues. When the queue is
                full, the oldest request is dropped, and its client gets no answer.
        """
        qos = QoSProfile(depth=depth)
        service = self._node.create_service(
            kind, name, callback, qos_profile=qos, callback_group=self
        )
        self._use((*self._entities, service))
        return service

    def use_waitable(self, waitable: Any) -> None:
        """Serve a waitable, such as an action server, that was created with this group."""
        self._use((*self._entities, waitable))

    def destroy_subscription(self, subscription: Subscription) -> None:
        """Destroy a subscription of this group, after the current wait ends.

        Any thread may call this method.
        """
        self._use([each for each in self._entities if each is not subscription])
        self._node.destroy_subscription(subscription)

    def can_execute(self, entity: Any) -> bool:
        """Return False: no executor may execute an entity of this group."""
        return False

    def beginning_execution(self, entity: Any) -> bool:
        """Return False: no executor may execute an entity of this group."""
        return False

    def ending_execution(self, entity: Any) -> None:
        """Do nothing, because no executor executes an entity of this group."""

    def receive(self, timeout: float = MAX_WAIT) -> None:
        """Wait for messages, and call the callbacks of the messages that arrive.

        Return when messages were handled, when :meth:`wake` or :meth:`close` is called, or after
        `timeout` [s]. Always call this method in the same thread.
        """
        taken: Any = None
        try:
            for taken in self._waiter.wait(self._entities, self._guard, timeout):
                self._take(taken)
        except Exception as error:  # noqa: BLE001  no message may end the thread
            whose = "a wait for messages" if taken is None else entity_words(self._node, taken)
            self._log.failed(f"callback {whose}", f"a callback failed: {whose}", error)
            self._closed.wait(min(timeout, MAX_ERROR_PAUSE))

    def serve(self) -> None:
        """Receive messages until :meth:`close` is called; run this method in a thread."""
        while not self._closed.is_set():
            self.receive()
        self.release()

    def _take(self, entity: Any) -> None:
        if hasattr(entity, "take_data"):
            compat.serve_waitable(entity)
        elif isinstance(entity, Service):
            request, header = entity.handle.service_take_request(entity.srv_type.Request)
            if header is not None:
                entity.callback(request, OneReply(partial(self._reply, entity, header)))
        else:
            taken = entity.handle.take_message(entity.msg_type, entity.raw)
            if taken is not None:
                entity.callback(*taken)

    def _reply(self, service: Service, header: Any, response: Any) -> None:
        with self._sending:
            service.send_response(response, header)

    def wake(self) -> None:
        """End the current wait of :meth:`receive`, or the next one if none is in progress.

        Any thread may call this method.
        """
        self._guard.trigger()

    def release(self) -> None:
        """Release destroyed entities; call this at the end of the thread of :meth:`receive`."""
        self._waiter.use(())

    def close(self) -> None:
        """Stop receiving messages; :meth:`serve` returns."""
        self._closed.set()
        self.wake()

    def _use(self, entities: Sequence[Any]) -> None:
        self._entities = tuple(entities)
        self.wake()


class OneReply:
    """Function object that sends the first response to a request, and drops further responses.

    Args:
        send: Function that sends a response.
    """

    def __init__(self, send: Callable[[Any], None]) -> None:
        self._send, self._lock, self._is_sent = send, threading.Lock(), False

    def __call__(self, response: Any) -> None:
        """Send a response, unless a response was sent before."""
        with self._lock:
            if self._is_sent:
                return
            self._is_sent = True
        self._send(response)


def _pass() -> None:
    """Do nothing; the callback of the guard condition, which only ends a wait."""
