"""A preset: a target that moves by itself, and what there is to see in it."""

from typing import NamedTuple

import numpy as np

from dls_ik.core.motion import difference, moved
from dls_ik.core.types import Array

REST = 1.0  # [s] at each end


class Preset(NamedTuple):
    """A path for the target to go along and back again, for two methods to follow."""

    title: str
    watch: str  # one sentence: what to look at
    methods: tuple[str, str]
    start: Array  # (n,) where the arms begin [rad or m]
    Ts: Array  # (m, 4, 4) poses T_base_tip at equal times
    duration: float  # [s] one way

    @property
    def period(self) -> float:
        """After which it begins again [s]."""
        return 2.0 * (self.duration + REST)

    def pose(self, time: float) -> Array:
        """The target (4, 4) at a time since the beginning [s]."""
        share = _to_and_fro(time, self.duration) * (len(self.Ts) - 1)
        leg = min(int(share), len(self.Ts) - 2)
        along = difference(self.Ts[leg], self.Ts[leg + 1]) * (share - leg)
        T: Array = moved(self.Ts[leg], along)
        return T


def _to_and_fro(time: float, duration: float) -> float:
    """From 0 to 1 and back, with a rest at both ends."""
    phase = time % (2.0 * (duration + REST))
    if phase > duration + REST:
        return 1.0 - float(np.clip((phase - duration - 2.0 * REST) / duration, 0.0, 1.0))
    return float(np.clip((phase - REST) / duration, 0.0, 1.0))
