"""Where a solver starts after its first attempt: at random within the limits."""

from dls_ik.core.types import Starts
from dls_ik.model.robot import RobotModel


def random_starts(robot: RobotModel) -> Starts:
    """Uniform starts within the limits; within a turn or +-pi m where there is no limit."""
    return Starts(*robot.finite_limits(), robot.continuous)
