"""Jitter of a stream, and its share of late cycles."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray


def jitter(intervals: np.ndarray, rate: float) -> list[float]:
    """Return standard deviation, 99th percentile and largest of the deviations from a period [ms].

    Args:
        intervals: between messages [s].
        rate: that they are to have [Hz].
    """
    if not len(intervals):
        return [math.nan] * 3
    off = 1e3 * np.abs(intervals - 1.0 / rate)
    return [1e3 * float(np.std(intervals)), *np.percentile(off, (99, 100)).tolist()]


def intervals(stamps: Sequence[int], settling: float = 0.0) -> np.ndarray:
    """Return the times between stamps [ns] in seconds, without the settling time."""
    times = 1e-9 * np.array(stamps, float)
    return np.diff(times[times >= times[0] + settling]) if len(times) else times


class Overruns:
    """Reads the node's count of late cycles, once a second."""

    def __init__(self, node: Any) -> None:
        self._counts: list[tuple[int, int]] = []  # overruns and cycles so far
        node.create_subscription(DiagnosticArray, "/diagnostics", self._receive, 10)

    def clear(self) -> None:
        """Begin to count."""
        self._counts.clear()

    def share(self) -> float | None:
        """Return the share since it was cleared; None without diagnostics."""
        if len(self._counts) < 2:
            return None
        overruns, cycles = np.subtract(self._counts[-1], self._counts[0]).tolist()
        return overruns / max(1, cycles)

    def _receive(self, message: Any) -> None:
        for status in message.status:
            values = {pair.key: pair.value for pair in status.values}
            if "overruns" in values:
                self._counts.append((int(values["overruns"]), int(values["cycles"])))
