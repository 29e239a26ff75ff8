"""How late the cycles of a loop began, from when they began."""

from collections.abc import Iterable

import numpy as np


class Lateness:
    """Plans deadlines as :class:`dls_ik.ros.stream.pacing.Pacer` does, from what is seen outside.

    Deadlines are a period apart; a cycle that begins more than a period after its own sets the next
    one a period after itself. A cycle never begins before its deadline, so one that seems to says
    that the deadlines were assumed too late.

    Args:
        period: of the loop [s].
    """

    def __init__(self, period: float) -> None:
        self._period = period
        self._deadline: float | None = None

    def of(self, times: Iterable[float]) -> list[float]:
        """How late the next cycles were [s], by the times that they began at [s]."""
        found = []
        for time in times:
            if self._deadline is None or time < self._deadline:
                self._deadline = time
            late = time - self._deadline
            found.append(late)
            self._deadline = self._period + (time if late > self._period else self._deadline)
        return found


def late_figures(late: np.ndarray) -> list[float]:
    """Percentiles 50, 99 and 99.9 and largest [ms] of how late cycles were [s]."""
    if not len(late):
        return [np.nan] * 4
    return (1e3 * np.percentile(late, (50, 99, 99.9, 100))).tolist()


def missed(late: np.ndarray, period: float) -> int:
    """Deadlines that went by without a cycle: the whole periods that cycles were late [s]."""
    return int(np.floor(late / period).sum())
