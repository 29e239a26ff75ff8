"""What the messages of an output are made for."""

from typing import Any, NamedTuple, Protocol

import numpy as np

from dls_ik.core.types import Array


class OutputSpec(NamedTuple):
    """The joints as they stand in the outputs, and the pace of the loop."""

    names: tuple[str, ...]  # (n,) as drivers call them
    lower: Array  # (n,) [rad or m], -inf where there is none
    upper: Array  # (n,) [rad or m], +inf where there is none
    acceleration: Array  # (n,) [rad/s^2 or m/s^2], +inf where there is none
    period: float  # [s] of the loop
    points: int  # of a trajectory


def unlimited(names: tuple[str, ...], period: float) -> OutputSpec:
    """For joints (n,) without limits."""
    nowhere = np.full(len(names), np.inf)
    return OutputSpec(names, -nowhere, nowhere, nowhere, period, 1)


class Output(Protocol):
    """One message that is filled again every cycle."""

    def fill(self, q: Array, velocity: Array, stamp: int) -> Any:
        """The message of a command (n,), (n,) at a time [ns]; the same object each time."""
