"""A configuration to begin with: away from singularities and limits."""

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.viewer.measures import DEFAULTS

TRIED, SEED = 400, 7


def comfortable(robot: RobotModel) -> Array:
    """Joint values (n,) [rad or m] where the arm moves well; the same each time."""
    q = _candidates(robot)
    J = robot.jacobian(q)
    J[:, 3:] *= DEFAULTS.rotation_weight
    least = np.linalg.svd(J, compute_uv=False)[:, -1]
    best: Array = q[np.argmax(least * (0.2 + _front(robot, q)))]
    return best


def _candidates(robot: RobotModel) -> Array:
    """(b, n) in the middle of the ranges, and where there is no range about 0."""
    lower, upper = robot.finite_limits()
    middle = np.where(robot.limited, 0.5 * (lower + upper), 0.0)
    spread = 0.3 * np.minimum(upper - lower, np.pi)
    rng = np.random.default_rng(SEED)
    return robot.clip(middle + spread * rng.uniform(-1.0, 1.0, (TRIED, robot.n)))


def _front(robot: RobotModel, q: Array) -> Array:
    """How much a tip is in front, from 0 to 1 (b,): an arm is seen best so."""
    x = robot.fk(q)[:, 0, 3]
    share: Array = (x - x.min()) / max(float(np.ptp(x)), 1e-9)
    return share
