"""Subscriptions and services that a thread takes by itself, without an executor in between.

An executor of rclpy builds a wait set of all entities of a node for each message, and another one
after it: 0.3 ms, and a second thread to wake.
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

PAUSE = 0.1  # [s] after an error at most: it may last
IDLE = 60.0  # [s] of a wait at most, where nothing else bounds it
Reply = Callable[[Any], None]  # sends the first response that it gets, in any thread


class MessageReceiver(CallbackGroup):
    """Callback group of subscriptions and services that no executor takes, but a waiting thread.

    Subscriptions have no event handlers, with which the middleware would wake the executor for each
    message too: they are for qualities of service that no publisher is incompatible with.
    """

    def __init__(self, node: Node, log: Throttle) -> None:
        super().__init__()
        self._node, self._log = node, log
        self._entities: tuple[Subscription | Service, ...] = ()
        self._waiter = compat.EntityWaiter(node.context)
        self._sending = threading.Lock()  # rcl sends from one thread at a time
        self._closed = threading.Event()
        self._guard = node.create_guard_condition(_pass, self)

    def create_subscription(
        self, kind: Any, topic: str, callback: Callable[..., None], qos: QoSProfile, raw: bool
    ) -> Subscription:
        """Subscribe, as :meth:`rclpy.node.Node.create_subscription`."""
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
        """Serve; the callback takes a request and the reply, which any thread may call later.

        A coroutine as callback of rclpy's own does not do: the future that it awaits does not wake
        the executor (9.1), or is polled (Humble).

        Args:
            depth: requests and responses that the middleware keeps; one too many replaces the
                oldest, whose client waits in vain.
        """
        qos = QoSProfile(depth=depth)
        service = self._node.create_service(
            kind, name, callback, qos_profile=qos, callback_group=self
        )
        self._use((*self._entities, service))
        return service

    def destroy_subscription(self, subscription: Subscription) -> None:
        """Destroy a subscription, from any thread; a wait that it takes part in ends first."""
        self._use([each for each in self._entities if each is not subscription])
        self._node.destroy_subscription(subscription)

    def can_execute(self, entity: Any) -> bool:
        """Return whether an executor may execute an entity: none of them."""
        return False

    def beginning_execution(self, entity: Any) -> bool:
        """Return whether an executor may execute an entity now: none of them."""
        return False

    def ending_execution(self, entity: Any) -> None:
        """Take note of nothing: no executor executes an entity."""

    def receive(self, timeout: float = IDLE) -> None:
        """Wait for messages and pass them to their callbacks; for the thread of the receiver only.

        Returns after the first messages, :meth:`wake`, :meth:`close`, or `timeout` [s].
        """
        taken: Subscription | Service | None = None
        try:
            for taken in self._waiter.wait(self._entities, self._guard, timeout):
                self._take(taken)
        except Exception as error:  # noqa: BLE001  the thread outlives any message
            whose = "a wait for messages" if taken is None else entity_words(self._node, taken)
            self._log.failed(f"callback {whose}", f"a callback failed: {whose}", error)
            self._closed.wait(min(timeout, PAUSE))

    def serve(self) -> None:
        """Receive until :meth:`close`; the work of a thread of its own."""
        while not self._closed.is_set():
            self.receive()
        self.release()

    def _take(self, entity: Subscription | Service) -> None:
        if isinstance(entity, Service):
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
        """End the wait, or the next one, from any thread."""
        self._guard.trigger()

    def release(self) -> None:
        """Let go of what was destroyed; in the thread of the receiver, at its end."""
        self._waiter.use(())

    def close(self) -> None:
        """End the wait for the last time."""
        self._closed.set()
        self.wake()

    def _use(self, entities: Sequence[Subscription | Service]) -> None:
        self._entities = tuple(entities)
        self.wake()


class OneReply:
    """Sends the first of several responses to a request; later ones are dropped."""

    def __init__(self, send: Callable[[Any], None]) -> None:
        self._send, self._lock, self._is_sent = send, threading.Lock(), False

    def __call__(self, response: Any) -> None:
        """Send a response, unless one was sent."""
        with self._lock:
            if self._is_sent:
                return
            self._is_sent = True
        self._send(response)


def _pass() -> None:
    """Do nothing."""
