"""Measures of a sample: their live plots, joint bars and colours, and their recording as CSV."""

import csv
import io
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np

from dls_ik.core.limits import activation
from dls_ik.core.types import Array
from dls_ik.model.analysis import singular_values
from dls_ik.model.robot import RobotModel
from dls_ik.solver.options import SolverOptions
from dls_ik.viewer.shapes import Colour, wxyz_from_pose
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
    s = singular_values(robot, sample.q[None])[0]
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


# Colours

FIRST: Colour = (37, 99, 235)  # the arm of the first method, in plots and legend
SECOND: Colour = (234, 88, 12)  # the second one, its ghost too
ARM_COLOURS = (FIRST, SECOND)
GREEN: Colour = (22, 163, 74)
AMBER: Colour = (245, 158, 11)
RED: Colour = (220, 38, 38)
NEAR_LIMIT, AT_LIMIT = 0.15, 0.05  # share of the range that is left to the nearest limit


def css(colour: Colour) -> str:
    """Format a colour for a style sheet."""
    return f"rgb{colour}"


def limit_colour(q: float, lower: float, upper: float) -> Colour:
    """Return green for a joint away from its limits or without one, amber near one, red at it."""
    width = upper - lower
    distance = min(q - lower, upper - q)
    if not np.isfinite(width):
        return GREEN
    if distance < AT_LIMIT * width or width <= 0.0:
        return RED
    return AMBER if distance < NEAR_LIMIT * width else GREEN


# Live plots: the last seconds, a line for each arm

PLOT_HEIGHT = 128  # [px]


class Plots:
    """Shows the curves of one arm or two, in tabs of viser by the names in ``CURVES``."""

    def __init__(self, gui: Any, tabs: Mapping[str, Any], arms: int) -> None:
        self.arms = arms
        self._handles = []
        for i, curve in enumerate(CURVES):
            with tabs[curve.tab]:
                self._handles.append(_plot(gui, curve, CurveHistory().data(i, arms)))

    def show(self, history: CurveHistory) -> None:
        """Draw the curves."""
        for i, handle in enumerate(self._handles):
            handle.data = history.data(i, self.arms)

    def remove(self) -> None:
        """Remove the plots from the page."""
        for handle in self._handles:
            handle.remove()


def _plot(gui: Any, curve: Curve, data: tuple[Array, ...]) -> Any:
    lines = [
        {"label": name, "stroke": css(colour), "width": 1.6}
        for name, colour in zip("AB", ARM_COLOURS, strict=True)
    ]
    top = {"pad": 0.1, "soft": curve.scale, "mode": 1}
    bottom = {"pad": 0.0, "soft": 0.0, "mode": 1}
    return gui.add_uplot(
        data,
        ({"label": "s"}, *lines[: len(data) - 1]),
        title=curve.title,
        scales={
            "x": {"time": False, "range": [-SECONDS, 0.0]},
            "y": {"range": {"min": bottom, "max": top}},
        },
        axes=({"size": 26}, {"size": 46}),
        legend={"show": False},
        height=PLOT_HEIGHT,
        padding=(8, 12, 0, 0),
    )


# Joint bars: the position of each joint between its limits, as HTML

BAR_ROW = (
    "<div style='display:flex;align-items:center;height:17px;font-size:11px'>"
    "<span style='width:74px;overflow:hidden;text-overflow:ellipsis;white-space:nowrap' "
    "title='{name}'>{name}</span>"
    "<span style='position:relative;flex:1;height:9px;border-radius:3px;overflow:hidden;"
    "background:{background}'>{marks}</span>"
    "<span style='width:56px;text-align:right;font-variant-numeric:tabular-nums'>{value}</span>"
    "</div>"
)
MARK = (
    "<span style='position:absolute;left:calc({left:.1f}% - 2px);top:0;width:5px;height:9px;"
    "background:{colour};{edge}'></span>"
)
NO_LIMITS = "#e5e7eb"


def joint_bars(robot: RobotModel, qs: Sequence[Array]) -> str:
    """Format a row for each joint, the second arm's mark translucent.

    Args:
        qs: (n,) of each arm.
    """
    rows = [_bar_row(robot, j, [float(q[j]) for q in qs]) for j in range(robot.n)]
    return f"<div style='max-height:340px;overflow-y:auto;padding:2px 10px'>{''.join(rows)}</div>"


def _bar_row(robot: RobotModel, j: int, values: list[float]) -> str:
    name, lower, upper = robot.joint_names[j], float(robot.lower[j]), float(robot.upper[j])
    marks = [_mark(i, value, lower, upper) for i, value in enumerate(values)]
    if robot.units[j] == "m":
        text = f"{1000.0 * values[0]:.0f} mm"
    else:
        text = f"{np.degrees(values[0]):.1f}&deg;"
    return BAR_ROW.format(
        name=escape(name),
        background=_bands() if np.isfinite(upper - lower) else NO_LIMITS,
        marks="".join(reversed(marks)),  # the first arm's on top
        value=text,
    )


def _mark(arm: int, value: float, lower: float, upper: float) -> str:
    if np.isfinite(upper - lower):
        share = (value - lower) / max(upper - lower, 1e-12)
    else:
        share = 0.5 + np.arctan(value) / np.pi  # maps all real numbers to 0 to 1
    colour = limit_colour(value, lower, upper) if arm == 0 else SECOND
    edge = "border-radius:1px" if arm == 0 else "opacity:0.6"
    return MARK.format(left=100.0 * float(np.clip(share, 0, 1)), colour=css(colour), edge=edge)


def _bands() -> str:
    """Return the background of a bar: grey, with amber and red bands at both ends."""
    red, amber = (f"rgba{(*colour, 0.28)}" for colour in (RED, AMBER))
    at, near = 100 * AT_LIMIT, 100 * NEAR_LIMIT
    return (
        f"linear-gradient(90deg,{red} 0 {at:g}%,{amber} {at:g}% {near:g}%,"
        f"{NO_LIMITS} {near:g}% {100 - near:g}%,"
        f"{amber} {100 - near:g}% {100 - at:g}%,{red} {100 - at:g}%)"
    )


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
    joints = [*zip(robot.joint_names, robot.units, strict=True)]
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
