"""Whether local motion gets anywhere."""

import math

WINDOW = 0.25  # [s]
PATIENCE = 2.0  # [s]
CYCLES = 5  # at least, in a window
PROGRESS = 0.8  # share of the error that a window may leave
CREEP = 0.1  # share of a velocity limit: slower motion gets nowhere either


class StallWatch:
    """Says that motion has stalled when a while of slow motion has left most of an error."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin anew, such as for another target."""
        self._since, self._error, self._cycles = -math.inf, math.inf, 0

    def update(self, now: float, error: float, speed: float) -> bool:
        """Look at a cycle.

        Args:
            error: that is left, of any unit.
            speed: of the fastest joint, as a share of its limit.
        """
        far = error < PROGRESS * self._error or error > self._error / PROGRESS
        if far or speed > CREEP or self._since == -math.inf:
            self._since, self._error, self._cycles = now, error, 0
        self._cycles += 1
        return now - self._since >= WINDOW and self._cycles > CYCLES

    def has_lasted(self, now: float) -> bool:
        """Whether a stall is such an old one that there is no use in creeping on."""
        return now - self._since >= PATIENCE and self._cycles > CYCLES
