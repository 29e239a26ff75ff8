"""A dozen poses for the WAM: eight that it reaches, and four that it provably does not.

A reachable pose is the forward kinematics of joint values within the limits. An unreachable one
asks for a place of the wrist (the point where the axes of the last three joints meet, 60 mm behind
the tip) that the first four joints cannot bring it to.
"""

from math import pi
from typing import NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.rigid import rotation_from_z, transform
from dls_ik.model.robot import RobotModel

# Elbow bent, tool straight down: the seed of every request, and the centre of the figure of eight.
HOME = (0.0, 0.5, 0.0, 1.7, 0.0, pi - 2.2, 0.0)

TOOL = 0.06  # [m] from wrist to tip
# Greatest distance from shoulder to wrist: both arms' lengths, each over its offset of 45 mm.
REACH = float(np.hypot(0.55, 0.045) + np.hypot(0.3, 0.045))  # [m]


class Pose(NamedTuple):
    """A pose to ask for, and what to expect."""

    name: str  # in plain words
    T: Array  # (4, 4) T_base_tip
    reachable: bool


_REACHABLE = {
    "above the table, tool down": (0.5, 0.4, 0.0, 1.9, 0.0, pi - 2.3, 0.0),
    "to the right and low, tool down": (-0.9, 1.1, 0.0, 1.3, 0.0, pi - 2.4, 0.3),
    "to the left, tool outwards": (1.2, 0.4, 0.2, 1.9, -0.3, -0.6, 0.5),
    "overhead": (0.3, -0.2, 0.1, 0.5, -0.4, 0.3, -0.2),
    "behind, waist at its limit": (2.59, 0.8, -0.3, 1.5, 0.2, 0.5, 0.0),
    "arm stretched, 1 mm to spare": (-0.4, 1.2, 0.3, 0.131, 0.2, 0.3, 0.0),
    "forearm folded on upper arm": (0.6, -0.3, 0.4, 3.09, 0.5, -0.9, 1.0),
    "all wrist joints at limits": (-0.3, 0.6, 0.2, 1.4, -4.79, 1.59, 2.19),
}

# Where the wrist would have to be [m], and where the tool points.
_UNREACHABLE = {
    "1 cm beyond the stretched arm": ((REACH + 0.01) * np.array([0.8, 0.0, 0.6]), (0.8, 0.0, 0.6)),
    "near enough, but tool turned back": ((REACH + 0.03, 0.0, 0.0), (-1.0, 0.0, 0.0)),
    "inside its own shoulder": ((0.0, 0.0, 0.0), (0.0, 0.0, 1.0)),
    "straight down through its base": ((0.0, 0.0, -0.8), (0.0, 0.0, -1.0)),
}


def poses(robot: RobotModel) -> list[Pose]:
    """The poses, in the order in which they are asked for."""
    reachable = [Pose(name, robot.fk(q), True) for name, q in _REACHABLE.items()]
    unreachable = [
        Pose(name, _with_wrist_at(np.array(wrist), np.array(tool)), False)
        for name, (wrist, tool) in _UNREACHABLE.items()
    ]
    return reachable + unreachable


def _with_wrist_at(wrist: Array, tool: Array) -> Array:
    return transform(rotation_from_z(tool), wrist + TOOL * tool)
