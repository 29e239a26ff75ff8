"""SIGINT and SIGTERM as something to wait for, instead of an interruption at any line."""

import signal
import threading
from collections.abc import Callable

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def hold_signals() -> None:
    """Let signals wait until :func:`on_signal` takes them; for threads that start later too."""
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)


def on_signal(act: Callable[[], object]) -> None:
    """Act once, in a thread of its own, on the first signal that came or comes."""

    def wait() -> None:
        signal.sigwait(SIGNALS)
        act()

    threading.Thread(target=wait, name="signals", daemon=True).start()
