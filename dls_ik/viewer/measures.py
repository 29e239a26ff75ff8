"""What is measured of a sample: how well the arm moves there, and how near its limits it is."""

from typing import NamedTuple

import numpy as np

from dls_ik.core.limits.ctp import activation
from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.solver.options import SolverOptions
from dls_ik.viewer.source import Sample

DEFAULTS = SolverOptions()


class Measures(NamedTuple):
    """Of one configuration."""

    least_singular_value: float  # of the Jacobian, its rotation rows scaled as the solver does
    condition: float  # greatest by least singular value; infinite at a singularity
    activation: Array  # (n,) h of CTP: 0 free to 1 at a limit
    speed: float  # largest of a joint [rad/s or m/s]


def measured(robot: RobotModel, sample: Sample, margin: float = DEFAULTS.margin) -> Measures:
    """Measure a sample.

    Args:
        margin: share of a joint's range that counts as near its limit, of CTP.
    """
    J = robot.jacobian(sample.q)
    J[3:] *= DEFAULTS.rotation_weight
    s = np.linalg.svd(J, compute_uv=False)
    least = float(s[-1])
    condition = float(s[0]) / least if least > 0.0 else np.inf
    rows = zip(sample.q, robot.lower, robot.upper, strict=True)
    h = np.array([activation(value, low, high, margin) for value, low, high in rows])
    return Measures(least, condition, h, float(np.abs(sample.velocity).max()))


def ellipsoid(robot: RobotModel, q: Array) -> tuple[Array, Array]:
    """The velocities of the tip for joint velocities of norm 1: axes (3, 3) and half-lengths (3,).

    The axes are the columns of a rotation; the half-lengths are the singular values of the linear
    rows of the Jacobian [m/s].
    """
    U, s, _ = np.linalg.svd(robot.jacobian(q)[:3])
    U[:, 2] *= np.sign(np.linalg.det(U))
    lengths = np.zeros(3)
    lengths[: len(s)] = s
    return U, lengths
