# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""End of a pose stream: finish the motion to the last pose, or stop."""

import numpy as np

from dls_ik.core.se3 import difference
from dls_ik.core.types import Array
from dls_ik.servo.options import FINISH, STOP, ControllerOptions
from dls_ik.text import elapsed

FINISHING = "the stream has ended; finishing the motion to its last pose"


def stop_reason(
    options: ControllerOptions, T: Array, T_last: Array, age: float, length_unit: float = 1.0
) -> str:
    """Return the reason to stop the arm before it reaches the last pose of a stream that has ended.

    An empty string means that the arm must finish the motion to the last pose.

    Args:
        options: Options of the controller: `when_stream_ends`, `settle_distance`, `settle_angle`.
        T: (4, 4) T_base_tip of the command in the first cycle after the timeout.
        T_last: (4, 4) T_base_tip of the last pose of the stream.
        age: Time between the arrival of the last pose and the first cycle after the timeout [s]. An
            age above twice `target_timeout` means that the control loop did not run for some time;
            with ``settle`` the arm then stops, because the last pose is stale.
        length_unit: Length units of the poses per metre.
    """
    if options.when_stream_ends in (STOP, FINISH):
        return "when_stream_ends is 'stop'" if options.when_stream_ends == STOP else ""
    if age > 2.0 * options.target_timeout:
        return f"the loop stalled; the last pose is {elapsed(age)} old"
    left = difference(T, T_last)
    distance, angle = (float(np.linalg.norm(part)) for part in (left[:3] / length_unit, left[3:]))
    if distance <= options.settle_distance and angle <= options.settle_angle:
        return ""
    return (
        f"the last pose is {distance:.3g} m and {angle:.3g} rad away; when_stream_ends is "
        f"'settle', which allows settle_distance = {options.settle_distance:g} m and "
        f"settle_angle = {options.settle_angle:g} rad"
    )
