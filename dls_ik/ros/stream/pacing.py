"""When the loop runs: at a fixed rate, and in step with targets that come at that rate."""

from typing import NamedTuple

from dls_ik.ros.stream.targets import Arrival, Rhythm

IN_STEP = 0.1  # targets come at the rate of the loop if their interval is this near to the period
EARLY, LATE = 0.9, 1.25  # periods from a cycle to the next in step with targets
SOONEST, LONGEST = 0.25, 2.0  # periods from a cycle to the next, and that it advances by


class Window(NamedTuple):
    """When the next cycle may begin, on the steady clock."""

    earliest: float  # [s]
    latest: float  # [s] until then it waits for a target


class Pacer:
    """Plans cycles on absolute deadlines.

    A stream of targets at about the rate of the loop would be followed with a lag of up to one
    period, depending on how the two clocks happen to lie. So while there is such a stream, a cycle
    begins when its target arrives, at most a quarter of a period late and a tenth early.
    """

    def __init__(self, rate: float, now: float) -> None:
        self.period = 1.0 / rate  # [s]
        self._last = now
        self._deadline = now + self.period
        self._rhythm = Rhythm()
        self._in_step = False

    def window(self) -> Window:
        """When the next cycle may begin."""
        if self._in_step:
            return Window(self._last + EARLY * self.period, self._last + LATE * self.period)
        begin = max(self._deadline, self._last + SOONEST * self.period)
        return Window(begin, begin)

    def began(self, now: float, arrival: Arrival | None) -> float:
        """Note that a cycle began, with the target it found; plan the next one.

        Returns:
            The time since the last cycle [s], two periods at most, so that a stall of the machine
            does not become a jump of the arm.
        """
        if arrival is not None:
            self._rhythm.heard(arrival)
        was_in_step = self._in_step
        self._in_step = self._is_in_step(now)
        elapsed, self._last = now - self._last, now
        if was_in_step or now - self._deadline > self.period:
            self._deadline = now
        self._deadline += self.period
        return min(elapsed, LONGEST * self.period)

    def _is_in_step(self, now: float) -> bool:
        return abs(self._rhythm.interval(now) / self.period - 1.0) < IN_STEP
