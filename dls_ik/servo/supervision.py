"""Whether the arm does what it is told, by what is measured."""

import math

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.servo.options import ControllerOptions


def fault(
    robot: RobotModel, options: ControllerOptions, measured: Array | None, command: Array
) -> str:
    """What is wrong, or an empty text.

    Args:
        measured: (n,) None: there is no measurement, or none that is fresh.
        command: (n,) of the last cycle.
    """
    if measured is None:
        return f"no joint states came for {options.measurement_timeout:g} s"
    deviation = np.abs(measured - command)
    turns = robot.continuous  # drivers may count whole turns or not
    deviation[turns] = np.abs(np.remainder(deviation[turns] + math.pi, 2 * math.pi) - math.pi)
    worst = int(np.argmax(deviation))
    if deviation[worst] <= options.max_deviation:
        return ""
    return (
        f"joint {robot.joint_names[worst]!r} is at {measured[worst]:.4g}, commanded to "
        f"{command[worst]:.4g}: apart by more than max_deviation = {options.max_deviation:g}"
    )
