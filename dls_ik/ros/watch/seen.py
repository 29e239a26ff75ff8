"""What the loop hands over to those who watch, each cycle."""

from typing import NamedTuple

from dls_ik.ros.watch.trail import Trail
from dls_ik.servo.output import ServoOutput
from dls_ik.servo.state import ServoState


class Seen(NamedTuple):
    """The last cycle; replaced as a whole, so that other threads may read it."""

    state: ServoState
    words: str
    output: ServoOutput | None  # None: there is no robot, or no command
    trail: Trail | None  # None: there is no robot


NOTHING = Seen(ServoState.WAITING, "", None, None)
