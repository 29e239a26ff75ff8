"""What was commanded when: the part of it that is still on its way to the drives, and the rest."""

from collections import deque
from collections.abc import Iterator

import numpy as np

from dls_ik.core.types import Array
from dls_ik.ros.sim_arm.path import Path, standstill


class History:
    """Paths by the time when each was commanded; each replaces what follows of the one before."""

    def __init__(self, start: Array) -> None:
        self._commands = deque([(-np.inf, standstill(start, 0.0))])

    def add(self, path: Path, now: float) -> None:
        """Follow a path from now on [s], and until its first knot go there from the last one."""
        self._commands.append((now, path.from_here(now, *self._commands[-1][1].at(now))))

    def at(self, t: float) -> Array:
        """The positions (n,) commanded for a time [s]; where they jump, those after it."""
        return self._path(t).at(t)[0]

    def piece(self, begin: float, end: float) -> tuple[Array, Array]:
        """The positions (n,) at two times, the second as the path of the first has them."""
        path = self._path(begin)
        return path.at(begin)[0], path.at(end)[0]

    def breaks(self, begin: float, end: float) -> list[float]:
        """The times between two others when the path is not smooth, in order."""
        times = {t for t in self._times() if begin < t < end}
        return sorted(times)

    def forget(self, t: float) -> None:
        """Drop what was replaced before a time [s]."""
        while len(self._commands) > 1 and self._commands[1][0] <= t:
            self._commands.popleft()

    def _path(self, t: float) -> Path:
        oldest = self._commands[0][1]  # for a time before all that is kept
        return next((path for since, path in reversed(self._commands) if since <= t), oldest)

    def _times(self) -> Iterator[float]:
        for since, path in self._commands:
            yield since
            yield from path.times.tolist()
