"""What comes of a cycle of the controller."""

from typing import NamedTuple

from dls_ik.core.types import Array
from dls_ik.servo.state import ServoState


class ServoOutput(NamedTuple):
    """The command of one cycle, and what is known of it. Arrays are the receiver's own."""

    q: Array  # (n,) command [rad or m]
    velocity: Array  # (n,) of the command since the cycle before [rad/s or m/s]
    state: ServoState
    words: str  # a sentence: what the arm does, and why
    T_d: Array | None  # (4, 4) T_base_tip that is followed now; None: none
    position_error: float  # [m] of the command; NaN without a target
    rotation_error: float  # [rad]
    least_singular_value: float  # of the scaled Jacobian; NaN without a step of local motion
    condition: float  # greatest by least singular value; NaN without a step of local motion
    held: Array  # (n,) 0 free to 1 held: how far each joint is held by its limit
    target_age: float  # [s] since the target was sampled; NaN without a target
