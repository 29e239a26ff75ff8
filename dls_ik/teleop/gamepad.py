# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Gamepads and joysticks, read by the joystick interface of Linux without a library.

The interface is described in Documentation/input/joydev/joystick-api.rst of the Linux kernel. Axes
and buttons have the numbers that ``jstest`` shows.
"""

from __future__ import annotations

import struct
from pathlib import Path

from dls_ik.teleop.file_device import FileDevice, read_name, the_only

INPUT_FOLDER, INPUT_NAMES = Path("/dev/input"), Path("/sys/class/input")
EVENT = struct.Struct("IhBB")  # struct js_event: time [ms], value, type, number
BUTTON_EVENT, AXIS_EVENT, INITIAL_STATE = 0x01, 0x02, 0x80  # types of events
FULL_AXIS_VALUE = 32767


class Gamepad(FileDevice):
    """Gamepad at a file such as /dev/input/js0."""

    def decode(self, data: bytes) -> None:
        """Update the state by whole events of the joystick interface."""
        whole = len(data) - len(data) % EVENT.size
        for _, value, kind, number in EVENT.iter_unpack(data[:whole]):
            if kind & ~INITIAL_STATE == AXIS_EVENT:
                self.axes[number] = value / FULL_AXIS_VALUE
            elif kind & ~INITIAL_STATE == BUTTON_EVENT:
                (self.pressed.add if value else self.pressed.discard)(number)


def find_gamepads(devices: Path = INPUT_FOLDER, names: Path = INPUT_NAMES) -> dict[str, str]:
    """Return the names of the connected gamepads by device file.

    Args:
        devices: Folder with the device files.
        names: Folder with the descriptions of the devices.
    """
    files = sorted(devices.glob("js[0-9]*"))
    return {str(file): read_name(names / file.name / "device" / "name") for file in files}


def open_gamepad(path: str = "", devices: Path = INPUT_FOLDER) -> Gamepad:
    """Open a gamepad.

    Args:
        path: Device file; empty: the only connected gamepad.
        devices: Folder with the device files.

    Raises:
        DeviceError: If the gamepad is missing, ambiguous, or cannot be opened.
    """
    return Gamepad(*the_only(find_gamepads(devices), "gamepad", path))
