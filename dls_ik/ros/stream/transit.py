"""How late messages are, by the times at which they were sent."""

import math

DRIFT = 1e-3  # [s/s] by which two clocks may come apart


class Transit:
    """Tells messages that waited from those that came at once, whatever their publisher's clock.

    What came fastest so far shows the difference of the clocks. Publishers whose clocks differ seem
    late, but for the one that is ahead.
    """

    def __init__(self) -> None:
        self._least, self._time = math.inf, -math.inf

    def lag(self, sent: int, now: float) -> float:
        """How much longer a message took than others [s]; infinite for the first.

        Args:
            sent: by the clock of its publisher [ns]; 0: not known, then 0 is returned.
            now: when it came, by a steady clock [s].
        """
        if not sent:
            return 0.0
        took = now - 1e-9 * sent
        usual = self._least + DRIFT * (now - self._time)
        self._least, self._time = min(took, usual), now
        return max(0.0, took - usual) if math.isfinite(usual) else math.inf
