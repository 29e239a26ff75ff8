"""Pace of the loop: deadlines, cycles in step with targets, late cycles, and real-time priority."""

import math
import os
from typing import NamedTuple

from dls_ik.ros.arm import Arm
from dls_ik.ros.servo.targets import Arrival

IN_STEP = 0.1  # targets come at the rate of the loop if their interval is this near to the period
EARLY, LATE = 0.9, 1.25  # periods from a cycle to the next in step with targets
SOONEST, LONGEST = 0.25, 2.0  # periods from a cycle to the next, and that it advances by
STILL = 4.0  # periods from which the loop stood still, where target_timeout is shorter
GAIN = 0.2  # of the running mean of intervals
PATIENCE = 100  # cycles in a row without a pause between them


class IntervalEstimator:
    """Running mean of the time between targets."""

    def __init__(self) -> None:
        self._last = -math.inf
        self._interval = math.inf

    def update(self, arrival: Arrival) -> None:
        """Take an arrival into account."""
        interval = (arrival.time - self._last) / arrival.number
        self._last = arrival.time
        if math.isfinite(self._interval):
            interval = self._interval + GAIN * (interval - self._interval)
        self._interval = interval

    def interval(self, now: float) -> float:
        """Return the mean time between targets [s]; infinite while none arrive."""
        if now - self._last > 3.0 * self._interval:
            self._interval = math.inf
        return self._interval


class CycleWindow(NamedTuple):
    """Time of the next cycle, on the steady clock."""

    earliest: float  # [s]
    latest: float  # [s] until then it waits for a target


class Pacer:
    """Plans cycles on absolute deadlines.

    A stream of targets at about the rate of the loop would be followed with a lag of up to one
    period, depending on the phase of the two clocks. So while there is such a stream, a cycle
    begins when its target arrives, at most a quarter of a period late and a tenth early.
    """

    def __init__(self, rate: float, now: float) -> None:
        self.period = 1.0 / rate  # [s]
        self._last = now
        self._deadline = now + self.period
        self._targets = IntervalEstimator()
        self._in_step = False

    def window(self) -> CycleWindow:
        """Return when the next cycle may begin."""
        if self._in_step:
            return CycleWindow(self._last + EARLY * self.period, self._last + LATE * self.period)
        begin = max(self._deadline, self._last + SOONEST * self.period)
        return CycleWindow(begin, begin)

    def begin(self, now: float, arrival: Arrival | None) -> float:
        """Begin a cycle with the target it found, and plan the next one.

        Returns:
            The gap: the time since the last cycle [s].
        """
        if arrival is not None:
            self._targets.update(arrival)
        was_in_step = self._in_step
        self._in_step = abs(self._targets.interval(now) / self.period - 1.0) < IN_STEP
        gap, self._last = now - self._last, now
        if was_in_step or now - self._deadline > self.period:
            self._deadline = now
        self._deadline += self.period
        return gap


class OverrunHandler:
    """Keeps the command where the arm is when a cycle begins late.

    The process was stopped or got no processor, and the arm continued by itself or stopped.

    Args:
        has_stop_trajectory: the arm follows the stop of a command that no other one follows; else
            it stops with the commands.
    """

    def __init__(self, has_stop_trajectory: bool) -> None:
        self._has_stop = has_stop_trajectory

    def handle(self, arm: Arm, gap: float) -> tuple[bool, float]:
        """Move the command to the arm, where the gap since the last cycle [s] is long.

        Returns:
            True if the loop stood still so long that messages of the gap are old; and the time to
            advance by [s], so that a stall of the machine is no jump of the arm.
        """
        period, controller = 1.0 / arm.parameters.rate, arm.controller
        dt = min(gap, LONGEST * period)
        # Later than any cycle in step, the arm is on the stop that it was sent.
        if gap <= (LATE if self._has_stop else LONGEST) * period:
            return False, dt
        if self._has_stop:  # each command is due a period after it is sent
            controller.resume_at(gap - period, period)
            dt = period
        stood_still = gap > _longest_gap(arm)
        if stood_still and not (self._has_stop and controller.moves):
            controller.resume_after_gap(controller.command)
        return stood_still, dt

    def is_old(self, arm: Arm, age: float) -> bool:
        """Return whether a command of this age [s] would take the arm back to where it was then."""
        return age > (LONGEST / arm.parameters.rate if self._has_stop else _longest_gap(arm))


def _longest_gap(arm: Arm) -> float:
    """Return the gap [s] from which the loop stood still."""
    return max(arm.parameters.target_timeout, STILL / arm.parameters.rate)


class Priority:
    """Real-time priority of the loop's thread, for as long as the loop leaves time for others.

    A loop whose cycles take longer than their period never sleeps, and at this priority would keep
    a processor from all other threads.
    """

    def __init__(self, priority: int) -> None:
        self._priority = priority  # of SCHED_FIFO, 1 to 99; 0: an ordinary thread
        self._restless = 0  # cycles in a row without a pause

    def take(self) -> str:
        """Give it to the calling thread, but not to threads that this one starts.

        Returns:
            The outcome, in words.
        """
        if not self._priority:
            return "the loop has ordinary priority, as thread_priority is 0"
        try:
            _schedule(os.SCHED_FIFO, self._priority)
        except (AttributeError, OSError) as error:
            why = getattr(error, "strerror", None) or "not available on this system"
            wanted, self._priority = self._priority, 0
            return f"the loop has ordinary priority: real-time priority {wanted}: {why}"
        return f"the loop has real-time priority {self._priority}"

    def is_lost(self, has_pause: bool) -> bool:
        """Note whether there is a pause before the next cycle; give up where there never is one.

        Returns:
            True once, when it was given up.
        """
        self._restless = 0 if has_pause or not self._priority else self._restless + 1
        if self._restless < PATIENCE:
            return False
        self._priority = 0
        _schedule(os.SCHED_OTHER, 0)
        return True


def _schedule(policy: int, priority: int) -> None:
    """Schedule the calling thread; threads that it starts are ordinary."""
    os.sched_setscheduler(0, policy | os.SCHED_RESET_ON_FORK, os.sched_param(priority))
