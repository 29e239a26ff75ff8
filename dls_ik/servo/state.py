"""States of the controller, the events that change them, and the output of a cycle."""

import enum
import math
from typing import NamedTuple

from dls_ik.core.types import Array
from dls_ik.servo.local_ik import ServoStep
from dls_ik.servo.scene_state import NearPair
from dls_ik.servo.targets import Target

HELD = 0.99  # activation from which a joint counts as held
NEAR, AWAY = 2.0, 2.5  # times sigma0: least singular values where a singularity begins and ends
TURN = 0.1  # times sigma0: a smaller rise or fall is ignored
LINGER = 0.1  # [s] for which a joint that was held counts as held


class ServoState(enum.Enum):
    """State of a cycle: a name, its number in ``moveit_msgs/ServoStatus``, and a sentence."""

    NO_ROBOT = (-1, "no robot yet")
    WAITING = (0, "no target yet")
    FOLLOWING = (0, "following")
    REACHED = (0, "at the target")
    JOINT_MOTION = (0, "moving through joint space to a solution that local motion did not find")
    PAUSED = (0, "paused")
    NEAR_SINGULARITY = (1, "near a singularity")
    STALLED = (2, "stalled")
    UNREACHABLE = (2, "as near to the target as the arm comes, which is out of its reach")
    LEAVING_SINGULARITY = (3, "leaving a singularity")
    NEAR_COLLISION = (4, "slowed or turned by what is near")
    BLOCKED = (5, "what is near leaves no way on; the arm holds")
    JOINT_BOUND = (6, "a joint is held at its limit; the others make up for it as they can")
    TIMED_OUT = (0, "no target received within target_timeout; the arm stops and holds")
    STALE = (-1, "no current data; the arm holds")
    REFUSED = (-1, "the target is not valid; the arm stops and holds")
    FAULT = (-1, "a fault; the arm stops and holds until it is reset")

    @property
    def code(self) -> int:
        """The number in ServoStatus.

        -1: invalid, 0: no warning, 1 to 3: singularity, 4 and 5: collision, 6: joint bound. A pause
        in the targets, chosen by their sender, is no warning: WAITING, PAUSED and TIMED_OUT are 0.
        """
        return self.value[0]

    @property
    def explanation(self) -> str:
        """One sentence for a person."""
        return self.value[1]

    def message(self, reason: str = "") -> str:
        """The sentence for a person, with a reason where one is given."""
        return f"{self.explanation}: {reason}" if reason else self.explanation


LATCHED = frozenset({ServoState.PAUSED, ServoState.FAULT})  # no target is taken in these
_ALL = frozenset(ServoState)


class Event(enum.Enum):
    """Event of a stream: the state that it leads to, and the states in which it is ignored."""

    TARGET = (ServoState.FOLLOWING, LATCHED)
    REFUSAL = (ServoState.REFUSED, LATCHED)  # of a target that is not valid
    TIMEOUT = (ServoState.TIMED_OUT, _ALL - {ServoState.FOLLOWING})  # no target received in time
    FINISH = (ServoState.FOLLOWING, _ALL - {ServoState.FOLLOWING})  # to the last pose of a stream
    PAUSE = (ServoState.PAUSED, frozenset({ServoState.FAULT}))
    RESUME = (ServoState.WAITING, _ALL - {ServoState.PAUSED})
    RESET = (ServoState.WAITING, frozenset[ServoState]())
    FAILURE = (ServoState.FAULT, frozenset[ServoState]())


class StreamState(NamedTuple):
    """State of the stream of targets; changed by :func:`transition` only."""

    state: ServoState = ServoState.WAITING  # or FOLLOWING, REFUSED, TIMED_OUT, PAUSED, FAULT
    reason: str = ""
    target: Target | None = None  # while FOLLOWING
    has_started: bool = False  # a target was taken since the start, or the last reset or resume

    @property
    def is_latched(self) -> bool:
        """Return whether no target is taken."""
        return self.state in LATCHED

    @property
    def message(self) -> str:
        """A sentence for a person."""
        return self.state.message(self.reason)


def transition(
    before: StreamState, event: Event, reason: str = "", target: Target | None = None
) -> StreamState:
    """Return the state after an event; the same state if the event is ignored.

    Args:
        before: State before the event.
        event: Event of the stream.
        reason: Why the event happened, for a person.
        target: Target of the events TARGET and FINISH.
    """
    state, ignored_in = event.value
    if before.state in ignored_in:
        return before
    has_started = event is Event.TARGET or (before.has_started and state is not ServoState.WAITING)
    return StreamState(state, reason, target, has_started)


class ServoOutput(NamedTuple):
    """Command of one cycle, and its figures. Arrays are the receiver's own."""

    q: Array  # (n,) command [rad or m]
    velocity: Array  # (n,) of the command since the cycle before [rad/s or m/s]
    state: ServoState
    message: str  # a sentence: state of the arm, and the reason
    T_d: Array | None  # (4, 4) T_base_tip that is followed now
    position_error: float  # [m] of the command; NaN without a target
    rotation_error: float  # [rad]
    least_singular_value: float  # of the scaled Jacobian; NaN without local motion
    condition: float  # greatest by least singular value; NaN without local motion
    limit_activation: Array  # (n,) 0 free to 1 held at its limit
    target_age: float  # [s] since the target was sampled; NaN without a target
    nearest: NearPair | None = None  # within influence_distance; None: none, or without a scene


class ConditionMonitor:
    """Names the obstacle to local motion, a joint bound or a singularity, without flickering.

    A joint counts as held until it was free for a while. A singularity is left when the least
    singular value has risen by a share of sigma0 since its minimum, and neared again when it has
    fallen by as much.
    """

    def __init__(self) -> None:
        self._last_held = -math.inf  # [s] when a joint was held
        self._near: tuple[bool, float] | None = None  # near: leaves, extreme since it turned

    def update(self, now: float, step: ServoStep, sigma0: float) -> ServoState:
        """Return the state of a cycle of local motion; sigma0: of the method."""
        state = self._singularity(step.least_singular_value, sigma0)
        if max(step.limit_activation.tolist()) >= HELD:
            self._last_held = now
        return ServoState.JOINT_BOUND if 0.0 <= now - self._last_held < LINGER else state

    def _singularity(self, least: float, sigma0: float) -> ServoState:
        """No singularity is near where the least singular value is NaN."""
        if not least < (AWAY if self._near else NEAR) * sigma0:
            self._near = None
            return ServoState.FOLLOWING
        leaves, extreme = self._near or (False, least)
        extreme = max(extreme, least) if leaves else min(extreme, least)
        if abs(least - extreme) > TURN * sigma0:
            leaves, extreme = not leaves, least
        self._near = leaves, extreme
        return ServoState.LEAVING_SINGULARITY if leaves else ServoState.NEAR_SINGULARITY
