"""Whether it is known where the arm is, and so whether it may be moved."""

import math

from dls_ik.core.types import Array
from dls_ik.ros.arm import Arm
from dls_ik.ros.params.ik_node import AUTO, NONE, REQUIRED
from dls_ik.ros.stream.joint_states import FRESH, JointStates, Measurement

DRAIN = 0.1  # [s] in which messages that waited while the loop stood still are worked off


class Whereabouts:
    """What joint states say of the arm, and what they are good for.

    Args:
        shows: the commands are for display, and hurt nothing.
    """

    def __init__(self, states: JointStates, shows: bool) -> None:
        self._states, self._shows = states, shows
        self._trusted = -math.inf  # [s] steady: what came before that does not count
        self._located = False  # it was measured, and was not lost since

    @property
    def topic(self) -> str:
        """Where joint states come in."""
        return self._states.topic

    def values(self) -> dict[str, float]:
        """The last position of every joint that was ever heard of."""
        return self._states.values()

    def distrust(self, now: float) -> None:
        """Let nothing count that came before, nor what comes at once [s]."""
        self._trusted = now + DRAIN

    def is_trusted(self, now: float) -> bool:
        """Whether what comes now is of now, unless its publisher says otherwise."""
        return now >= self._trusted

    def is_settled(self, now: float) -> bool:
        """Whether what comes now is of now, whatever the clock of its publisher shows."""
        return now - self._trusted > FRESH

    def measured(self, arm: Arm, now: float) -> Array | None:
        """Where the joints of the arm are (n,), if that is known."""
        found = self.measurement(arm, now)
        return None if found is None else found.q

    def measurement(self, arm: Arm, now: float) -> Measurement | None:
        """Where the joints of the arm are, and since when that is known."""
        parameters = arm.parameters
        if parameters.feedback_mode == NONE:
            return None
        fresh = parameters.measurement_timeout if parameters.feedback_mode == REQUIRED else FRESH
        fresh = min(fresh, now - self._trusted)
        since = -math.inf if self.is_settled(now) else self._trusted
        names = arm.robot.joint_names
        return self._states.measurement(names, now, fresh, since) if fresh > 0.0 else None

    def may_start(self, arm: Arm, now: float, measured: Array | None) -> bool:
        """Whether it is known where the arm is, or that nobody says and nothing can be hurt."""
        if arm.controller.started or measured is not None or arm.parameters.feedback_mode == NONE:
            return True
        return self._shows and arm.parameters.feedback_mode == AUTO and self._states.settled(now)

    def is_uncertain(self, now: float, measured: Array | None) -> bool:
        """Whether to wait, after a time in which the loop stood still."""
        if not self.is_trusted(now):
            return True
        return self._located and measured is None and not self.is_settled(now)

    def loses(self, arm: Arm, now: float, measured: Array | None) -> bool:
        """Whether a driver that commands waited for is not heard any more; told once."""
        if measured is not None:
            self._located = True
        if measured is not None or not self._located or not self.is_settled(now):
            return False
        self._located = False
        watched = (
            arm.parameters.feedback_mode == REQUIRED
        )  # by the controller, which makes it a fault
        return arm.controller.started and not self._shows and not watched
