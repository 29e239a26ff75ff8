"""Cycles that begin late, when the process was stopped or got no processor for a while."""

import math
from collections.abc import Callable

from dls_ik.core.types import Array
from dls_ik.ros.arm import Arm

LATE = 2.0  # periods: the longest step that a command takes
STILL = 4.0  # periods from which the loop stood still, where target_timeout is shorter

Coasted = Callable[[Array, Array, float], tuple[Array, Array]]


class Late:
    """Keeps the command where the arm is, which went on by itself or stopped meanwhile.

    Args:
        coasted: the joint values and velocities (n,) that an arm comes to by itself from those of a
            command, in a time [s]; None: it stops with the commands.
    """

    def __init__(self, coasted: Coasted | None) -> None:
        self._coasted = coasted
        self._last = math.inf  # when the last cycle began

    def cycle(self, arm: Arm, now: float, dt: float) -> tuple[float, bool, float]:
        """Begin a cycle.

        Returns:
            The time since the one before [s], whether that is so long that what came meanwhile is
            old, and how far to advance [s].
        """
        gap, self._last = now - self._last, now
        period = 1.0 / arm.parameters.rate
        if gap <= LATE * period:
            return gap, False, dt
        q, v = arm.controller.command, arm.controller.velocity
        is_lapse = gap > _longest(arm)
        if self._coasted is not None and v.any():
            q, v = self._coasted(q, v, gap)
            arm.controller.coast(q, v)
            dt = min(dt, period)
        if is_lapse and (self._coasted is None or not v.any()):
            arm.controller.lapse(q)
        return gap, is_lapse, dt

    def is_old(self, arm: Arm, age: float) -> bool:
        """Whether a command made so long ago [s] would take the arm back to where it was then."""
        return age > (_longest(arm) if self._coasted is None else LATE / arm.parameters.rate)


def _longest(arm: Arm) -> float:
    """The time [s] from which the loop stood still."""
    return max(arm.parameters.target_timeout, STILL / arm.parameters.rate)
