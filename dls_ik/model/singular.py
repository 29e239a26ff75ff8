"""Singular configurations, looked for by going downhill on the least singular value.

The value falls to zero where the Jacobian loses rank. With its gradient g, u' dJ/dq v of the
singular vectors, a step of value / |g|^2 along -g is Newton's where the value crosses zero, and
Polyak's where it has a cone there.
"""

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.conditioning import VANISHING, scaled_jacobians
from dls_ik.model.robot import RobotModel

ROUNDS = 80
STEP = 1e-5  # [rad or m] of differences
LONGEST = 0.5  # [rad or m] step of all joints


def relative(robot: RobotModel, q: Array, rank: int) -> Array:
    """(b,) the singular value of that number as a share of the largest one, at q (b, n)."""
    s = np.linalg.svd(scaled_jacobians(robot, q), compute_uv=False)
    shares: Array = s[:, rank - 1] / s[:, 0]
    return shares


def descend(robot: RobotModel, starts: Array, rank: int, moving: Array | None = None) -> Array:
    """Where the least singular value leads to from each start, within the limits.

    Args:
        starts: (b, n).
        rank: which singular value counts as the least one, from 1.
        moving: (n,) 1 for joints that may move, 0 for others; default: all.

    Returns:
        (b, n).
    """
    q, mask = starts.copy(), np.ones(robot.n) if moving is None else moving
    for _ in range(ROUNDS):
        active = np.flatnonzero(relative(robot, q, rank) > 1e-3 * VANISHING)
        if not len(active):
            break
        q[active] = _step(robot, q[active], rank, mask)
    return q


def _step(robot: RobotModel, q: Array, rank: int, mask: Array) -> Array:
    U, S, Vt = np.linalg.svd(scaled_jacobians(robot, q))
    value, u, v = S[:, rank - 1], U[:, :, rank - 1], Vt[:, rank - 1]
    g = _gradients(robot, q, u, v) * mask
    blocked = ((q <= robot.lower) & (g > 0.0)) | ((q >= robot.upper) & (g < 0.0))
    g[blocked] = 0.0
    squared = (g * g).sum(axis=1)
    length = np.divide(value, squared, out=np.zeros_like(value), where=squared > 1e-24)
    length = np.minimum(length, LONGEST / np.sqrt(np.maximum(squared, 1e-24)))
    moved: Array = np.clip(q - length[:, None] * g, robot.lower, robot.upper)
    return moved


def _gradients(robot: RobotModel, q: Array, u: Array, v: Array) -> Array:
    """(b, n) slopes of the singular value that u (b, 6) and v (b, n) belong to."""
    b, n = q.shape
    shifts = STEP * np.eye(n)
    ahead, behind = q[:, None] + shifts, q[:, None] - shifts  # (b, n, n)
    after, before = (scaled_jacobians(robot, each.reshape(-1, n)) for each in (ahead, behind))
    slopes = (after - before).reshape(b, n, 6, n) / (2.0 * STEP)
    gradients: Array = np.einsum("bi,bkij,bj->bk", u, slopes, v)
    return gradients
