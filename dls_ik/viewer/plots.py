# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Live plots, joint bars and CSV recordings of measures of the arms, such as condition numbers."""

import csv
import io
import threading
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

DEFAULT_OPTIONS = SolverOptions()


class Measures(NamedTuple):
    """Conditioning, limit activation and joint speed of an arm at one time."""

    # (k,) singular values of the task Jacobian with scaled rotation rows, in descending order
    singular_values: Array
    least_singular_value: float  # smallest of `singular_values`
    condition: float  # ratio of largest to smallest singular value; infinite at a singularity
    activation: Array  # (n,) limit activation h of CTP: 0 far from limits, 1 at a limit
    speed: float  # speed of the fastest joint [rad/s or m/s]


def measure(robot: RobotModel, sample: Sample, margin: float = DEFAULT_OPTIONS.margin) -> Measures:
    """Compute conditioning, limit activation and joint speed for a state of an arm.

    Args:
        robot: Robot.
        sample: State of the arm.
        margin: Option `margin` of the method CTP: share of a joint's range, next to each limit, in
            which the limit activation is above 0.
    """
    if sample.J is None:
        s = singular_values(robot, sample.q[None])[0]
    else:
        s = np.linalg.svd(sample.J, compute_uv=False)
    least = float(s[-1])
    condition = float(s[0]) / least if least > 0.0 else np.inf
    rows = zip(sample.q, robot.lower, robot.upper, strict=True)
    h = np.array([activation(value, low, high, margin) for value, low, high in rows])
    return Measures(s, least, condition, h, float(np.abs(sample.velocity).max()))


def velocity_ellipsoid(robot: RobotModel, q: Array) -> tuple[Array, Array]:
    """Return the ellipsoid of linear tip velocities for joint velocities of norm 1 at q (n,).

    Returns:
        Rotation (3, 3) whose columns are the axes of the ellipsoid, and the lengths (3,) of its
        semi-axes [m/s], which are the singular values of the linear rows of the Jacobian.
    """
    U, s, _ = np.linalg.svd(robot.jacobian(q)[:3])
    U[:, 2] *= np.sign(np.linalg.det(U))
    lengths = np.zeros(3)
    lengths[: len(s)] = s
    return U, lengths


# History of the plotted curves

CURVE_DURATION, MAX_CURVE_POINTS = 10.0, 250  # duration [s] and number of points of a curve
MAX_CONDITION = 1e6  # larger condition numbers are drawn as this value
ROTATION = "Rotation error"
MOTION_TAB, CONDITIONING_TAB = "Motion", "Conditioning"  # tabs of the page


class Curve(NamedTuple):
    """Quantity that the page plots over time, with its plot settings."""

    tab: str
    title: str
    unit: str  # label of the axis
    value: Callable[[Sample, Measures], float]
    scale: float = 1.0  # smallest value that the upper end of the axis may have
    worst: Callable[..., Any] = np.fmax  # returns the worse of two values


CURVES = (
    Curve(MOTION_TAB, "Fastest joint", "rad/s", lambda s, m: m.speed),
    Curve(MOTION_TAB, "Position error", "mm", lambda s, m: 1e3 * s.position_error, 5.0),
    Curve(MOTION_TAB, ROTATION, "deg", lambda s, m: float(np.degrees(s.rotation_error))),
    Curve(
        CONDITIONING_TAB,
        "Least singular value of J",
        "m/rad",
        lambda s, m: m.least_singular_value,
        0.1,
        np.fmin,
    ),
    Curve(
        CONDITIONING_TAB,
        "Condition number of J",
        "log10",
        lambda s, m: float(np.log10(min(m.condition, MAX_CONDITION))),
    ),
    Curve(
        CONDITIONING_TAB,
        "Largest activation h of a limit",
        "0 to 1",
        lambda s, m: float(m.activation.max()),
    ),
)


class CurveHistory:
    """Values of all curves of all arms during the last CURVE_DURATION seconds.

    Methods are thread-safe.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows: deque[list[float]] = deque(maxlen=MAX_CURVE_POINTS)
        self._row_ends = -np.inf  # [s] time at which the interval of the last row ends

    def add(self, time: float, arms: Sequence[tuple[Sample, Measures]]) -> None:
        """Add the values of all arms at a time.

        A row covers CURVE_DURATION / MAX_CURVE_POINTS seconds and contains the worst value in this
        interval, so that no peak is lost.

        Args:
            time: Time [s].
            arms: State and measures of each arm.
        """
        values = [curve.value(*arm) for curve in CURVES for arm in arms]
        with self._lock:
            if self._rows and len(self._rows[-1]) != 1 + len(values):
                self._clear()
            if time < self._row_ends:
                curves = [curve for curve in CURVES for _ in arms]
                last = zip(curves, self._rows[-1][1:], values, strict=True)
                values = [float(curve.worst(before, now)) for curve, before, now in last]
                self._rows.pop()
            else:
                self._row_ends = time + 0.99 * CURVE_DURATION / MAX_CURVE_POINTS
            self._rows.append([time, *values])

    def clear(self) -> None:
        """Remove all rows."""
        with self._lock:
            self._clear()

    def _clear(self) -> None:
        self._rows.clear()
        self._row_ends = -np.inf

    def _copied_rows(self) -> list[list[float]]:
        with self._lock:
            return list(self._rows)

    def table(self, names: Sequence[str]) -> bytes:
        """Return all curves as the content of a CSV file with a line for each time.

        Args:
            names: Names of the arms.
        """
        text = io.StringIO(newline="")
        writer = csv.writer(text)
        arms = [f"{letter}: {name}" for letter, name in zip(LETTERS, names, strict=False)]
        columns = [f"{c.title} [{c.unit}] {arm}" for c in CURVES for arm in arms]
        writer.writerow([TIME_LABEL, *columns])
        for row in self._copied_rows():
            if len(row) == 1 + len(columns):
                writer.writerow(["" if np.isnan(x) else f"{x:.9g}" for x in row])
        return text.getvalue().encode()

    def data(self, curve: int, arms: int) -> tuple[Array, ...]:
        """Return the k points of one curve for each arm, as arrays for the plot.

        Args:
            curve: Index of the curve in CURVES.
            arms: Number of arms.

        Returns:
            Times (k,) relative to the last time [s], followed by the values (k,) of each arm.
        """
        rows = self._copied_rows()
        if len(rows) < 2 or len(rows[-1]) != 1 + len(CURVES) * arms:
            return (np.array([-CURVE_DURATION, 0.0]), *np.full((arms, 2), np.nan))
        table = np.array(rows)
        first = 1 + curve * arms
        return (table[:, 0] - table[-1, 0], *table[:, first : first + arms].T)


# Colours

# Colours of the arms, which colour-blind people can tell apart on white and on black
ARM_COLOURS: tuple[Colour, ...] = ((43, 112, 239), (234, 98, 12), (20, 160, 120), (192, 80, 190))
LETTERS = "ABCD"
TIME_LABEL = "time [s]"
GREEN_RGB: Colour = (22, 163, 74)
AMBER_RGB: Colour = (245, 158, 11)
RED_RGB: Colour = (220, 38, 38)
# Distances to a limit, relative to the joint's range, below which the colour is amber and red
NEAR_LIMIT, AT_LIMIT = 0.15, 0.05


def css(colour: Colour) -> str:
    """Format a colour for CSS, such as ``rgb(22, 163, 74)``."""
    return f"rgb{colour}"


def limit_colour(q: float, lower: float, upper: float) -> Colour:
    """Return the colour for a joint position q: red at a limit, amber near it, otherwise green."""
    width = upper - lower
    distance = min(q - lower, upper - q)
    if not np.isfinite(width):
        return GREEN_RGB
    if distance < AT_LIMIT * width or width <= 0.0:
        return RED_RGB
    return AMBER_RGB if distance < NEAR_LIMIT * width else GREEN_RGB


# Live plots of the last seconds, a line for each arm

PLOT_HEIGHT = 178  # [px]
RANGE_SHIFT = 1e-4  # [s] see Plots


class Plots:
    """Plots over time: one plot for each curve of ``CURVES``, with a line for each arm.

    A plot that is not needed is hidden and not removed: within one update, the page removes plots
    before it handles new data, and would log an error if there are data for a removed plot.

    The plotting library uPlot computes the ticks of an axis only when the range of the axis
    changes. It computes no ticks while a plot has no width; if the data change at the same time as
    the width, it does not compute them later either. Therefore each update changes the start of the
    time axis by RANGE_SHIFT. The vertical axis would have no ticks if values are missing (NaN).
    Therefore an additional invisible line without missing values determines its range.

    Args:
        gui: Graphical user interface of viser.
        tabs: Tabs of the page, by the tab names in CURVES.
        arms: Number of arms.
        units: (n,) units of the joints.
    """

    def __init__(self, gui: Any, tabs: Mapping[str, Any], arms: int, units: Sequence[str]) -> None:
        self._arms = arms
        # Displayed names of the arms, and whether the rotation error is shown; None: plots hidden
        self._label: tuple[tuple[str, ...], bool] | None = None
        self._handles: list[Any] = []
        self._is_shifted = False
        speed = speed_unit(units)
        for i, curve in enumerate(CURVES):
            unit = speed if curve.unit == "rad/s" else curve.unit
            with tabs[curve.tab]:
                times, *values = CurveHistory().data(i, arms)
                data = (times, *values, np.zeros(len(times)))
                self._handles.append(_plot(gui, curve, unit, data, ("",) * arms))

    def label(self, names: tuple[str, ...], has_rotation: bool) -> None:
        """Show the plots, with the names of the arms in the legends.

        Args:
            names: Names of the arms.
            has_rotation: Whether the task has a rotation error, whose plot is otherwise hidden.
        """
        if self._label == (names, has_rotation):
            return
        self._label = names, has_rotation
        for curve, handle in zip(CURVES, self._handles, strict=True):
            handle.series = _series(names)
            handle.visible = has_rotation or curve.title != ROTATION

    def show(self, history: CurveHistory) -> None:
        """Draw the curves of a history in all visible plots."""
        self._is_shifted = not self._is_shifted
        begin = np.array([-CURVE_DURATION - self._is_shifted * RANGE_SHIFT])
        for i, handle in enumerate(self._handles):
            if handle.visible:
                times, *values = history.data(i, self._arms)
                gap = np.full((1, len(values)), np.nan)
                rows = np.concatenate([gap, np.stack(values, axis=1)[times > begin[0]]])
                times = np.concatenate([begin, times[times > begin[0]]])
                handle.data = (times, *np.ascontiguousarray(rows.T), _largest(rows))

    def hide(self) -> None:
        """Hide the plots."""
        self._label = None
        for handle in self._handles:
            handle.visible = False


def _largest(rows: Array) -> Array:
    """Return the largest value (k,) in each row of an array (k, number of arms); NaN counts as 0.

    The values are those of the curves at k times.
    """
    return np.asarray(np.nan_to_num(rows).max(axis=1))


def speed_unit(units: Sequence[str]) -> str:
    """Return the unit of joint speeds, such as "rad/s", given the units (n,) of the joints."""
    return " or ".join(f"{unit}/s" for unit in dict.fromkeys(units))


def _plot(gui: Any, curve: Curve, unit: str, data: tuple[Array, ...], names: Sequence[str]) -> Any:
    top = {"pad": 0.1, "soft": curve.scale, "mode": 1}
    bottom = {"pad": 0.0, "soft": 0.0, "mode": 1}
    grid = {"stroke": GRID, "width": 1}
    ticks = {**grid, "size": 5}
    axis = {"stroke": INK, "grid": grid, "ticks": ticks, "gap": 4, "labelSize": 16, "font": FONT}
    return gui.add_uplot(
        data,
        _series(names),
        title=f"{curve.title} [{unit}]",
        scales={"x": {"time": False}, "y": {"range": {"min": bottom, "max": top}}},
        axes=(
            {**axis, "label": "time [s], 0 is now", "size": 28, "labelFont": FONT, "labelGap": 2},
            {**axis, "size": 52},
        ),
        legend={"show": True, "live": False},
        height=PLOT_HEIGHT,
        padding=(8, 10, 0, 0),
    )


def _series(names: Sequence[str]) -> tuple[dict[str, Any], ...]:
    """Return the option "series" of a plot of the plotting library uPlot.

    The series are the times, a line for each of the arms `names`, and an invisible line that
    determines the range of the vertical axis (see :class:`Plots`).
    """
    lines = [
        {"label": f"{letter} {name}", "stroke": css(colour), "width": 1.8}
        for letter, name, colour in zip(LETTERS, names, ARM_COLOURS, strict=False)
    ]
    plain = {"points": {"show": False}}  # draws lines without a mark at each value
    drawn = [{**line, **plain, "auto": False} for line in lines]
    return ({"label": "time"}, *drawn, {"label": "", "width": 0, **plain})


INK, GRID = "#808895", "rgba(128,136,149,0.25)"  # colours that are readable on white and on black
FONT = "11px sans-serif"

# Joint bars: the position of each joint between its limits, as HTML

BAR_ROW = (
    "<div style='display:flex;flex-wrap:wrap;align-items:center;column-gap:8px;min-height:17px;"
    "font-size:11px'>"
    "<span style='flex:{basis};overflow-wrap:anywhere'>{name}</span>"
    "<span style='position:relative;flex:1 0 90px;height:9px;border-radius:3px;overflow:hidden;"
    "background:{background}'>{marks}</span>"
    "<span style='width:50px;text-align:right;font-variant-numeric:tabular-nums'>{value}</span>"
    "</div>"
)
JOINT_MARK = (
    "<span style='position:absolute;left:calc({left:.1f}% - 2px);top:0;width:5px;height:9px;"
    "border-radius:1px;background:{colour}'></span>"
)
NO_LIMITS = "rgba(128,136,149,0.28)"
MAX_BAR_NAME_LENGTH = 18  # characters that fit next to a bar; longer names are placed above it


def joint_bars(robot: RobotModel, qs: Sequence[Array]) -> str:
    """Return HTML with a bar for the range of each joint, and a mark for each arm's position.

    With several arms, a mark has the colour of its arm. The mark of a single arm is green, amber
    near a limit, and red at a limit.

    Args:
        robot: Robot of the arms.
        qs: Joint positions (n,) of each arm [rad or m].
    """
    longest = max(map(len, robot.joint_names))
    basis = f"0 0 {6.2 * longest + 4.0:.0f}px" if longest <= MAX_BAR_NAME_LENGTH else "1 0 100%"
    rows = [_bar_row(robot, j, [float(q[j]) for q in qs], basis) for j in range(robot.n)]
    return f"<div style='max-height:340px;overflow-y:auto;padding:2px 10px'>{''.join(rows)}</div>"


def _bar_row(robot: RobotModel, j: int, values: list[float], basis: str) -> str:
    name, lower, upper = robot.joint_names[j], float(robot.lower[j]), float(robot.upper[j])
    colours = ARM_COLOURS if len(values) > 1 else (limit_colour(values[0], lower, upper),)
    marks = [_mark(*pair, lower, upper) for pair in zip(values, colours, strict=False)]
    if robot.units[j] == "m":
        text = f"{1000.0 * values[0]:.0f} mm"
    else:
        text = f"{np.degrees(values[0]):.1f}&deg;"
    return BAR_ROW.format(
        name=escape(name),
        basis=basis,
        background=_bands() if np.isfinite(upper - lower) else NO_LIMITS,
        marks="".join(reversed(marks)),  # the mark of the first arm is on top
        value=text,
    )


def _mark(value: float, colour: Colour, lower: float, upper: float) -> str:
    if np.isfinite(upper - lower):
        share = (value - lower) / max(upper - lower, 1e-12)
    else:
        share = 0.5 + np.arctan(value) / np.pi  # a joint without limits: any number to 0..1
    return JOINT_MARK.format(left=100.0 * float(np.clip(share, 0, 1)), colour=css(colour))


def _bands() -> str:
    """Return the CSS background of a joint bar: grey, with amber and red bands at both limits."""
    red, amber = (f"rgba{(*colour, 0.35)}" for colour in (RED_RGB, AMBER_RGB))
    at, near = 100 * AT_LIMIT, 100 * NEAR_LIMIT
    return (
        f"linear-gradient(90deg,{red} 0 {at:g}%,{amber} {at:g}% {near:g}%,"
        f"{NO_LIMITS} {near:g}% {100 - near:g}%,"
        f"{amber} {100 - near:g}% {100 - at:g}%,{red} {100 - at:g}%)"
    )


# Recording as CSV: a row for each arm at each step, units in the header

POSE_COLUMNS = ("x [m]", "y [m]", "z [m]", "qw", "qx", "qy", "qz")
MAX_RECORDED_ROWS = 500_000


class CsvRecorder:
    """Recording of the arms as CSV: one row per arm and step, at most MAX_RECORDED_ROWS rows."""

    def __init__(self, robot: RobotModel) -> None:
        self._text = io.StringIO(newline="")
        self._writer = csv.writer(self._text)
        self._writer.writerow(csv_header(robot))
        self.rows = 0

    def add(self, arms: Iterable[tuple[str, Sample, Measures]]) -> None:
        """Write a row for each arm, whose name, state and measures are given."""
        if self.rows >= MAX_RECORDED_ROWS:
            return
        for arm in arms:
            self._writer.writerow(_csv_row(*arm))
            self.rows += 1

    def content(self) -> bytes:
        """Return the recording as the content of a CSV file."""
        return self._text.getvalue().encode()


def csv_header(robot: RobotModel) -> list[str]:
    """Return the names of the columns of a recording."""
    joints = [*zip(robot.joint_names, robot.units, strict=True)]
    return [
        TIME_LABEL,
        "arm",
        "state",
        *(f"q {name} [{unit}]" for name, unit in joints),
        *(f"v {name} [{unit}/s]" for name, unit in joints),
        *(f"{what} {column}" for what in ("tip", "target") for column in _pose_columns(robot)),
        "position error [m]",
        "rotation error [rad]",
        "least singular value",
        "condition number",
        *(f"h {name}" for name in robot.joint_names),
    ]


def _pose_columns(robot: RobotModel) -> list[str]:
    """Return the column names for the poses of all tips, such as "x [m]" or "TIP x [m]"."""
    if len(robot.tips) == 1:
        return [*POSE_COLUMNS]
    return [f"{tip} {column}" for tip in robot.tips for column in POSE_COLUMNS]


def _csv_row(arm: str, sample: Sample, measures: Measures) -> list[str]:
    """Return the cells of the row of an arm; missing values, such as no target, are empty cells."""
    numbers = [
        *sample.q,
        *sample.velocity,
        *_pose_cells(sample.T_tip, 1),
        *_pose_cells(sample.T_target, sample.T_tip.size // 16),
        sample.position_error,
        sample.rotation_error,
        measures.least_singular_value,
        measures.condition,
        *measures.activation,
    ]
    cells = ["" if np.isnan(number) else f"{number:.9g}" for number in numbers]
    return [f"{sample.time:.4f}", arm, sample.state, *cells]


def _pose_cells(Ts: Array | None, k: int) -> list[float]:
    if Ts is None:
        return [np.nan] * k * len(POSE_COLUMNS)
    poses = Ts.reshape(-1, 4, 4)
    return [float(x) for T in poses for x in (*T[:3, 3], *wxyz_from_pose(T))]
