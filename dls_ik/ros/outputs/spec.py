"""What the messages of an output are made for."""

from typing import Any, NamedTuple, Protocol

from dls_ik.core.types import Array
from dls_ik.servo.limiter import StopPath


class OutputSpec(NamedTuple):
    """The joints as they stand in the outputs, and the pace of the loop."""

    names: tuple[str, ...]  # (n,) as drivers call them
    period: float  # [s] of the loop
    points: int  # of a trajectory


class Output(Protocol):
    """One message that is filled again every cycle."""

    def fill(self, q: Array, velocity: Array, stamp: int, stop: StopPath | None = None) -> Any:
        """The message of a command (n,), (n,) at a time [ns]; the same object each time.

        Args:
            stop: from the command on, for a message that carries it.
        """
