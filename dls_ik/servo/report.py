"""The output of a cycle, and the state that describes it best."""

import math
from typing import NamedTuple

import numpy as np

from dls_ik.core.motion import difference
from dls_ik.core.types import Array
from dls_ik.servo.output import ServoOutput
from dls_ik.servo.servo import ServoStep
from dls_ik.servo.state import ServoState
from dls_ik.servo.tracker import Tracker

HELD = 0.99  # activation from which a joint counts as held
NEAR = 2.0  # times sigma0: a least singular value below it is near a singularity


class Hold(NamedTuple):
    """Why the arm stands still."""

    state: ServoState
    reason: str = ""

    @property
    def words(self) -> str:
        """A sentence for a person."""
        return f"{self.state.explanation}: {self.reason}" if self.reason else self.state.explanation


def held_output(tracker: Tracker, hold: Hold) -> ServoOutput:
    """The output of a cycle without a target."""
    q, v, nan = tracker.limiter.q.copy(), tracker.limiter.v.copy(), math.nan
    free = np.zeros_like(q)
    return ServoOutput(q, v, hold.state, hold.words, None, nan, nan, nan, nan, free, nan)


def tracking_output(
    tracker: Tracker, phase: ServoState, step: ServoStep, T_d: Array, age: float, last_least: float
) -> ServoOutput:
    """The output of a cycle toward a pose (4, 4).

    Args:
        phase, step: what the tracker says of the cycle.
        age: of the target [s].
        last_least: least singular value of the cycle before.
    """
    q = tracker.limiter.q.copy()
    position, rotation = _errors(tracker, step, q, T_d)
    state = _state(tracker, phase, step, position, rotation, last_least)
    least, greatest = step.least_singular_value, step.greatest_singular_value
    return ServoOutput(
        q,
        tracker.limiter.v.copy(),
        state,
        state.explanation,
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


def _state(
    tracker: Tracker,
    phase: ServoState,
    step: ServoStep,
    position: float,
    rotation: float,
    last_least: float,
) -> ServoState:
    if tracker.servo.is_reached(position, rotation):
        return ServoState.REACHED
    if phase is not ServoState.FOLLOWING:
        return phase
    if step.held.max() >= HELD:
        return ServoState.JOINT_BOUND
    if step.least_singular_value < NEAR * tracker.servo.options.sigma0:
        rises = step.least_singular_value > last_least
        return ServoState.LEAVING_SINGULARITY if rises else ServoState.NEAR_SINGULARITY
    return ServoState.FOLLOWING
