# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Client node of a benchmark: subscriptions without an executor, and waiting tasks."""

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.task import Future

INBOX_DEPTH = 10_000  # messages kept between two looks


@contextmanager
def client_node(
    name: str = "benchmark", namespace: str = ""
) -> Iterator[tuple[Node, SingleThreadedExecutor]]:
    """Yield a node and its executor, in a context of their own, which leaves signals alone."""
    context = rclpy.Context()
    rclpy.init(args=[], context=context)
    try:
        node = Node(name, context=context, namespace=namespace)
        executor = SingleThreadedExecutor(context=context)
        executor.add_node(node)
        yield node, executor
    finally:
        context.try_shutdown()


class Inbox:
    """Subscription that is polled, in a node that no executor spins.

    Args:
        node: Node whose namespace and context are used.
    """

    def __init__(self, node: Node, kind: Any, topic: str) -> None:
        name = f"inbox_{topic.replace('/', '_')}"
        reader = Node(name, context=node.context, namespace=node.get_namespace())
        self._subscription: Any = reader.create_subscription(
            kind, topic, lambda _: None, QoSProfile(depth=INBOX_DEPTH)
        )

    def take(self) -> list[Any]:
        """Return all queued messages."""
        found, handle, kind = [], self._subscription.handle, self._subscription.msg_type
        with handle:
            while (pair := handle.take_message(kind, False)) is not None:
                found.append(pair[0])
        return found


# A task yields what it waits for: seconds, a request, whose answer it gets, or a condition.
Awaited = float | Future | Callable[[], bool]
Steps = Generator[Awaited, Any, None]


class Task:
    """A generator that is resumed once what it waits for is there.

    Args:
        patience: time [s] after which a TimeoutError is raised in the generator.
    """

    def __init__(self, steps: Steps, patience: float) -> None:
        self._steps, self._patience = steps, patience
        self._awaited: Awaited = 0.0
        self._since = time.monotonic()

    @property
    def awaits_answer(self) -> bool:
        """True while a request of it is under way."""
        return isinstance(self._awaited, Future)

    def step(self) -> None:
        """Resume the generator if what it waits for is there, or does not come."""
        awaited, waited, answer = self._awaited, time.monotonic() - self._since, None
        if isinstance(awaited, float):
            is_ready = waited >= awaited
        elif isinstance(awaited, Future):
            is_ready, answer = awaited.done(), awaited.result()
        else:
            is_ready = awaited()
        if is_ready:
            self._awaited, self._since = self._steps.send(answer), time.monotonic()
        elif waited > self._patience:
            words = f"{self._steps.__name__} waited {self._patience:g} s for {awaited}"
            self._awaited = self._steps.throw(TimeoutError(words))
            self._since = time.monotonic()
