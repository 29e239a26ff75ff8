"""Tasks that run beside each other in one thread: generators that say what they wait for.

A task yields a number of seconds, a call of a service, whose answer it gets, or a condition.
"""

import time
from collections.abc import Callable, Generator
from typing import Any

PATIENCE = 60.0  # [s] after which what is waited for counts as never to come


class HangError(Exception):
    """Something that must come did not."""


class Call:
    """A request on its way to the node.

    Args:
        what: it is, for people.
        future: of rclpy.
    """

    def __init__(self, what: str, future: Any) -> None:
        self.what, self.future = what, future
        self.sent = time.time()  # on the clock of stamps [s]

    def __call__(self) -> bool:
        """Whether it is answered."""
        return bool(self.future.done())


Awaited = float | Call | Callable[[], bool]
Steps = Generator[Awaited, Any, None]


class Task:
    """A generator on its way."""

    def __init__(self, name: str, steps: Steps) -> None:
        self.name = name
        self._steps = steps
        self._since = time.monotonic()
        self._awaited: Awaited = 0.0

    @property
    def awaits_answer(self) -> bool:
        """Whether a call of it is on its way."""
        return isinstance(self._awaited, Call)

    def step(self, finishing: bool = False) -> None:
        """Go on if what it waits for is there.

        Args:
            finishing: only take answers, and begin nothing.

        Raises:
            HangError: it waits for too long.
        """
        awaited = self._awaited
        waited = time.monotonic() - self._since
        if isinstance(awaited, float | int):
            if waited >= awaited and not finishing:
                self._go(None)
        elif awaited():
            self._go(awaited.future.result() if isinstance(awaited, Call) else None)
        elif waited > PATIENCE:
            what = awaited.what if isinstance(awaited, Call) else "a condition"
            raise HangError(f"{self.name} waited {PATIENCE:g} s for {what}")

    def _go(self, answer: Any) -> None:
        self._awaited = self._steps.send(answer)
        self._since = time.monotonic()
