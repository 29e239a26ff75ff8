"""The motion of a follower in the terms of the controller, for those who watch."""

import numpy as np

from dls_ik.ros.follower import Motion
from dls_ik.servo import ServoCode
from dls_ik.servo.output import ServoOutput
from dls_ik.servo.state import ServoState

STATES = {
    ServoCode.INVALID: ServoState.REFUSED,
    ServoCode.OK: ServoState.FOLLOWING,
    ServoCode.NEAR_SINGULARITY: ServoState.NEAR_SINGULARITY,
    ServoCode.JOINT_BOUND: ServoState.JOINT_BOUND,
}


def state_of(code: ServoCode, words: str) -> ServoState:
    """The state of a code; words of their own with a good one say that nothing was asked for."""
    return ServoState.WAITING if code is ServoCode.OK and words else STATES[code]


def output_of(motion: Motion, state: ServoState, words: str) -> ServoOutput:
    """What is known of a motion; the rest is NaN."""
    nan = float("nan")
    return ServoOutput(
        motion.q,
        motion.velocity,
        state,
        words,
        motion.T_d,
        motion.position_error,
        motion.rotation_error,
        least_singular_value=nan,
        condition=nan,
        held=np.full(len(motion.q), nan),
        target_age=nan,
    )
