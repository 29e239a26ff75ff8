"""Which robots may have been in force when."""

import re
import time
from collections.abc import Iterable
from typing import NamedTuple

from benchmarks.concurrency.robots import Described
from dls_ik import RobotModel

READY = re.compile(r"ready after \S+ s: (r\d+),")
REFUSED = "robot refused"


class Sent(NamedTuple):
    """A description that was sent."""

    name: str
    model: RobotModel | None  # None: broken
    time: float  # just before, on the clock of stamps [s]


class History:
    """All descriptions in the order in which they were sent, and those known to have been in force.

    What the node does between a description and the line of its log is not seen. So of a time only
    this is known: no robot is in force that was sent before the last one the node called ready, nor
    one that was not sent yet.
    """

    def __init__(self) -> None:
        self.sent: list[Sent] = []
        self.last_ready = -1  # index in `sent`
        self.refused = 0

    def send(self, robot: Described) -> str:
        """Note that a description is about to be sent; return it, with a name of its own."""
        name = f"r{len(self.sent)}"
        self.sent.append(Sent(name, robot.model, time.time()))
        return robot.named(name)

    def hear(self, line: str) -> None:
        """Take a line of the node's log."""
        if found := READY.search(line):
            self.last_ready = int(found[1][1:])
        self.refused += REFUSED in line

    @property
    def model(self) -> RobotModel | None:
        """The robot last called ready."""
        return self.sent[self.last_ready].model if self.last_ready >= 0 else None

    def models(self, first: int) -> list[RobotModel]:
        """All that may have been in force since then, from the index of what was ready then."""
        found = self.sent[max(first, 0) :]
        return [each.model for each in found if each.model is not None]

    def indices(self, first: int) -> Iterable[int]:
        """The indices in `sent` of the same."""
        start = max(first, 0)
        return (i for i in range(start, len(self.sent)) if self.sent[i].model is not None)
