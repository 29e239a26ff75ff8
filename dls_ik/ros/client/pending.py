"""An answer that is on its way: to wait for in a thread, in asyncio, or in a callback."""

import asyncio
from collections.abc import Generator
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Pending(Future[T], Generic[T]):
    """A future of Python's own, which can also be awaited.

    In a coroutine of asyncio it does not block the loop. In one that rclpy runs, such as an async
    callback, the client must belong to a node of the same executor, which then goes on with it.
    """

    def __await__(self) -> Generator[Any, None, T]:
        """Wait for the result."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return self._polled()
        return asyncio.wrap_future(self).__await__()

    def _polled(self) -> Generator[Any, None, T]:
        while not self.done():
            yield
        return self.result()
