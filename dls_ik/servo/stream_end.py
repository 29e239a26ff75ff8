"""End of a stream of poses: whether the arm finishes the motion to the last pose, or stops."""

import numpy as np

from dls_ik.core.se3 import difference
from dls_ik.core.types import Array
from dls_ik.servo.options import FINISH, STOP, ControllerOptions
from dls_ik.text import elapsed

FINISHING = "the stream has ended, and the motion to its last pose is finished"
STOPPING = "when_stream_ends is 'stop'"


def stop_reason(
    options: ControllerOptions, T: Array, T_last: Array, silence: float, length_unit: float = 1.0
) -> str:
    """Return why the arm stops short of the last pose of a stream; empty if it finishes.

    Args:
        options: Options of the controller; `when_stream_ends` decides, and for ``settle`` the
            distance and the angle between the two poses.
        T: (4, 4) T_base_tip of the command in the first cycle after the end of the stream.
        T_last: (4, 4) T_base_tip, the last pose of the stream.
        silence: Time from the arrival of the last pose to that cycle [s]. Above twice
            `target_timeout` no cycle noticed the end, because the loop stood still: ``settle``
            then stops, since the last pose is old.
        length_unit: Units of the poses' lengths in a metre.
    """
    if options.when_stream_ends in (STOP, FINISH):
        return STOPPING if options.when_stream_ends == STOP else ""
    if silence > 2.0 * options.target_timeout:
        return f"the loop stood still, and the last pose is {elapsed(silence)} old"
    left = difference(T, T_last)
    distance, angle = (float(np.linalg.norm(part)) for part in (left[:3] / length_unit, left[3:]))
    if distance <= options.settle_distance and angle <= options.settle_angle:
        return ""
    return (
        f"the last pose is {distance:.3g} m and {angle:.3g} rad away, and when_stream_ends is "
        f"'settle' up to settle_distance = {options.settle_distance:g} m and settle_angle = "
        f"{options.settle_angle:g} rad"
    )
