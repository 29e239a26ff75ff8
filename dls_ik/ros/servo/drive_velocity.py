# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Velocities for drives that take no positions, with a correction of their drift."""

import numpy as np

from dls_ik.core.types import Array

CORRECTION_GAIN = 2.0  # [1/s] correcting velocity divided by the deviation of the arm
MAX_CORRECTION_SHARE = 0.2  # largest correction, as a share of the velocity limits
FAST = 1e6  # [rad/s or m/s] replaces infinite limits


class DriveVelocity:
    """Velocity that is sent to the drives, within limits of velocity and acceleration.

    An arm whose drives receive velocities drifts from the commanded positions, because cycles are
    not exactly periodic. The deviation of the measured positions is therefore corrected slowly.

    Args:
        period: Period of the loop [s].
    """

    def __init__(self, period: float) -> None:
        self._period = period
        self._last: Array = np.zeros(0)  # (n,) [rad/s or m/s] velocity sent last

    @property
    def moves(self) -> bool:
        """Return whether the velocity that was sent last is not zero."""
        return bool(self._last.any())

    def next(self, velocity: Array, deviation: Array | None, limits: tuple[Array, Array]) -> Array:
        """Return the velocity (n,) to send in this cycle [rad/s or m/s].

        Args:
            velocity: (n,) mean velocity of the command in the cycle [rad/s or m/s].
            deviation: (n,) command minus measured position [rad or m]; None: no correction.
            limits: (n,) velocity limits [rad/s or m/s] and acceleration limits [rad/s^2 or m/s^2].
        """
        fastest, hardest = limits[0], limits[1] * self._period
        last = self._last if len(self._last) == len(velocity) else np.zeros_like(velocity)
        wanted = velocity
        if deviation is not None:
            largest = MAX_CORRECTION_SHARE * np.minimum(fastest, FAST)
            wanted = velocity + np.clip(CORRECTION_GAIN * deviation, -largest, largest)
        wanted = np.clip(wanted, -fastest, fastest)
        self._last = np.clip(wanted, last - hardest, last + hardest)
        return self._last
