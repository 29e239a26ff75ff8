"""Subscriptions whose messages a thread takes by itself, without an executor in between.

An executor of rclpy builds a wait set of all entities of a node for each message, and another one
after it: 0.3 ms, and a second thread to wake.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Any

from rclpy.callback_groups import CallbackGroup
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.subscription import Subscription

from dls_ik import compat
from dls_ik.ros.util import Throttle

try:
    from rclpy.event_handler import SubscriptionEventCallbacks
except ImportError:  # Humble
    from rclpy.qos_event import SubscriptionEventCallbacks


class MessageReceiver(CallbackGroup):
    """Callback group of subscriptions that no executor takes, but the thread that waits for them.

    They have no event handlers, with which the middleware would wake the executor for each message
    too: they are for qualities of service that no publisher is incompatible with.
    """

    def __init__(self, node: Node, log: Throttle) -> None:
        super().__init__()
        self._node, self._log = node, log
        self._subscriptions: tuple[Subscription, ...] = ()
        self._waiter = compat.SubscriptionWaiter(node.context)
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
        self._use((*self._subscriptions, subscription))
        return subscription

    def destroy_subscription(self, subscription: Subscription) -> None:
        """Destroy a subscription, from any thread; a wait that it takes part in ends first."""
        self._use([each for each in self._subscriptions if each is not subscription])
        self._node.destroy_subscription(subscription)

    def can_execute(self, entity: Any) -> bool:
        """Return whether an executor may execute an entity: none of them."""
        return False

    def beginning_execution(self, entity: Any) -> bool:
        """Return whether an executor may execute an entity now: none of them."""
        return False

    def ending_execution(self, entity: Any) -> None:
        """Take note of nothing: no executor executes an entity."""

    def receive(self, timeout: float) -> None:
        """Wait for messages and pass them to their callbacks; for the thread of the receiver only.

        Returns after the first messages, :meth:`wake`, :meth:`close`, or `timeout` [s].
        """
        try:
            for subscription in self._waiter.wait(self._subscriptions, self._guard, timeout):
                taken = subscription.handle.take_message(subscription.msg_type, subscription.raw)
                if taken is not None:
                    subscription.callback(*taken)
        except Exception as error:  # noqa: BLE001  the thread outlives any message
            self._log.failed("callback", "a callback failed", error)
            self._closed.wait(timeout)  # as if nothing had come: an error may last

    def wake(self) -> None:
        """End the wait, or the next one, from any thread."""
        self._guard.trigger()

    def release(self) -> None:
        """Let subscriptions go that were destroyed; in the thread of the receiver, at its end."""
        self._waiter.use(())

    def close(self) -> None:
        """End the wait for the last time."""
        self._closed.set()
        self.wake()

    def _use(self, subscriptions: Sequence[Subscription]) -> None:
        self._subscriptions = tuple(subscriptions)
        self.wake()


def _pass() -> None:
    """Do nothing."""
