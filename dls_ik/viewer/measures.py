"""Measures of a sample: their history for the plots, and their recording as CSV."""

import csv
import io
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dls_ik.core.limits import activation
from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.solver.options import SolverOptions
from dls_ik.viewer.shapes import wxyz_from_pose
from dls_ik.viewer.source import Sample

DEFAULTS = SolverOptions()


class Measures(NamedTuple):
    """Measures of one configuration."""

    least_singular_value: float  # of the Jacobian, its rotation rows scaled as in the solver
    condition: float  # greatest by least singular value; infinite at a singularity
    activation: Array  # (n,) h of CTP: 0 free to 1 at a limit
    speed: float  # largest of all joints [rad/s or m/s]


def measure(robot: RobotModel, sample: Sample, margin: float = DEFAULTS.margin) -> Measures:
    """Measure a sample.

    Args:
        margin: option of CTP, the share of a joint's range that counts as near its limit.
    """
    J = robot.jacobian(sample.q)
    J[3:] *= DEFAULTS.rotation_weight
    s = np.linalg.svd(J, compute_uv=False)
    least = float(s[-1])
    condition = float(s[0]) / least if least > 0.0 else np.inf
    rows = zip(sample.q, robot.lower, robot.upper, strict=True)
    h = np.array([activation(value, low, high, margin) for value, low, high in rows])
    return Measures(least, condition, h, float(np.abs(sample.velocity).max()))


def velocity_ellipsoid(robot: RobotModel, q: Array) -> tuple[Array, Array]:
    """Return the ellipsoid of tip velocities for joint velocities of norm 1.

    Returns:
        Axes (3, 3), the columns of a rotation, and half-lengths (3,) [m/s], the singular values of
        the linear rows of the Jacobian.
    """
    U, s, _ = np.linalg.svd(robot.jacobian(q)[:3])
    U[:, 2] *= np.sign(np.linalg.det(U))
    lengths = np.zeros(3)
    lengths[: len(s)] = s
    return U, lengths


# History of the plotted curves

SECONDS, MAX_POINTS = 10.0, 250  # of a curve
MAX_CONDITION = 1e6  # a larger condition number is drawn there
MOTION, CONDITIONING = "Motion", "Conditioning"  # tabs of the page


class Curve(NamedTuple):
    """A plotted quantity."""

    tab: str
    title: str
    value: Callable[[Sample, Measures], float]
    scale: float = 1.0  # the top of the axis is not lower
    worst: Callable[..., Any] = np.fmax  # of two values within one point of the curve


CURVES = (
    Curve(MOTION, "position error [mm]", lambda s, m: 1e3 * s.position_error, 5.0),
    Curve(MOTION, "rotation error [deg]", lambda s, m: float(np.degrees(s.rotation_error))),
    Curve(MOTION, "fastest joint [rad/s or m/s]", lambda s, m: m.speed),
    Curve(CONDITIONING, "least singular value", lambda s, m: m.least_singular_value, 0.1, np.fmin),
    Curve(
        CONDITIONING,
        "condition number [log10]",
        lambda s, m: float(np.log10(min(m.condition, MAX_CONDITION))),
    ),
    Curve(CONDITIONING, "activation h of CTP, largest", lambda s, m: float(m.activation.max())),
)


class CurveHistory:
    """Keeps the last seconds of all curves for some arms, on one time axis."""

    def __init__(self) -> None:
        self._rows: deque[list[float]] = deque(maxlen=MAX_POINTS)
        self._row_ends = -np.inf  # [s]

    def add(self, time: float, arms: Sequence[tuple[Sample, Measures]]) -> None:
        """Add the values of all arms at a time [s].

        A row covers SECONDS / MAX_POINTS and has the worst value of it, so that no peak is lost.
        """
        values = [curve.value(*arm) for curve in CURVES for arm in arms]
        if self._rows and len(self._rows[-1]) != 1 + len(values):
            self.clear()
        if time < self._row_ends:
            curves = [curve for curve in CURVES for _ in arms]
            last = zip(curves, self._rows[-1][1:], values, strict=True)
            values = [float(curve.worst(before, now)) for curve, before, now in last]
            self._rows.pop()
        else:
            self._row_ends = time + 0.99 * SECONDS / MAX_POINTS
        self._rows.append([time, *values])

    def clear(self) -> None:
        """Remove all rows."""
        self._rows.clear()
        self._row_ends = -np.inf

    def data(self, curve: int, arms: int) -> tuple[Array, ...]:
        """Return the times [s] before now and the lines of a curve, (k,) each."""
        if len(self._rows) < 2 or len(self._rows[-1]) != 1 + len(CURVES) * arms:
            return (np.array([-SECONDS, 0.0]), *np.full((arms, 2), np.nan))
        table = np.array(self._rows)
        first = 1 + curve * arms
        return (table[:, 0] - table[-1, 0], *table[:, first : first + arms].T)


# Recording as CSV: a row for each arm at each step, units in the header

POSE_COLUMNS = ("x [m]", "y [m]", "z [m]", "qw", "qx", "qy", "qz")
MAX_ROWS = 500_000


class CsvRecorder:
    """Writes a row for each arm and step, at most MAX_ROWS."""

    def __init__(self, robot: RobotModel) -> None:
        self._text = io.StringIO(newline="")
        self._writer = csv.writer(self._text)
        self._writer.writerow(csv_header(robot))
        self.rows = 0

    def add(self, arms: Iterable[tuple[str, Sample, Measures]]) -> None:
        """Write a row for each arm: its name, sample and measures."""
        if self.rows >= MAX_ROWS:
            return
        for arm in arms:
            self._writer.writerow(_csv_row(*arm))
            self.rows += 1

    def content(self) -> bytes:
        """Return the file."""
        return self._text.getvalue().encode()


def csv_header(robot: RobotModel) -> list[str]:
    """Return the names of the columns."""
    kinds = [robot.tree.joint[name].kind for name in robot.joint_names]
    units = ["m" if kind == "prismatic" else "rad" for kind in kinds]
    joints = [*zip(robot.joint_names, units, strict=True)]
    return [
        "time [s]",
        "arm",
        "state",
        *(f"q {name} [{unit}]" for name, unit in joints),
        *(f"v {name} [{unit}/s]" for name, unit in joints),
        *(f"tip {column}" for column in POSE_COLUMNS),
        *(f"target {column}" for column in POSE_COLUMNS),
        "position error [m]",
        "rotation error [rad]",
        "least singular value",
        "condition number",
        *(f"h {name}" for name in robot.joint_names),
    ]


def _csv_row(arm: str, sample: Sample, measures: Measures) -> list[str]:
    """Format the values of an arm; cells without a value, as of a missing target, are empty."""
    numbers = [
        *sample.q,
        *sample.velocity,
        *_pose_cells(sample.T_tip),
        *_pose_cells(sample.T_target),
        sample.position_error,
        sample.rotation_error,
        measures.least_singular_value,
        measures.condition,
        *measures.activation,
    ]
    cells = ["" if np.isnan(number) else f"{number:.9g}" for number in numbers]
    return [f"{sample.time:.4f}", arm, sample.state, *cells]


def _pose_cells(T: Array | None) -> list[float]:
    return [np.nan] * len(POSE_COLUMNS) if T is None else [*T[:3, 3], *wxyz_from_pose(T)]
