"""A word to the user while kernels are compiled, once: the next process finds them on disk."""

import logging
from collections.abc import Callable

from numba.core import event

LONG = ("search_packed", "search_rows", "follow")  # called from Python, long to compile
WORDS = "compiling kernels for the first time, which takes up to a minute ..."

_say: Callable[[str], None] = logging.getLogger("dls_ik").warning
_said = False


class _Listener(event.Listener):  # type: ignore[misc]
    """Hears when a kernel is really compiled, and not when it is loaded from disk."""

    def on_start(self, event: event.Event) -> None:
        """Say so, the first time."""
        global _said
        function = event.data["dispatcher"].py_func
        module = function.__module__ or ""  # none for what numba makes itself
        ours = module.startswith("dls_ik.core") and function.__name__ in LONG
        if ours and not _said:
            _said = True
            _say(WORDS)

    def on_end(self, event: event.Event) -> None:
        """Nothing to say."""


def announce_compilation_to(say: Callable[[str], None]) -> None:
    """Have the words go elsewhere than to Python's log, where a warning reaches the terminal."""
    global _say
    _say = say


event.register("numba:compile", _Listener())
