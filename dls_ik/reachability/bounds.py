"""A ball that no pose of the tip can leave, from the lengths of the chain alone."""

from typing import NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel


class Ball(NamedTuple):
    """All points within a distance of a centre, in the base frame."""

    centre: Array  # (3,) [m]
    radius: float  # [m]


def reach_ball(robot: RobotModel) -> Ball:
    """The ball that holds every position of the tip, whatever the joints do within their limits.

    Built from the tip to the base: turning about an axis moves the centre onto that axis and adds
    its distance from there to the radius; sliding moves it to mid-range and adds half the range.
    For an arm with a shoulder the centre is the shoulder, at its height above the base.
    """
    chain = robot.chain
    centre, radius = chain.fixed[-1, :, 3].copy(), 0.0
    for i in range(len(chain.prismatic) - 1, -1, -1):
        if chain.prismatic[i]:
            middle, half = _range(robot, i)
            centre[2] += middle
            radius += half
        else:
            radius += float(np.hypot(centre[0], centre[1]))
            centre[:2] = 0.0
        centre = chain.fixed[i, :, :3] @ centre + chain.fixed[i, :, 3]
    return Ball(centre, radius)


def _range(robot: RobotModel, i: int) -> tuple[float, float]:
    """Middle and half of the range of a prismatic element [m]; its limits are always finite."""
    chain, variable = robot.chain, robot.chain.variable[i]
    middle = (chain.lower[variable] + chain.upper[variable]) / 2.0
    half = (chain.upper[variable] - chain.lower[variable]) / 2.0
    return float(chain.scale[i] * middle + chain.offset[i]), float(abs(chain.scale[i]) * half)
