# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Devices that are read from a device file of Linux, which may be unplugged at any time."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np

from dls_ik.teleop.device import Control, DeviceError, DeviceState
from dls_ik.text import listing

RETRY_PERIOD = 1.0  # [s] time between two attempts to open a device that was unplugged
READ_BYTES = 4096


class FileDevice(ABC):
    """Device read from a device file; it is opened again after it was unplugged.

    Args:
        path: Device file.
        name: Name of the device for the operator.

    Raises:
        DeviceError: If the file cannot be opened.
    """

    def __init__(self, path: str, name: str = "") -> None:
        self.path, self.name = path, f"{name} ({path})" if name else path
        self.axes: dict[Control, float] = {}
        self.pressed: set[Control] = set()
        self._retry = -np.inf  # [s] time of the next attempt to open the file
        self._file = -1
        try:
            self._file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        except PermissionError as error:
            raise DeviceError(
                f"cannot read {path}: permission denied; allow it by a udev rule, or by "
                f"sudo setfacl -m u:$USER:r {path}"
            ) from error
        except OSError as error:
            raise DeviceError(f"cannot open {path}: {error.strerror}") from error

    @abstractmethod
    def decode(self, data: bytes) -> None:
        """Update `axes` and `pressed` by the bytes of one read."""

    def read(self, now: float) -> DeviceState:
        """Return the current state without waiting.

        Args:
            now: Current time [s].
        """
        if self._file < 0 and now >= self._retry:
            self._retry = now + RETRY_PERIOD
            with suppress(OSError):
                self._file = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)
        if self._file >= 0:
            self._read_all(now)
        if self._file < 0:
            return DeviceState(now, problem=f"{self.name} is unplugged; plug it in")
        return DeviceState(now, dict(self.axes), frozenset(self.pressed))

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
        self._file = -1
        self.axes.clear()
        self.pressed.clear()

    def _read_all(self, now: float) -> None:
        """Read until no data are left; close the file if the device was unplugged."""
        try:
            while data := os.read(self._file, READ_BYTES):
                self.decode(data)
        except BlockingIOError:
            return
        except OSError:  # the kernel has removed the device
            pass
        self.close()
        self._retry = now + RETRY_PERIOD


def the_only(found: Mapping[str, str], what: str, wanted: str) -> tuple[str, str]:
    """Return path and name of the device to use.

    Args:
        found: Names of the connected devices by path.
        what: Kind of device, for the error message.
        wanted: Path given by the user; empty: the only connected device.

    Raises:
        DeviceError: If `wanted` is empty, and no device or several devices are connected.
    """
    if wanted:
        return wanted, found.get(wanted, "")
    if len(found) == 1:
        return next(iter(found.items()))
    if not found:
        raise DeviceError(
            f"no {what} is connected; plug it in; dls-ik teleop --list lists the connected devices"
        )
    names = listing(f"{path} ({name})" for path, name in found.items())
    raise DeviceError(f"several devices are connected: {names}; choose one by --source FILE")


def read_name(file: Path) -> str:
    """Return the text of a file of /sys in one line; empty if it cannot be read."""
    try:
        return " ".join(file.read_text(encoding="utf-8", errors="replace").split())
    except OSError:
        return ""
