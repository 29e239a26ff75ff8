"""Joint positions over time, each inside the band of its limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.plot.canvas import BLUE, GREY, RED, motion, new_figure, plain, show_times

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = 2
PAD = 0.12  # of the range, shown beyond each limit


def joint_bands(
    robot: RobotModel, times: ArrayLike, q: ArrayLike, title: str = "Joints inside their limits"
) -> Figure:
    """One panel for each joint: its position, and what its limits forbid, shaded.

    Args:
        robot: whose joints and limits.
        times: (k,) [s].
        q: (k, n) [rad or m].
        title: what the picture says as a whole.

    Raises:
        JointValueError: values that do not fit the robot or each other.
        DlsIkError: matplotlib is not installed.
    """
    t, values = motion(robot, times, q)
    rows = -(-(robot.n + 1) // COLUMNS)  # one cell more, for the legend
    figure = new_figure(9.0, 1.0 + 1.65 * rows)
    grid = figure.subplots(rows, COLUMNS, squeeze=False, sharex=True).ravel()
    for i, axes in enumerate(grid[: robot.n]):
        _panel(axes, robot, i, t, values[:, i])
    for axes in grid[max(0, robot.n - COLUMNS) : robot.n]:
        axes.tick_params(labelbottom=True)
    figure.supxlabel("time [s]", fontsize=9)
    _legend(grid[robot.n])
    for axes in grid[robot.n :]:
        axes.set_axis_off()
    figure.suptitle(title, fontsize=13, fontweight="bold")
    return figure


def _panel(axes: Axes, robot: RobotModel, i: int, t: Array, values: Array) -> None:
    lower, upper = float(robot.lower[i]), float(robot.upper[i])
    unit = "m" if _is_prismatic(robot, i) else "rad"
    ends = [end for end in (lower, upper) if np.isfinite(end)]
    shown = np.array([*ends, values.min(), values.max()])
    pad = PAD * max(np.ptp(shown), 0.1)
    axes.set_ylim(shown.min() - pad, shown.max() + pad)
    show_times(axes, t)
    _forbid(axes, lower, upper)
    axes.plot(t, values, color=BLUE, linewidth=1.8)
    axes.set_yticks([*ends, 0.0] if len(ends) == 2 and lower < 0.0 < upper else ends or [0.0])
    axes.set_ylabel(f"[{unit}]", fontsize=9)
    axes.set_title(robot.joint_names[i], fontsize=10, fontweight="bold", loc="left")
    closest = _closest(lower, upper, values, unit)
    axes.set_title(closest, fontsize=8.5, color=GREY, loc="right")
    plain(axes)


def _forbid(axes: Axes, lower: float, upper: float) -> None:
    bottom, top = axes.get_ylim()
    for limit, edge in ((lower, bottom), (upper, top)):
        if np.isfinite(limit):
            axes.axhspan(limit, edge, color=RED, alpha=0.22, linewidth=0)
            axes.axhline(limit, color=RED, linewidth=1.0)


def _closest(lower: float, upper: float, values: Array, unit: str) -> str:
    """How near the joint came to a limit, in words."""
    rooms = {"lower": values.min() - lower, "upper": upper - values.max()}
    side, room = min(rooms.items(), key=lambda item: item[1])
    if not np.isfinite(room):
        return "no limits"
    if room < 0.0:
        return f"BEYOND its {side} limit by {-room:.2g} {unit}"
    return f"closest: {room:.2f} {unit} from its {side} limit"


def _is_prismatic(robot: RobotModel, i: int) -> bool:
    return bool(robot.chain.prismatic[robot.chain.variable == i].any())


def _legend(axes: Axes) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles = [
        Line2D([], [], color=BLUE, linewidth=1.8, label="position of the joint"),
        Line2D([], [], color=RED, linewidth=1.0, label="its limits"),
        Patch(color=RED, alpha=0.22, linewidth=0, label="out of bounds"),
    ]
    axes.legend(handles=handles, loc="center", frameon=False, fontsize=10)
