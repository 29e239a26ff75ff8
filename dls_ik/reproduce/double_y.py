"""The double-Y shape of Buss & Kim: the robot, its moving targets, and the methods they compare.

Buss & Kim 2004, section 5, figure 2; lengths there have no unit. The geometry is that of
urdf/double_y.urdf; the targets' paths and the bounds on steps are those of the published code.
"""

from math import pi
from typing import Any, NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model import RobotModel, share_file
from dls_ik.solver.stepper import Stepper
from dls_ik.solver.task import Task

TIPS = ("E0", "E1", "E2", "E3")
DEGREE = pi / 180.0

# x, y, z of each target: c + a sin(n T), as (c, a, n).
_PATHS = np.array(
    [
        [(2.0, 3.0, 3.0), (0.5, 0.4, 7.0), (0.3, 1.4, 5.0)],
        [(0.5, 0.8, 4.0), (0.4, 0.6, 4.0), (-0.2, 2.0, 3.0)],
        [(-0.5, 1.6, 6.0), (0.6, 0.4, 7.0), (0.3, 1.0, 8.0)],
        [(-1.6, 1.6, 4.0), (0.3, 0.6, 4.0), (-0.2, 0.6, 3.0)],
    ]
)


class Contestant(NamedTuple):
    """A method as the paper calls it, and as this package does."""

    name: str
    method: str
    options: dict[str, Any]


def load() -> RobotModel:
    """The robot: 25 joints without limits, 4 tips."""
    return RobotModel.from_urdf(share_file("urdf", "double_y.urdf"), tip=TIPS)


def targets(T: Array) -> Array:
    """Where the effectors should be: poses (t, 4, 4, 4), one a tip, at the instants T (t,)."""
    poses = np.tile(np.eye(4), (len(T), len(TIPS), 1, 1))
    center, reach, rate = np.moveaxis(_PATHS, 2, 0)
    poses[:, :, :3, 3] = center + reach * np.sin(rate * T[:, None, None])
    return poses


def distances(error: Array) -> Array:
    """How far each tip is from its target (s, 4), from the errors of a trace (s, 12)."""
    return np.asarray(np.linalg.norm(error.reshape(len(error), len(TIPS), 3), axis=2))


def stepper(robot: RobotModel, contestant: Contestant) -> Stepper:
    """The contestant in its zero position."""
    task = Task.position_only()
    q = np.zeros(robot.n)
    return Stepper(robot, contestant.method, q, task=task, **contestant.options)


def contestants(published: bool) -> dict[str, Contestant]:
    """The methods of section 5 by name, with the constants of the paper and of its code.

    Args:
        published: whether D_max compares with wrong rows of the last error, as the code does.
    """
    clamp: dict[str, Any] = {"D_max": 0.4, "adaptive": True, "bug_compatible": published}
    sdls = {"gamma_max": 45 * DEGREE, **clamp}
    turn = {"largest_change": 45 * DEGREE}
    few = {"largest_change": 30 * DEGREE}
    fewer = {"largest_change": 5 * DEGREE, "truncation": 0.01}
    listed = (
        Contestant("SDLS", "sdls+clamp", {**sdls, "soft": True}),
        Contestant("SDLS hard", "sdls+clamp", sdls),
        Contestant("DLS", "dls+max", {"lambda_": 1.1, **turn}),
        Contestant("DLS 0.6", "dls+max", {"lambda_": 0.6, **turn}),
        Contestant("DLS'", "dls+clamp+max", {"lambda_": 0.7, **turn, **clamp}),
        Contestant("DLS*", "dls+clamp+max", {"lambda_": 1.1, **turn, **clamp}),
        Contestant("J^T", "jt+max", few),
        Contestant("pinv", "tpinv+max", fewer),
    )
    return {contestant.name: contestant for contestant in listed}
