# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Controller states, the events that change them, and the output of a cycle."""

import enum
import math
from typing import NamedTuple

from dls_ik.core.types import Array
from dls_ik.servo.joint_stream import AnyJointTarget
from dls_ik.servo.local_ik import ServoStep
from dls_ik.servo.scene_state import NearPair
from dls_ik.servo.targets import Target

MIN_HELD_ACTIVATION = 0.99  # limit activation above which a joint counts as held at its limit
HELD_TIME = 0.1  # [s] a joint counts as held for this time after its limit was last active
# Thresholds of the smallest singular value, in units of sigma0, at which the arm is near a
# singularity and no longer near a singularity.
ENTER_SINGULARITY, LEAVE_SINGULARITY = 2.0, 2.5
# Change of the smallest singular value, in units of sigma0, above which it is not noise.
MIN_REVERSAL = 0.1


class ServoState(enum.Enum):
    """State of the controller in a cycle.

    The value of each state is a code of ``moveit_msgs/ServoStatus``, and a message.

    Attributes:
        code: -1: invalid, 0: no warning, 1 to 3: singularity, 4 and 5: collision, 6: joint bound.
            WAITING, PAUSED and TIMED_OUT have code 0, because it is not a fault if no target
            arrives.
        explanation: Message of the state, without a specific reason.
    """

    NO_ROBOT = (-1, "no robot yet")
    WAITING = (0, "no target yet")
    FOLLOWING = (0, "following")
    REACHED = (0, "at the target")
    JOINT_MOTION = (0, "moving through joint space to a solution that local motion did not find")
    PAUSED = (0, "paused")
    NEAR_SINGULARITY = (1, "near a singularity")
    STALLED = (2, "stalled")
    UNREACHABLE = (2, "target out of reach; holding at the closest configuration")
    LEAVING_SINGULARITY = (3, "leaving a singularity")
    NEAR_COLLISION = (4, "slowed or deflected near a collision")
    BLOCKED = (5, "blocked near a collision; the arm holds")
    JOINT_BOUND = (6, "a joint is held at its limit; the other joints compensate if they can")
    TIMED_OUT = (0, "no target received within target_timeout; the arm stops and holds")
    STALE = (-1, "no current data; the arm holds")
    REFUSED = (-1, "invalid target; the arm stops and holds")
    FAULT = (-1, "fault; the arm stops and holds until a reset")

    def __init__(self, code: int, explanation: str) -> None:
        self.code, self.explanation = code, explanation

    def message(self, reason: str = "") -> str:
        """Return the message, with a reason if one is given."""
        return f"{self.explanation}: {reason}" if reason else self.explanation

    @classmethod
    def from_message(cls, code: int, message: str) -> "ServoState | None":
        """Return the state of a ``moveit_msgs/ServoStatus``, which has no field for the state.

        Args:
            code: Code of the status; several states share a code.
            message: Message of the status: the explanation of the state, alone or followed by a
                colon or semicolon and details.

        Returns:
            The state; None if the message is that of another node, and states share the code.
        """
        if code == cls.WAITING.code and message.startswith(AWAITS_STATES):
            return cls.WAITING
        states = [state for state in cls if state.code == code]
        for state in states:
            rest = message.removeprefix(state.explanation)
            if rest != message and rest[:1] in ("", ":", ";"):
                return state
        return states[0] if len(states) == 1 else None


AWAITS_STATES = "waiting for joint states"  # start of other messages of the state WAITING
LATCHED = frozenset({ServoState.PAUSED, ServoState.FAULT})  # states that reject all targets
_ALL = frozenset(ServoState)


class Event(enum.Enum):
    """Event that changes the state of the controller.

    The value of each event is the resulting state, and the states in which the event is ignored.
    """

    TARGET = (ServoState.FOLLOWING, LATCHED)
    REFUSAL = (ServoState.REFUSED, LATCHED)  # invalid target
    TIMEOUT = (ServoState.TIMED_OUT, _ALL - {ServoState.FOLLOWING})  # no target received in time
    # The stream has ended, and the arm moves to its last pose.
    FINISH = (ServoState.FOLLOWING, _ALL - {ServoState.FOLLOWING})
    PAUSE = (ServoState.PAUSED, frozenset({ServoState.FAULT}))
    RESUME = (ServoState.WAITING, _ALL - {ServoState.PAUSED})
    STOP = (ServoState.WAITING, LATCHED)  # a motion has ended before its goal
    RESET = (ServoState.WAITING, frozenset[ServoState]())
    FAILURE = (ServoState.FAULT, frozenset[ServoState]())


class StreamState(NamedTuple):
    """State of the controller between two cycles; changed by :func:`transition` only."""

    # WAITING, FOLLOWING, REFUSED, TIMED_OUT, PAUSED or FAULT
    state: ServoState = ServoState.WAITING
    reason: str = ""
    target: Target | AnyJointTarget | None = None  # None unless the state is FOLLOWING
    has_started: bool = False  # whether a target was accepted since start, reset or resume

    @property
    def is_latched(self) -> bool:
        """Return whether targets are rejected until a resume or reset."""
        return self.state in LATCHED

    @property
    def message(self) -> str:
        """Message of the state, with its reason."""
        return self.state.message(self.reason)


def transition(
    before: StreamState,
    event: Event,
    reason: str = "",
    target: Target | AnyJointTarget | None = None,
) -> StreamState:
    """Return the state after an event; return `before` if the event is ignored in that state.

    Args:
        before: State before the event.
        event: Event that happened.
        reason: Why the event happened; the message of the new state includes this text.
        target: Target of the events TARGET and FINISH.
    """
    state, ignored_in = event.value
    if before.state in ignored_in:
        return before
    has_started = event is Event.TARGET or (before.has_started and state is not ServoState.WAITING)
    return StreamState(state, reason, target, has_started)


class TipStatus(NamedTuple):
    """State of a followed frame in a cycle, as :class:`.ServoOutput` for the whole robot."""

    tip: str
    reference: str | None  # link in whose frame the targets are given; None: the base
    state: ServoState
    message: str
    position_error: float  # [m] NaN without a target
    rotation_error: float  # [rad] NaN without a target
    target_age: float  # [s] time since the target was sampled; NaN without a target

    @property
    def name(self) -> str:
        """Name of the tip, and of the link to which the pose is relative."""
        return self.tip if self.reference is None else f"{self.tip} in {self.reference}"


class ServoOutput(NamedTuple):
    """Output of one cycle: command, state and errors. The arrays are copies."""

    q: Array  # (n,) command [rad or m]
    velocity: Array  # (n,) mean velocity of the command in the cycle [rad/s or m/s]
    state: ServoState
    message: str  # explanation of the state, and its reason
    # (4, 4) T_base_tip of the target in this cycle, or (s, 4, 4) of several followed frames; None
    # without a target
    T_d: Array | None
    position_error: float  # [m] error of the command, the largest of all frames; NaN without target
    rotation_error: float  # [rad] error of the command, the largest of all frames
    # Smallest singular value of the scaled Jacobian; NaN without local motion.
    least_singular_value: float
    condition: float  # ratio of largest to smallest singular value; NaN without local motion
    limit_activation: Array  # (n,) 0: joint is free, 1: joint is held at a limit
    target_age: float  # [s] time since the target was sampled; NaN without a target
    nearest: NearPair | None = None  # closest pair within influence_distance; None: no pair
    tips: tuple[TipStatus, ...] = ()  # status of each followed frame, if there are several


class ConditionMonitor:
    """Detects, with hysteresis, that a joint limit or a singularity limits local motion.

    A joint counts as held at its limit until 0.1 s after the last cycle in which its limit was
    active. The hysteresis for a singularity uses the damping threshold sigma0 of the method: the
    arm counts as leaving the singularity when the smallest singular value has risen by 0.1 sigma0
    above its minimum, and as approaching it again after a fall by 0.1 sigma0 below its maximum.
    """

    def __init__(self) -> None:
        self._last_held = -math.inf  # [s] time of the last cycle with an active joint limit
        # Whether the arm is leaving the singularity, and an extreme of the smallest singular value:
        # its maximum since the arm started to leave, or its minimum while the arm approaches. None
        # if no singularity is near.
        self._near: tuple[bool, float] | None = None

    def update(self, now: float, step: ServoStep, sigma0: float) -> ServoState:
        """Return the state of a cycle: JOINT_BOUND, a singularity state, or FOLLOWING.

        Args:
            now: Current time [s].
            step: Step of local motion.
            sigma0: Damping threshold of the method for singular values.
        """
        state = self._singularity(step.least_singular_value, sigma0)
        if max(step.limit_activation.tolist()) >= MIN_HELD_ACTIVATION:
            self._last_held = now
        return ServoState.JOINT_BOUND if 0.0 <= now - self._last_held < HELD_TIME else state

    def _singularity(self, smallest: float, sigma0: float) -> ServoState:
        """Return NEAR_SINGULARITY, LEAVING_SINGULARITY, or FOLLOWING if no singularity is near.

        Args:
            smallest: Smallest singular value of the scaled Jacobian; NaN without local motion.
            sigma0: Damping threshold of the method for singular values.
        """
        if not smallest < (LEAVE_SINGULARITY if self._near else ENTER_SINGULARITY) * sigma0:
            self._near = None
            return ServoState.FOLLOWING
        leaves, extreme = self._near or (False, smallest)
        extreme = max(extreme, smallest) if leaves else min(extreme, smallest)
        if abs(smallest - extreme) > MIN_REVERSAL * sigma0:
            leaves, extreme = not leaves, smallest
        self._near = leaves, extreme
        return ServoState.LEAVING_SINGULARITY if leaves else ServoState.NEAR_SINGULARITY
