# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""SpaceMouse and other devices of 3Dconnexion, read as raw HID reports without a library.

Axes 0 to 5 are x to the right, y to the operator, z down, and the rotations about them.
"""

from __future__ import annotations

import re
import struct
from pathlib import Path

from dls_ik.teleop.file_device import FileDevice, read_name, the_only

DEVICE_FOLDER, HIDRAW_FOLDER = Path("/dev"), Path("/sys/class/hidraw")
# The vendor id of 3Dconnexion, and ids of products of 3Dconnexion with the vendor id of Logitech
HID_ID = re.compile(r"HID_ID=[0-9A-F]+:0000(?:256F:|046D:0000C6[0-4])", re.IGNORECASE)
HID_NAME = re.compile(r"HID_NAME=(.*?)(?: [A-Z_]+=|$)")
TRANSLATION_REPORT, ROTATION_REPORT, BUTTONS_REPORT = 1, 2, 3  # numbers of reports
FULL_DEFLECTION = 350.0  # value of an axis in a report at full deflection


class SpaceMouse(FileDevice):
    """SpaceMouse at a file such as /dev/hidraw0, of which each read returns one report."""

    def decode(self, data: bytes) -> None:
        """Update the state by one report."""
        if data[0] in (TRANSLATION_REPORT, ROTATION_REPORT):
            first = 3 if data[0] == ROTATION_REPORT else 0
            count = min((len(data) - 1) // 2, 6 - first)  # newer models: all six in one report
            for k, value in enumerate(struct.unpack_from(f"<{count}h", data, 1)):
                self.axes[first + k] = min(max(value / FULL_DEFLECTION, -1.0), 1.0)
        elif data[0] == BUTTONS_REPORT:
            bits = int.from_bytes(data[1:], "little")
            self.pressed = {k for k in range(bits.bit_length()) if bits >> k & 1}


def find_spacemice(devices: Path = DEVICE_FOLDER, sys: Path = HIDRAW_FOLDER) -> dict[str, str]:
    """Return the names of the connected SpaceMice by device file.

    Args:
        devices: Folder with the device files.
        sys: Folder with the descriptions of the devices.
    """
    found = {}
    for folder in sorted(sys.glob("hidraw*")):
        text = read_name(folder / "device" / "uevent")
        if HID_ID.search(text):
            name = HID_NAME.search(text)
            found[str(devices / folder.name)] = name[1] if name else ""
    return found


def open_spacemouse(path: str = "") -> SpaceMouse:
    """Open a SpaceMouse.

    Args:
        path: Device file; empty: the only connected SpaceMouse.

    Raises:
        DeviceError: If the SpaceMouse is missing, ambiguous, or cannot be opened.
    """
    return SpaceMouse(*the_only(find_spacemice(), "SpaceMouse", path))
