"""How many directions of the tip the joints move, and how well, over random configurations."""

from typing import NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel

LENGTH = 0.5  # [m/rad] by which rotations count, as the solver's rotation weight
VANISHING = 1e-7  # share of the largest singular value below which one counts as zero
SAMPLES = 1000


class Conditioning(NamedTuple):
    """Singular values of the Jacobian of one tip, rotations times LENGTH."""

    rank: int  # at almost every configuration
    least: Array  # (b,) the smallest one that does not always vanish
    condition: Array  # (b,) the largest one divided by it


def scaled_jacobians(robot: RobotModel, q: Array) -> Array:
    """(b, 6, n) of the first tip at configurations (b, n), rotations times LENGTH."""
    J = robot.jacobian(q)[:, :6]
    scaled: Array = J * np.array([1.0, 1.0, 1.0, LENGTH, LENGTH, LENGTH])[:, None]
    return scaled


def conditioning(robot: RobotModel, samples: int = SAMPLES, random_seed: int = 0) -> Conditioning:
    """Measure it at configurations uniform within the limits."""
    q = robot.random(np.random.default_rng(random_seed), samples)
    s = np.linalg.svd(scaled_jacobians(robot, q), compute_uv=False)
    rank = int((s > VANISHING * s[:, :1]).sum(axis=1).max())
    least: Array = s[:, rank - 1].astype(np.float64)
    return Conditioning(rank, least, s[:, 0] / np.maximum(least, np.finfo(float).tiny))
