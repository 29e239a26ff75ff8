"""What all targets have in common."""

from collections.abc import Callable
from typing import Protocol

import numpy as np

from dls_ik.core.types import Array

SAME = 1e-4  # [m and 1] entries of two poses that are the same target, in spite of noise
STANDING = 0.25  # [s] without change, after which a target stands still

Tip = Callable[[], Array]  # the pose of the tip (4, 4), of the reference or of the command


def is_same(T_a: Array, T_b: Array, length_unit: float = 1.0) -> bool:
    """Whether two poses (4, 4) are one target; their lengths are in so many units a metre."""
    apart = np.abs(T_a - T_b)
    apart[:3, 3] /= length_unit
    return float(apart.max()) <= SAME


class Target(Protocol):
    """A pose to follow at any time, on the steady clock [s]."""

    sampled: float  # when the newest of its data was taken
    is_velocity: bool  # whether it leads on from wherever the command is
    waits_for_command: bool  # whether the tip it asks for is the command's, else the reference's

    def pose(self, now: float, dt: float, tip: Tip) -> Array:
        """The pose (4, 4) to be at, at the end of a cycle of `dt` [s]; once a cycle."""

    def is_stale(self, now: float) -> bool:
        """Whether what it was made from has ceased to come."""

    def stands(self, now: float) -> bool:
        """Whether it waits for the arm, however the arm comes there."""
