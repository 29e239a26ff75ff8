"""Joint values to begin with, where nobody says otherwise."""

from functools import lru_cache

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel

SINGULAR = 0.05  # least by greatest singular value, below which an arm is bent
MOST_JOINTS = 60  # of an arm that is bent: the work grows with their square
STEPS = np.linspace(1.8, -1.8, 19)  # [rad] that are tried of each joint, the first of equals
ROUNDS = 3  # over all joints
DAMPING = 0.02  # of singular values, so that those of 0 count as well
NEARNESS = 0.1  # [1/rad^2] how much the way from 0 counts beside the logarithm of manipulability
INSIDE = 0.1  # of a range, which is kept from its ends


@lru_cache(maxsize=8)
def ready_configuration(robot: RobotModel) -> Array:
    """Joint values (n,) [rad or m], read-only: 0, or the limit next to it.

    Where that is near a singularity revolute joints are bent, one after the other, by what makes
    the arm move well in all directions, and no farther; the same each time.
    """
    q = robot.clip(np.zeros(robot.n))
    J = robot.jacobian(q)
    unit = max(float(np.abs(J[:3]).max()), 1e-6)  # [m/rad] so that rows of both kinds compare
    if robot.n <= MOST_JOINTS and _conditioning(_scaled(J[None], unit))[0] < SINGULAR:
        q = _bent(robot, q, unit)
    q.flags.writeable = False
    return q


def _bent(robot: RobotModel, q0: Array, unit: float) -> Array:
    lower, upper = robot.finite_limits()
    edge = INSIDE * (upper - lower)
    prismatic = set(robot.chain.variable[robot.chain.prismatic].tolist())
    q = q0
    for _ in range(ROUNDS):
        before = q
        for j in set(range(robot.n)) - prismatic:
            tried = np.repeat(q[None], len(STEPS) + 1, axis=0)  # (b, n)
            tried[1:, j] = np.clip(q0[j] + STEPS, lower[j] + edge[j], upper[j] - edge[j])
            q = tried[np.argmax(_merit(robot, tried, q0, unit))]
        if np.array_equal(q, before):
            break
    return q.copy()


def _merit(robot: RobotModel, q: Array, q0: Array, unit: float) -> Array:
    """(b,) of joint values (b, n)."""
    s = np.linalg.svd(_scaled(robot.jacobian(q), unit), compute_uv=False)
    merit: Array = np.log(s + DAMPING).sum(axis=1) - NEARNESS * ((q - q0) ** 2).sum(axis=1)
    return merit.round(9)  # of equals the first, on all machines


def _scaled(J: Array, unit: float) -> Array:
    """Jacobians (b, 6 k, n) whose linear rows are without a unit."""
    rows = np.arange(J.shape[1]) % 6 < 3
    return np.where(rows[:, None], J / unit, J)


def _conditioning(J: Array) -> Array:
    """(b,) least by greatest singular value."""
    s = np.linalg.svd(J, compute_uv=False)
    ratio: Array = s[:, -1] / s[:, 0]
    return ratio
