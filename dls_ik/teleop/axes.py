# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Twists from the axes or keys of a device."""

from __future__ import annotations

import numpy as np

from dls_ik.core.types import Array
from dls_ik.teleop.config import AXES_OF_TWIST, TeleopConfig
from dls_ik.teleop.device import Control, DeviceState
from dls_ik.text import listing


class AxisMotion:
    """Normalised twists from the axes of a device.

    An axis is ignored until its deflection has been within the deadzone. Therefore an axis that is
    off zero when the motion is released cannot move the arm.

    Args:
        config: Configuration with the axes, the deadzone and `stuck_after`.

    Attributes:
        note: Message for the operator that names the ignored axes; empty if none is ignored.
    """

    def __init__(self, config: TeleopConfig) -> None:
        self.note = ""
        self._config = config
        self._used = np.zeros(6, dtype=bool)  # components whose axis has been at rest
        self._last = np.zeros(6)
        self._changed = np.full(6, -np.inf)  # [s] time of the last change of each component

    def reset(self) -> None:
        """Ignore each axis until it has been at rest."""
        self._used[:] = False

    def values(self, state: DeviceState, now: float) -> Array:
        """Return the deflections (6,) of x, y, z, roll, pitch and yaw, from -1 to 1.

        Args:
            state: State of the device.
            now: Current time [s].
        """
        config = self._config
        raw = np.array([_deflection(config.axes.get(name), state) for name in AXES_OF_TWIST])
        self._changed[raw != self._last] = now
        self._last = raw
        size = np.abs(raw)
        at_rest = size <= config.deadzone
        self._used |= at_rest
        if config.stuck_after > 0.0:
            self._used &= at_rest | (now - self._changed < config.stuck_after)
        ignored = [name for name, used in zip(AXES_OF_TWIST, self._used, strict=True) if not used]
        self.note = f"{listing(ignored)} ignored: let the axis return to 0" if ignored else ""
        share = np.clip((size - config.deadzone) / (1.0 - config.deadzone), 0.0, 1.0)
        result: Array = np.where(self._used, np.sign(raw) * share, 0.0)
        return result


def _deflection(source: tuple[Control, Control | float] | None, state: DeviceState) -> float:
    """Return the deflection of one component, from -1 to 1.

    Args:
        source: Number of an axis and its factor, or the keys of the positive and the negative
            direction, see `TeleopConfig.axes`; None: the deflection is 0.
        state: State of the device.
    """
    if source is None:
        return 0.0
    first, second = source
    if isinstance(second, str):
        return float(first in state.pressed) - float(second in state.pressed)
    return min(max(state.axes.get(first, 0.0) * second, -1.0), 1.0)
