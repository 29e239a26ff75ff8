"""Live plots and joint bars, and their colours."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.viewer.measures import Measures
from dls_ik.viewer.shapes import Colour
from dls_ik.viewer.source import Sample

# Colours: one for each arm, and three for how near a limit is
FIRST: Colour = (37, 99, 235)  # the arm of the first method, in plots and legend
SECOND: Colour = (234, 88, 12)  # the second one's ghost too
ARMS = (FIRST, SECOND)
GREEN: Colour = (22, 163, 74)
AMBER: Colour = (245, 158, 11)
RED: Colour = (220, 38, 38)
NEAR, AT = 0.15, 0.05  # share of the range that is left to the limit next to it


def css(colour: Colour) -> str:
    """As a style sheet has it."""
    return f"rgb{colour}"


def room(q: float, lower: float, upper: float) -> float:
    """What share of its range a joint is away from the limit next to it, from 0 to 0.5.

    0 beyond a limit; 0.5 for a joint that lacks a limit.
    """
    width = upper - lower
    if not np.isfinite(width):
        return 0.5
    if width <= 0.0:
        return 0.0
    return float(np.clip(min(q - lower, upper - q) / width, 0.0, 0.5))


def limit_colour(share: float) -> Colour:
    """Green with room, amber near a limit, red at it; for a share as of :func:`room`."""
    if share < AT:
        return RED
    return AMBER if share < NEAR else GREEN


# Live plots: what is measured over the last seconds, a line for each arm
SECONDS, KEPT = 10.0, 250  # shown, and points of a line
HEIGHT = 128  # [px] of a plot
LARGEST = 1e6  # a condition number beyond it is drawn there


def _decades(number: float) -> float:
    return float(np.log10(min(number, LARGEST)))


class Curve(NamedTuple):
    """A plot: what it is called, and its number at a time."""

    tab: str
    title: str
    value: Callable[[Sample, Measures], float]
    least: float = 1.0  # the top of the scale is not lower
    worst: Callable[..., Any] = np.fmax  # of two values: what is kept of those between two rows


MOTION, JACOBIAN = "Motion", "Conditioning"
CURVES = (
    Curve(MOTION, "position error [mm]", lambda s, m: 1e3 * s.position_error, 5.0),
    Curve(MOTION, "rotation error [deg]", lambda s, m: float(np.degrees(s.rotation_error))),
    Curve(MOTION, "fastest joint [rad/s or m/s]", lambda s, m: m.speed),
    Curve(
        JACOBIAN, "least singular value", lambda s, m: m.least_singular_value, 0.1, worst=np.fmin
    ),
    Curve(JACOBIAN, "condition number [log10]", lambda s, m: _decades(m.condition)),
    Curve(JACOBIAN, "activation h of CTP, largest", lambda s, m: float(m.activation.max())),
)


class History:
    """The last seconds of all curves for some arms, on one time axis."""

    def __init__(self) -> None:
        self._rows: deque[list[float]] = deque(maxlen=KEPT)
        self._ends = -np.inf  # [s] when the last row does

    def add(self, time: float, arms: list[tuple[Sample, Measures]]) -> None:
        """Note the numbers of all arms at a time [s].

        A row stands for a KEPT-th part of SECONDS and has the worst of it, so that no peak is lost.
        """
        values = [curve.value(*arm) for curve in CURVES for arm in arms]
        if self._rows and len(self._rows[-1]) != 1 + len(values):
            self.clear()
        if time < self._ends:
            curves = [curve for curve in CURVES for _ in arms]
            last = zip(curves, self._rows[-1][1:], values, strict=True)
            values = [float(curve.worst(before, now)) for curve, before, now in last]
            self._rows.pop()
        else:
            self._ends = time + 0.99 * SECONDS / KEPT
        self._rows.append([time, *values])

    def clear(self) -> None:
        """Forget all."""
        self._rows.clear()
        self._ends = -np.inf

    def data(self, curve: int, arms: int) -> tuple[Array, ...]:
        """Times [s] before now, and the lines of a curve, (k,) each."""
        if len(self._rows) < 2 or len(self._rows[-1]) != 1 + len(CURVES) * arms:
            return (np.array([-SECONDS, 0.0]), *np.full((arms, 2), np.nan))
        table = np.array(self._rows)
        first = 1 + curve * arms
        return (table[:, 0] - table[-1, 0], *table[:, first : first + arms].T)


class Plots:
    """The plots for one arm or two, in tabs by what they are about.

    Args:
        tabs: of viser, by the names in :data:`CURVES`.
    """

    def __init__(self, gui: Any, tabs: Mapping[str, Any], arms: int) -> None:
        self._arms = arms
        self._handles = []
        for i, curve in enumerate(CURVES):
            with tabs[curve.tab]:
                self._handles.append(_plot(gui, curve, History().data(i, arms)))

    def show(self, history: History) -> None:
        """Draw the lines anew."""
        for i, handle in enumerate(self._handles):
            handle.data = history.data(i, self._arms)

    def remove(self) -> None:
        """Take them off the page."""
        for handle in self._handles:
            handle.remove()


def _plot(gui: Any, curve: Curve, data: tuple[Array, ...]) -> Any:
    return gui.add_uplot(
        data,
        _series(len(data) - 1),
        title=curve.title,
        scales={"x": {"time": False, "range": [-SECONDS, 0.0]}, "y": _scale(curve)},
        axes=({"size": 26}, {"size": 46}),
        legend={"show": False},
        height=HEIGHT,
        padding=(8, 12, 0, 0),
    )


def _series(arms: int) -> tuple[dict[str, Any], ...]:
    lines = [
        {"label": name, "stroke": css(c), "width": 1.6} for name, c in zip("AB", ARMS, strict=True)
    ]
    return ({"label": "s"}, *lines[:arms])


def _scale(curve: Curve) -> dict[str, Any]:
    top = {"pad": 0.1, "soft": curve.least, "mode": 1}
    return {"range": {"min": {"pad": 0.0, "soft": 0.0, "mode": 1}, "max": top}}


# Joint bars: where each joint is between its limits, as HTML
ROW = (
    "<div style='display:flex;align-items:center;height:17px;font-size:11px'>"
    "<span style='width:74px;overflow:hidden;text-overflow:ellipsis;white-space:nowrap' "
    "title='{name}'>{name}</span>{bar}"
    "<span style='width:56px;text-align:right;font-variant-numeric:tabular-nums'>{value}</span>"
    "</div>"
)
BAR = (
    "<span style='position:relative;flex:1;height:9px;border-radius:3px;overflow:hidden;"
    "background:{background}'>{marks}</span>"
)
MARK = (
    "<span style='position:absolute;left:calc({left:.1f}% - 2px);top:0;width:5px;height:9px;"
    "background:{colour};{edge}'></span>"
)


def joint_bars(robot: RobotModel, qs: Sequence[Array]) -> str:
    """One row a joint, the first arm's mark filled, the second one's outlined.

    Args:
        qs: (n,) of each arm.
    """
    rows = [_row(robot, j, [float(q[j]) for q in qs]) for j in range(robot.n)]
    return f"<div style='max-height:340px;overflow-y:auto;padding:2px 10px'>{''.join(rows)}</div>"


def _row(robot: RobotModel, j: int, values: list[float]) -> str:
    lower, upper = float(robot.lower[j]), float(robot.upper[j])
    marks = "".join(_mark(i, value, lower, upper) for i, value in reversed([*enumerate(values)]))
    background = _background() if np.isfinite(upper - lower) else "#e5e7eb"
    bar = BAR.format(background=background, marks=marks)
    return ROW.format(name=escape(robot.joint_names[j]), bar=bar, value=_shown(robot, j, values[0]))


def _mark(arm: int, value: float, lower: float, upper: float) -> str:
    if np.isfinite(upper - lower):
        share = (value - lower) / max(upper - lower, 1e-12)
    else:
        share = 0.5 + np.arctan(value) / np.pi  # all of the line
    colour = limit_colour(room(value, lower, upper)) if arm == 0 else ARMS[1]
    edge = "border-radius:1px" if arm == 0 else "opacity:0.6"
    return MARK.format(left=100.0 * float(np.clip(share, 0, 1)), colour=css(colour), edge=edge)


def _background() -> str:
    """Grey, with bands in pale amber and red at both ends."""
    red, amber = (f"rgba{(*colour, 0.28)}" for colour in (RED, AMBER))
    at, near = 100 * AT, 100 * NEAR
    stops = (
        f"{red} 0 {at:g}%,{amber} {at:g}% {near:g}%,#e5e7eb {near:g}% {100 - near:g}%,"
        f"{amber} {100 - near:g}% {100 - at:g}%,{red} {100 - at:g}%"
    )
    return f"linear-gradient(90deg,{stops})"


def _shown(robot: RobotModel, j: int, value: float) -> str:
    if robot.tree.joint[robot.joint_names[j]].kind == "prismatic":
        return f"{1000.0 * value:.0f} mm"
    return f"{np.degrees(value):.1f}&deg;"
