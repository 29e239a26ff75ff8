"""Joint bars: where each joint is between its limits, as HTML."""

from collections.abc import Sequence
from html import escape

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.viewer.colours import AMBER, ARMS, AT, NEAR, RED, css, limit_colour, room

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
