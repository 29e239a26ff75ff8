# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Widgets of the page whose values both a person and the program can change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

Current = Callable[[], Any]
Changed = Callable[[Any], object]


class Input:
    """Widget that shows a value of the program, and reports the values that a person enters.

    The thread of viser stores an entered value in the widget; callbacks run in other threads. If
    the program wrote to the widget before a callback reads it, the entered value would be lost. So
    this class reads the entered value in viser's thread, and writes to the widget only in viser's
    thread. The widget shows no value of the program until all entered values are handled.

    Args:
        server: Server of viser.
        handle: Handle of the widget.
        current: Returns the value to show; None leaves the widget unchanged.
        changed: Called with each entered value, in another thread, one call at a time. If several
            values are entered during a call, only the last value is reported.
        tolerance: Smaller changes of numbers are not shown.
    """

    def __init__(
        self, server: Any, handle: Any, current: Current, changed: Changed, tolerance: float = 0.0
    ) -> None:
        self.handle = handle
        self._loop = server.get_event_loop()
        self._current, self._changed, self._tolerance = current, changed, tolerance
        self._given: list[Any] = []  # entered values that are not handled yet
        self._is_busy = False
        handle.on_update(self._accept)

    def update(self) -> None:
        """Show the current value, unless an entered value is being handled."""
        if self._new_value() is not None:
            with suppress(RuntimeError):  # the server has stopped
                self._loop.call_soon_threadsafe(self._show)

    def _new_value(self) -> Any:
        """Return the value to show, or None if the widget already shows it."""
        value, shown = self._current(), self.handle.value
        if value is None or value == shown:
            return None
        if self._tolerance and abs(value - shown) <= self._tolerance:
            return None
        return value

    def _show(self) -> None:
        value = None if self._is_busy else self._new_value()
        if value is not None:
            self.handle.value = value

    async def _accept(self, event: Any) -> None:
        if event.client is None:  # the program, not a person, has changed the widget
            return
        self._given = [event.target.value]
        if self._is_busy:
            return
        self._is_busy = True
        try:
            while self._given:
                await asyncio.to_thread(self._changed, self._given.pop())
        finally:
            self._is_busy = False
        self._show()
