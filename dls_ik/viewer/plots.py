"""Live plots, joint bars and colours of the page."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.viewer.measures import CURVES, SECONDS, Curve, CurveHistory
from dls_ik.viewer.shapes import Colour

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
    """Shows the curves of one arm or two, in tabs.

    Args:
        tabs: of viser, by the names in :data:`dls_ik.viewer.measures.CURVES`.
    """

    def __init__(self, gui: Any, tabs: Mapping[str, Any], arms: int) -> None:
        self._arms = arms
        self._handles = []
        for i, curve in enumerate(CURVES):
            with tabs[curve.tab]:
                self._handles.append(_plot(gui, curve, CurveHistory().data(i, arms)))

    def show(self, history: CurveHistory) -> None:
        """Draw the curves."""
        for i, handle in enumerate(self._handles):
            handle.data = history.data(i, self._arms)

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
    if robot.tree.joint[name].kind == "prismatic":
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
    stops = (
        f"{red} 0 {at:g}%,{amber} {at:g}% {near:g}%,#e5e7eb {near:g}% {100 - near:g}%,"
        f"{amber} {100 - near:g}% {100 - at:g}%,{red} {100 - at:g}%"
    )
    return f"linear-gradient(90deg,{stops})"
