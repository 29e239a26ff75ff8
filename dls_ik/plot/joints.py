"""Joint positions over time, each inside the band of its limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.plot.bands import Band, draw_bands
from dls_ik.plot.canvas import motion, short, unit_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def joint_bands(
    robot: RobotModel,
    times: ArrayLike,
    q: ArrayLike,
    title: str = "Joint positions and their limits",
) -> Figure:
    """One panel for each joint: its position, and what its limits forbid, shaded.

    Args:
        robot: whose joints and limits.
        times: (k,) [s].
        q: (k, n) [rad or m].
        title: what the picture says as a whole.

    Raises:
        JointValueError: values that do not fit the robot or each other.
        DlsIkError: matplotlib is not installed.
    """
    t, values = motion(robot, times, q)
    bands = [_band(robot, i, values[:, i]) for i in range(robot.n)]
    return draw_bands(t, bands, title, "position of the joint")


def _band(robot: RobotModel, i: int, values: Array) -> Band:
    lower, upper, unit = float(robot.lower[i]), float(robot.upper[i]), unit_of(robot, i)
    note = _closest(lower, upper, values, unit)
    return Band(robot.joint_names[i], unit, lower, upper, values, note)


def _closest(lower: float, upper: float, values: Array, unit: str) -> str:
    """How near the joint came to a limit, in words."""
    rooms = {"lower": values.min() - lower, "upper": upper - values.max()}
    side, room = min(rooms.items(), key=lambda item: item[1])
    if not np.isfinite(room):
        return "no limits"
    if room < 0.0:
        return f"{short(-room)} {unit} BEYOND {side} limit"
    return f"{short(room)} {unit} from {side} limit"
