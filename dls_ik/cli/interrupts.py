"""A moment in which Ctrl-C waits, and is not lost."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def held() -> Iterator[None]:
    """Let Ctrl-C come after what is done inside, where it would leave things half made."""
    if threading.current_thread() is not threading.main_thread():  # it hears no signals
        yield
        return
    heard: list[int] = []

    def note(number: int, _: Any) -> None:
        heard.append(number)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        for number in heard[:1]:
            signal.raise_signal(number)
