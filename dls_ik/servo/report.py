"""The output of a cycle, and the state that describes it best."""

import math
from typing import NamedTuple

import numpy as np

from dls_ik.core.se3 import difference
from dls_ik.core.types import Array
from dls_ik.servo.output import ServoOutput
from dls_ik.servo.servo import ServoStep
from dls_ik.servo.state import ServoState
from dls_ik.servo.tracker import Tracker

HELD = 0.99  # activation from which a joint counts as held
NEAR, AWAY = 2.0, 2.5  # times sigma0: least singular values where a singularity begins and ends
TURN = 0.1  # times sigma0: a smaller rise or fall of it is no turn
LINGER = 0.1  # [s] for which a joint that was held counts as held
NO_NEARER = "local motion leads no nearer to the target"


class Hold(NamedTuple):
    """A state, and why: where the arm stands still, or what else it leaves open."""

    state: ServoState
    reason: str = ""

    @property
    def words(self) -> str:
        """A sentence for a person."""
        return f"{self.state.explanation}: {self.reason}" if self.reason else self.state.explanation


class ConditionMonitor:
    """Names what hinders local motion, a joint bound or a singularity, without flickering.

    A joint counts as held until it was free for a while. A singularity is left when the least
    singular value has risen by a share of sigma0 since it was least, and neared again when it has
    fallen by as much.
    """

    def __init__(self) -> None:
        self._held = -math.inf  # [s] when a joint was held last
        self._is_near = self._leaves = False
        self._turn = math.nan  # least or greatest value since it turned

    def update(self, now: float, step: ServoStep, sigma0: float) -> ServoState:
        """The state of a cycle of local motion; sigma0: of the method."""
        near = self._singularity(step.least_singular_value, sigma0)
        if step.held.max() >= HELD:
            self._held = now
        return ServoState.JOINT_BOUND if 0.0 <= now - self._held < LINGER else near

    def _singularity(self, least: float, sigma0: float) -> ServoState:
        """No singularity is near where there is no singular value, NaN."""
        was_near, self._is_near = self._is_near, least < (AWAY if self._is_near else NEAR) * sigma0
        if not self._is_near:
            return ServoState.FOLLOWING
        if not was_near:
            self._leaves, self._turn = False, least
        self._turn = max(self._turn, least) if self._leaves else min(self._turn, least)
        if abs(least - self._turn) > TURN * sigma0:
            self._leaves, self._turn = not self._leaves, least
        return ServoState.LEAVING_SINGULARITY if self._leaves else ServoState.NEAR_SINGULARITY


def held_output(tracker: Tracker, hold: Hold) -> ServoOutput:
    """The output of a cycle without a target."""
    q, v, nan = tracker.limiter.q.copy(), tracker.limiter.v.copy(), math.nan
    free = np.zeros_like(q)
    return ServoOutput(q, v, hold.state, hold.words, None, nan, nan, nan, nan, free, nan)


def tracking_output(
    tracker: Tracker,
    phase: ServoState,
    step: ServoStep,
    T_d: Array,
    age: float,
    condition: ServoState,
) -> ServoOutput:
    """The output of a cycle toward a pose (4, 4).

    Args:
        phase, step: what the tracker says of the cycle.
        age: of the target [s].
        condition: what hinders local motion, if anything does.
    """
    q = tracker.limiter.q.copy()
    position, rotation = _errors(tracker, step, q, T_d)
    state = condition if phase is ServoState.FOLLOWING else phase
    if tracker.servo.is_reached(position, rotation):
        state = ServoState.REACHED
    least, greatest = step.least_singular_value, step.greatest_singular_value
    return ServoOutput(
        q,
        tracker.limiter.v.copy(),
        state,
        Hold(state, _reason(tracker, state)).words,
        T_d.copy(),
        position,
        rotation,
        least,
        math.inf if least == 0.0 else greatest / least,
        step.held,
        age,
    )


def _errors(tracker: Tracker, step: ServoStep, q: Array, T_d: Array) -> tuple[float, float]:
    """Of the command, which may be behind the reference that the step made."""
    if not math.isnan(step.position_error) and np.array_equal(q, step.q):
        return step.position_error, step.rotation_error
    left = difference(tracker.servo.robot.fk(q), T_d)
    return float(np.linalg.norm(left[:3])), float(np.linalg.norm(left[3:]))


def _reason(tracker: Tracker, state: ServoState) -> str:
    """What a state leaves open."""
    if state is ServoState.NEAR_SINGULARITY:
        return tracker.servo.near_singularity
    return (tracker.reason or NO_NEARER) if state is ServoState.STALLED else ""
