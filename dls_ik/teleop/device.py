# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Interface of the input devices of teleoperation: a state that is read without waiting."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

import numpy as np

from dls_ik.core.types import Array
from dls_ik.errors import DlsIkError

Control = int | str  # number of an axis or a button, or name of a key


class DeviceError(DlsIkError):
    """A device that is missing, ambiguous, or cannot be opened."""


class DeviceState(NamedTuple):
    """State of a device at one moment: its buttons, and either axes or a pose.

    Axes and buttons have the numbers or names that the device uses.
    """

    received: float = -np.inf  # time of the newest data on the clock of `Teleop.step` [s]
    axes: Mapping[Control, float] = {}  # deflections, from -1 to 1
    pressed: frozenset[Control] = frozenset()  # buttons or keys that are held
    pose: Array | None = None  # (4, 4) pose of the device in the world frame of the device [m]
    num_poses: int = 0  # number of poses received so far
    problem: str = ""  # reason why the device cannot be used; empty if it can


class Device(Protocol):
    """A connected device."""

    name: str  # text for the operator, such as "Xbox pad (/dev/input/js0)"

    def read(self, now: float) -> DeviceState:
        """Return the current state without waiting.

        Args:
            now: Current time [s].
        """

    def close(self) -> None:
        """Release the device."""
