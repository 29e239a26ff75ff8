"""The path of the tip in space, from above, from the side and from the front."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.plot.arm import AXES, require_one_tip
from dls_ik.plot.canvas import BLUE, ORANGE, heading, motion, new_figure, panel_title, plain
from dls_ik.plot.tip import checked_places, draw_in_space

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PLANES = ((0, 1, "from above"), (0, 2, "from the side"), (1, 2, "from the front"))


def tip_planes(
    robot: RobotModel,
    times: ArrayLike,
    q: ArrayLike,
    target: ArrayLike | None = None,
    title: str = "The path of the tip",
) -> Figure:
    """The arm and its path in space, and the path in each plane of the base frame: xy, xz, yz.

    Args:
        robot: whose joints, and the links to draw.
        times: (k,) [s].
        q: (k, n) what the joints did [rad or m].
        target: (k, 3) where the tip should have been [m], if that is to be seen.
        title: what the picture says as a whole.

    Raises:
        JointValueError, PoseError: values that do not fit the robot or each other.
        DlsIkError: matplotlib is not installed; several tips.
    """
    require_one_tip(robot)
    t, values = motion(robot, times, q)
    goal = None if target is None else checked_places(target, len(t))
    tip = robot.fk(values)[:, :3, 3]
    figure = new_figure(10.0, 8.6)
    grid = figure.add_gridspec(2, 2)
    draw_in_space(figure.add_subplot(grid[0], projection="3d"), robot, t, values, tip, goal)
    panels = [figure.add_subplot(grid[i]) for i in (1, 2, 3)]
    for axes, (i, j, view) in zip(panels, PLANES, strict=True):
        _plane(axes, tip, goal, (i, j))
        panel_title(axes, view, f"{AXES[i]}{AXES[j]}")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    heading(figure, title)
    return figure


def _plane(axes: Axes, tip: Array, goal: Array | None, seen: tuple[int, int]) -> None:
    """Both paths in two of the three directions, and where they begin and end."""
    if goal is not None:
        axes.plot(*goal[:, seen].T, color=ORANGE, linewidth=5.0, label="target")
    path = tip[:, seen]
    axes.plot(*path.T, color=BLUE, linewidth=1.6, label="tip")
    axes.plot(*path[0], "o", color="white", markeredgecolor=BLUE, markersize=6, label="start")
    axes.plot(*path[-1], "o", color=BLUE, markersize=6, label="end")
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.08)
    axes.locator_params(nbins=6)
    axes.set_xlabel(f"{AXES[seen[0]]} [m]", fontsize=9)
    axes.set_ylabel(f"{AXES[seen[1]]} [m]", fontsize=9)
    plain(axes)
