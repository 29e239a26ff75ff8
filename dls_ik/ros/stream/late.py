"""Cycles that begin late, when the process was stopped or got no processor for a while."""

import math

from dls_ik.ros.arm import Arm
from dls_ik.ros.stream.pacing import LATE, LONGEST

STILL = 4.0  # periods from which the loop stood still, where target_timeout is shorter


class Late:
    """Keeps the command where the arm is, which went on by itself or stopped meanwhile.

    Args:
        goes_on: whether the arm follows the stop of a command that no other one follows; else it
            stops with the commands.
    """

    def __init__(self, goes_on: bool) -> None:
        self._goes_on = goes_on
        self._last = math.inf  # when the last cycle began

    def cycle(self, arm: Arm, now: float, dt: float) -> tuple[float, bool, float]:
        """Begin a cycle.

        Returns:
            The time since the one before [s], whether that is so long that what came meanwhile is
            old, and how far to advance [s].
        """
        gap, self._last = now - self._last, now
        period, controller = 1.0 / arm.parameters.rate, arm.controller
        # Later than any cycle in step, the arm is on the stop that it was sent.
        if gap <= (LATE if self._goes_on else LONGEST) * period:
            return gap, False, dt
        if self._goes_on:  # each command is due a period after it is sent
            controller.resume_at(gap - period, period)
            dt = min(dt, period)
        is_lapse = gap > _longest(arm)
        if is_lapse and not (self._goes_on and controller.moves):
            controller.resume_after_gap(controller.command)
        return gap, is_lapse, dt

    def is_old(self, arm: Arm, age: float) -> bool:
        """Whether a command made so long ago [s] would take the arm back to where it was then."""
        return age > (LONGEST / arm.parameters.rate if self._goes_on else _longest(arm))


def _longest(arm: Arm) -> float:
    """The time [s] from which the loop stood still."""
    return max(arm.parameters.target_timeout, STILL / arm.parameters.rate)
