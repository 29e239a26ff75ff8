"""Where a solver starts after its first attempt: at random within the limits."""

import numpy as np

from dls_ik.core.types import Array, Indices, Starts
from dls_ik.model.robot import RobotModel


def random_starts(robot: RobotModel, joint_weights: Array, keeps_limits: bool) -> Starts:
    """Uniform starts within the limits; within a turn or +-pi m where there is no limit.

    Args:
        keeps_limits: whether answers lie within them; else a turn would bring some of those back
            that a published method leaves outside.
    """
    turning = _turning(robot) * (keeps_limits | robot.continuous)
    return Starts(*robot.finite_limits(), turning, joint_weights)


def _turning(robot: RobotModel) -> Indices:
    """(n,) 1 for those of which a whole turn makes no difference to the pose."""
    chain = robot.chain
    whole = np.ones(robot.n, np.int64)
    whole[chain.variable[chain.prismatic | (chain.scale % 1.0 != 0.0)]] = 0
    return whole
