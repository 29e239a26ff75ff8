"""Measures of a sample, and their recording as CSV."""

import csv
import io
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from dls_ik.core.limits.ctp import activation
from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.solver.options import SolverOptions
from dls_ik.viewer.poses import wxyz_of
from dls_ik.viewer.source import Sample

DEFAULTS = SolverOptions()
# A recording as CSV: a row for each arm at each step, units in the header
POSE = ("x [m]", "y [m]", "z [m]", "qw", "qx", "qy", "qz")
MOST_ROWS = 500_000  # then it stops by itself


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


def header(robot: RobotModel) -> list[str]:
    """Names of the columns."""
    units = ["m" if kind == "prismatic" else "rad" for kind in _kinds(robot)]
    joints = [*zip(robot.joint_names, units, strict=True)]
    return [
        "time [s]",
        "arm",
        "state",
        *(f"q {name} [{unit}]" for name, unit in joints),
        *(f"v {name} [{unit}/s]" for name, unit in joints),
        *(f"tip {column}" for column in POSE),
        *(f"target {column}" for column in POSE),
        "position error [m]",
        "rotation error [rad]",
        "least singular value",
        "condition number",
        *(f"h {name}" for name in robot.joint_names),
    ]


def row(arm: str, sample: Sample, measures: Measures) -> list[Any]:
    """The values of an arm; empty where there is no target."""
    numbers = [
        *sample.q,
        *sample.velocity,
        *_pose(sample.T_tip),
        *_pose(sample.T_target),
        sample.position_error,
        sample.rotation_error,
        measures.least_singular_value,
        measures.condition,
        *measures.activation,
    ]
    cells = ["" if np.isnan(number) else f"{number:.9g}" for number in numbers]
    return [f"{sample.time:.4f}", arm, sample.state, *cells]


class Recording:
    """Rows until it is ended."""

    def __init__(self, robot: RobotModel) -> None:
        self._text = io.StringIO(newline="")
        self._writer = csv.writer(self._text)
        self._writer.writerow(header(robot))
        self.rows = 0

    @property
    def is_full(self) -> bool:
        """Whether it takes no more."""
        return self.rows >= MOST_ROWS

    def add(self, arms: Iterable[tuple[str, Sample, Measures]]) -> None:
        """A row for each arm."""
        for arm in arms:
            self._writer.writerow(row(*arm))
            self.rows += 1

    def content(self) -> bytes:
        """The file."""
        return self._text.getvalue().encode()


def _kinds(robot: RobotModel) -> list[str]:
    return [robot.tree.joint[name].kind for name in robot.joint_names]


def _pose(T: Array | None) -> list[float]:
    return [np.nan] * len(POSE) if T is None else [*T[:3, 3], *wxyz_of(T)]
