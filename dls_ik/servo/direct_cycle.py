# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Local motion and the motion of the command by one call of a kernel in each cycle."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dls_ik import compat
from dls_ik.core import cycle
from dls_ik.core.boxes import boxed
from dls_ik.core.types import Array
from dls_ik.servo.limiter import AccelerationLimiter
from dls_ik.servo.local_ik import LocalIk, ServoStep


class DirectCycle:
    """Moves the reference and the command as `local_ik` and `limiter` do, in less time.

    The results are the same; the states of `local_ik` and `limiter` are read and written.

    Args:
        local_ik: Local motion of one tip, without plug-ins or lower levels; `is_direct` is true.
        limiter: Limiter of the command, without a guard.

    Attributes:
        errors: Position error [m] and rotation error [rad] of the command after the last cycle.
        gap: Largest distance of a joint of the command from its reference [rad or m].
        motion: Largest motion of a joint of the reference in the last cycle [rad or m].
        speed: Largest mean velocity of a joint of the command in the last cycle [rad/s or m/s].
    """

    def __init__(self, local_ik: LocalIk, limiter: AccelerationLimiter) -> None:
        self._local_ik, self._limiter = local_ik, limiter
        # Function that returns whether the velocity of the command is too high for the limits; the
        # limiter then moves the command instead.
        self.is_too_fast = limiter.is_too_fast
        parts = cycle.CycleParts(*local_ik.records(), *limiter.records())
        self._parts = boxed(parts)
        self._run: Callable[..., None] | None = None  # the kernel, set in the first cycle
        self._shape = cycle.CYCLE_ROWS, local_ik.robot.n
        self._figures = np.zeros(cycle.CYCLE_FIGURES)
        self.errors, self.gap, self.motion, self.speed = (0.0, 0.0), 0.0, 0.0, 0.0

    def advance(self, T_d: Array, dt: float) -> ServoStep:
        """Make a step toward a target pose T_d (4, 4), and move the command, for `dt` [s]."""
        local_ik, limiter, rows = self._local_ik, self._limiter, np.empty(self._shape)
        T_d = np.ascontiguousarray(T_d, dtype=float)  # usually makes no copy
        local_ik.prepare(dt)
        arguments = self._parts, T_d, dt, limiter.q, limiter.rate, rows, self._figures
        if self._run is None:
            self._run = compat.numba_entry(cycle.run_cycle, arguments)
        self._run(*arguments)
        q_r, activations, q, v, rate = rows
        limiter.enter(q, v, rate, dt)
        (
            position,
            rotation,
            least,
            greatest,
            command_position,
            command_rotation,
            self.gap,
            self.motion,
            self.speed,
        ) = self._figures.tolist()
        self.errors = command_position, command_rotation
        return ServoStep(q_r, position, rotation, least, greatest, activations)
