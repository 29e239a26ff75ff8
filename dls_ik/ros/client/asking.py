"""A request that is sent anew where its answer does not come."""

import time
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

ANEW = 1.0  # [s] that an answer is overdue before it is asked for again; then twice that, and so on


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
