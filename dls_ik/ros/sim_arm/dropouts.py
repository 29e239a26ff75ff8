"""Times in which nothing is heard of the arm, drawn at random."""

import math

import numpy as np


class Dropouts:
    """Gaps of one length; the times between them are those of a Poisson process.

    Args:
        rate: [1/s] gaps in a second of hearing, in the mean; 0: none.
        duration: [s] of a gap.
        seed: of the times.
        now: [s] when it begins.
    """

    def __init__(self, rate: float, duration: float, seed: int, now: float) -> None:
        self._rate, self._duration = rate, duration
        self._random = np.random.default_rng(seed)
        self._begin = now + self._wait()

    def is_out(self, now: float) -> bool:
        """Whether a time [s], which only runs forward, lies in a gap."""
        while now >= self._begin + self._duration:
            self._begin += self._duration + self._wait()
        return now >= self._begin

    def _wait(self) -> float:
        if self._rate <= 0.0 or self._duration <= 0.0:
            return math.inf
        return float(self._random.exponential(1.0 / self._rate))
