"""The planar chains of Tabaczynski 2005, table 4.4, and the figures that he prints for them.

He prints neither links nor starts nor goals: table_4_4 says where these come from.
"""

from math import pi
from typing import NamedTuple

import numpy as np


class Scenario(NamedTuple):
    """A planar chain, where it starts and where its end should be."""

    name: str
    links: tuple[float, ...]
    start: tuple[float, ...]  # [rad]
    goal: tuple[float, float]
    printed: tuple[tuple[int | str, ...], ...]  # of each method: iterations, trajectory

    @property
    def is_reachable(self) -> bool:
        """Whether the table asks for iterations to the target, not to its line."""
        return len(self.printed[0]) == 3

    @property
    def least_distance(self) -> float:
        """How near the end can come to the goal at best."""
        away, longest = float(np.hypot(*self.goal)), max(self.links)
        return max(0.0, away - sum(self.links), 2 * longest - sum(self.links) - away)


_TWO = ((1.0, 2.0), (pi / 4, pi / 8))
_FIVE = ((2.0, 1.0, 1.5, 2.5, 0.7), (pi / 4, 2 * pi / 3, 1.5, pi / 3, -3.0))
_JERKY, _WIDE, _SMOOTH = "jerky", "wide oscillation", "very smooth"
SCENARIOS = (
    Scenario("2 links, too far", *_TWO, (-2.5, -2.5),
             (("never", _WIDE), (100, _WIDE), (45, _SMOOTH))),
    Scenario("2 links, too close", *_TWO, (-0.5, -0.5),
             (("never", _WIDE), (68, _WIDE), (30, _SMOOTH))),
    Scenario("2 links", *_TWO, (-2.0, -2.0),
             ((14, 16, _JERKY), (120, 570, _WIDE), (50, 141, _SMOOTH))),
    Scenario("5 links", *_FIVE, (-2.0, -2.0),
             ((6, 7, _JERKY), (140, 459, _WIDE), (16, 40, _SMOOTH))),
)  # fmt: skip
