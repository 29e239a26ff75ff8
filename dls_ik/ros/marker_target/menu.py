"""The menu of the marker."""

from collections.abc import Callable
from typing import Any

PAUSE, RESET, TO_TIP = "Pause", "Reset", "Bring the target to the tip"


class Menu:
    """Pause, which is ticked while it lasts; reset; bring the target to the tip.

    Args:
        library: the module ``interactive_markers``.
        server, name: the marker's.
        do: what to do, by title.
    """

    def __init__(
        self, library: Any, server: Any, name: str, do: dict[str, Callable[[], None]]
    ) -> None:
        self._server, self._name = server, name
        self._handler = library.MenuHandler()
        self._entries = {
            title: self._handler.insert(title, callback=lambda _, act=act: act())
            for title, act in do.items()
        }
        self._ticked = False
        self._tick()

    def apply(self) -> None:
        """Give the menu to a marker that was inserted anew."""
        self._handler.apply(self._server, self._name)

    def show(self, paused: bool) -> None:
        """Tick or untick, if that is new."""
        if paused is not self._ticked:
            self._ticked = paused
            self._tick()
            self.apply()

    def _tick(self) -> None:
        state = self._handler.CHECKED if self._ticked else self._handler.UNCHECKED
        self._handler.setCheckState(self._entries[PAUSE], state)
