# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Keyboard of a terminal as a device of teleoperation."""

from __future__ import annotations

import os
import re
import select
import sys
import termios
import tty
from contextlib import suppress

from dls_ik.teleop.device import DeviceError, DeviceState

# A terminal reports no releases, only repetitions of the last key, at least ten a second.
KEY_TIME = 0.15  # [s] time after the last report of a key for which the key counts as held
KEY = re.compile(rb"\x1b[\[O][0-9;]*([A-Za-z~])|\x1b|[\x20-\xff]")
ARROWS = {"A": "up", "B": "down", "C": "right", "D": "left"}
READ_BYTES = 4096


class Keyboard:
    """Keyboard of the terminal on stdin, which reports each key without Enter.

    Args:
        file: File descriptor of the terminal; None: that of stdin.

    Raises:
        DeviceError: If the file is not a terminal.
    """

    name = "the keyboard of this terminal"

    def __init__(self, file: int | None = None) -> None:
        try:
            self._file = sys.stdin.fileno() if file is None else file
        except (OSError, ValueError, AttributeError):  # stdin is closed or is no file
            self._file = -1
        if self._file < 0 or not os.isatty(self._file):
            raise DeviceError(
                "the keyboard needs a terminal, but stdin is not a terminal; do not redirect stdin"
            )
        self._before = termios.tcgetattr(self._file)
        tty.setcbreak(self._file)
        self._seen: dict[str, float] = {}  # time when a key was last reported [s]
        self._is_open = True

    def read(self, now: float) -> DeviceState:
        """Return the keys that count as held, without waiting.

        Args:
            now: Current time [s].
        """
        try:
            while self._is_open and select.select([self._file], [], [], 0.0)[0]:
                data = os.read(self._file, READ_BYTES)
                self._is_open = bool(data)
                for found in KEY.finditer(data):
                    self._seen[_key_name(found)] = now
        except OSError:
            self._is_open = False
        if not self._is_open:
            return DeviceState(now, problem="the terminal is closed")
        self._seen = {key: t for key, t in self._seen.items() if 0.0 <= now - t < KEY_TIME}
        return DeviceState(now, pressed=frozenset(self._seen))

    def close(self) -> None:
        """Restore the mode of the terminal."""
        with suppress(OSError, termios.error):
            termios.tcsetattr(self._file, termios.TCSANOW, self._before)


def _key_name(found: re.Match[bytes]) -> str:
    """Return the name of a key: a lower-case character, or a word such as "space" or "up"."""
    if found[1] is not None:
        return ARROWS.get(found[1].decode("ascii"), "other")
    character = found[0].decode("latin-1").lower()
    return {" ": "space", "\x1b": "escape"}.get(character, character)
