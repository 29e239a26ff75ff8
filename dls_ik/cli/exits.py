"""Exit codes, the line on stderr that a command ends with, and Ctrl-C."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import click

from dls_ik.text import escape

NO_SOLUTION, BAD_INPUT, MISSING, INTERRUPTED = 1, 2, 3, 130


class MissingPartError(click.ClickException):
    """Something has to be installed or started for what was asked; the message says what."""

    exit_code = MISSING


def leave(words: str, code: int) -> NoReturn:
    """End with one line on stderr."""
    say(" ".join(words.split()))
    sys.exit(code)


def say(words: str) -> None:
    """One line on stderr, whatever the words hold."""
    click.echo(f"dls-ik: {escape(words)}", err=True)


def interrupted(words: str = "interrupted") -> NoReturn:
    """End as Ctrl-C does, saying in a line what is kept."""
    if sys.stderr.isatty():
        click.echo(err=True)  # ends the line of the terminal's ^C
    leave(words, INTERRUPTED)


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
