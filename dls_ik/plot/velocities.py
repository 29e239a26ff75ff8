"""Joint velocities over time, each inside the band of its limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from dls_ik.core.types import Array
from dls_ik.errors import JointValueError
from dls_ik.model.robot import RobotModel
from dls_ik.plot.bands import Band, draw_bands
from dls_ik.plot.canvas import motion, short, unit_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def joint_velocities(
    robot: RobotModel,
    times: ArrayLike,
    q: ArrayLike,
    velocity: ArrayLike | None = None,
    title: str = "Joint velocities and their limits",
) -> Figure:
    """One panel for each joint: its velocity, and what its limit forbids, shaded.

    Args:
        robot: whose joints and velocity limits.
        times: (k,) [s].
        q: (k, n) [rad or m].
        velocity: (k, n) [rad/s or m/s] where it is known; default: the mean velocity from one
            instant to the next, drawn as steps.
        title: what the picture says as a whole.

    Raises:
        JointValueError: values that do not fit the robot or each other; times that stand still,
            where the velocity is to be found from them.
        DlsIkError: matplotlib is not installed.
    """
    t, values = motion(robot, times, q)
    if velocity is None:
        t, speeds = _steps(t, values)
    else:
        speeds = robot.validated(velocity)
        if speeds.shape != values.shape:
            raise JointValueError(
                f"the velocity of joint values {values.shape} has that shape, not {speeds.shape}"
            )
    bands = [_band(robot, i, speeds[:, i]) for i in range(robot.n)]
    return draw_bands(t, bands, title, "velocity of the joint")


def _steps(t: Array, values: Array) -> tuple[Array, Array]:
    """Both ends (2 (k - 1),) of every interval, and the mean velocity in it."""
    length = np.diff(t)
    if not (length > 0.0).all():
        raise JointValueError("velocities are found from times that rise from each to the next")
    mean = np.diff(values, axis=0) / length[:, None]
    return np.repeat(t, 2)[1:-1], np.repeat(mean, 2, axis=0)


def _band(robot: RobotModel, i: int, values: Array) -> Band:
    limit, unit = float(robot.velocity[i]), f"{unit_of(robot, i)}/s"
    return Band(robot.joint_names[i], unit, -limit, limit, values, _most(limit, values, unit))


def _most(limit: float, values: Array, unit: str) -> str:
    """The greatest speed, in words."""
    top = float(np.abs(values).max())
    if not np.isfinite(limit):
        return f"at most {short(top)} {unit}, no limit"
    percent = 100.0 * top / limit
    if top > limit:
        return f"{short(percent, 3)} % of its limit: BEYOND"
    return f"at most {short(percent, 3)} % of its limit"
