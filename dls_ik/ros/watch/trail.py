"""Where the tip was in the last seconds. Time is an argument."""

from collections import deque

import numpy as np

from dls_ik.core.types import Array
from dls_ik.ros.watch.tip import Tip

MOST_POINTS = 250  # to turn more into a message would keep the loop waiting
SHORTEST_INTERVAL = 0.02  # [s]


class Trail:
    """Keeps commands as they come, and makes points of them when they are asked for.

    One thread samples, another one asks.

    Args:
        duration: how long the trail is [s].
    """

    def __init__(self, tip: Tip, duration: float) -> None:
        self.tip = tip
        self._duration = duration
        self._interval = max(SHORTEST_INTERVAL, duration / MOST_POINTS)
        self._commands: deque[tuple[float, Array]] = deque(maxlen=MOST_POINTS)
        self._points: deque[tuple[float, Array]] = deque(maxlen=MOST_POINTS)
        self._next = -np.inf  # when to take a command again

    def sample(self, now: float, q: Array) -> None:
        """Keep a command (n,) that nobody changes any more, at a time [s], if one is due."""
        if now >= self._next and self._duration > 0.0:
            self._next = now + self._interval
            self._commands.append((now, q))

    def points(self, now: float) -> Array:
        """Where the tip was (m, 3) in the root frame [m], oldest first."""
        new = [self._commands.popleft() for _ in range(len(self._commands))]
        if new:
            times, commands = zip(*new, strict=True)
            positions = self.tip.poses(np.array(commands))[:, :3, 3]
            self._points.extend(zip(times, positions, strict=True))
        while self._points and now - self._points[0][0] > self._duration:
            self._points.popleft()
        return np.array([point for _, point in self._points]).reshape(-1, 3)
