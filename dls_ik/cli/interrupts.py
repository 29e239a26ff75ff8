"""Ctrl-C that waits for a moment, and that is not lost."""

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


@contextmanager
def remembered() -> Iterator[threading.Event]:
    """Let Ctrl-C set an event besides what it interrupts.

    Python drops an interruption that comes in a finalizer, or in a callback from C.
    """
    ended = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield ended
        return

    def note(number: int, frame: Any) -> None:
        ended.set()
        signal.default_int_handler(number, frame)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield ended
    finally:
        signal.signal(signal.SIGINT, before)
