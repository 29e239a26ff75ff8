"""Where a solver starts: mid-range without a seed, then at random within the limits."""

from typing import NamedTuple

from dls_ik.core.types import Array, Starts
from dls_ik.model.robot import RobotModel


class RandomStarts(NamedTuple):
    """The bounds of random starts, and the seed that stands in for none."""

    arrays: Starts
    middle: Array  # (n,)


def random_starts(robot: RobotModel) -> RandomStarts:
    """Uniform starts within the limits; within a turn or +-pi m where there is no limit."""
    lower, upper = robot.finite_limits()
    return RandomStarts(Starts(lower, upper, robot.continuous), 0.5 * (lower + upper))
