"""How the loop keeps its pace. Time is an argument."""

import math
import threading
from typing import NamedTuple


class LoopFigures(NamedTuple):
    """What the loop did, in all and since the figures were read before."""

    cycles: int  # in all
    overruns: int  # in all: cycles that began later than a period after their deadline
    recent_cycles: int
    recent_overruns: int
    rate: float  # [Hz] recent
    mean: float  # [s] that recent cycles took; NaN if there was none
    worst: float  # [s]


class LoopMeter:
    """Counters that the loop adds to, and another thread reads."""

    def __init__(self, period: float, now: float) -> None:
        self._period = period  # [s]
        self._lock = threading.Lock()
        self._cycles = self._overruns = 0  # up to the last reading
        self._recent = self._late = 0
        self._busy = self._worst = 0.0  # [s]
        self._since = now

    def cycle(self, deadline: float, began: float, ended: float) -> None:
        """Count a cycle by when it was to begin, when it did, and when it was over [s]."""
        busy = ended - began
        with self._lock:
            self._recent += 1
            self._busy += busy
            self._worst = max(self._worst, busy)
            self._late += began - deadline > self._period

    def read(self, now: float) -> LoopFigures:
        """The figures; those that are recent begin anew."""
        with self._lock:
            recent, late, busy, worst = self._recent, self._late, self._busy, self._worst
            elapsed = now - self._since
            self._cycles += recent
            self._overruns += late
            self._recent = self._late = 0
            self._busy = self._worst = 0.0
            self._since = now
        rate = recent / elapsed if elapsed > 0.0 else math.nan
        mean, worst = (busy / recent, worst) if recent else (math.nan, math.nan)
        return LoopFigures(self._cycles, self._overruns, recent, late, rate, mean, worst)
