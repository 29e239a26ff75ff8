"""The path of the tip and its target, in space and in planes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dls_ik.core.types import Array
from dls_ik.errors import PoseError
from dls_ik.model.robot import RobotModel
from dls_ik.plot.arm import AXES, arm_points, draw_arms, instants, require_one_tip, space_axes
from dls_ik.plot.canvas import (
    BLUE,
    GREY,
    ORANGE,
    PALE,
    heading,
    motion,
    new_figure,
    panel_title,
    plain,
    short,
    show_times,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GHOSTS = 12  # instants at which the arm is drawn
LENGTHS = ((1.0, "m"), (1e2, "cm"), (1e3, "mm"), (1e6, "um"), (1e9, "nm"))  # in a metre
ROUNDING = 1e-12  # [m] of distances that are none


def tip_path(
    robot: RobotModel,
    times: ArrayLike,
    q: ArrayLike,
    target: ArrayLike,
    title: str = "The tip and its target",
) -> Figure:
    """The arm and its path in space, the path in its own plane, and the distance over time.

    Args:
        robot: whose joints, and the links to draw.
        times: (k,) [s].
        q: (k, n) what the joints did [rad or m].
        target: (k, 3) where the tip should have been [m].
        title: what the picture says as a whole.

    Raises:
        JointValueError, PoseError: values that do not fit the robot or each other.
        DlsIkError: matplotlib is not installed.
    """
    require_one_tip(robot)
    t, values = motion(robot, times, q)
    goal = checked_places(target, len(t))
    tip = robot.fk(values)[:, :3, 3]
    figure = new_figure(11.0, 5.6)
    grid = figure.add_gridspec(2, 2, width_ratios=(1.0, 1.1), height_ratios=(1.5, 1.0), wspace=0.08)
    draw_in_space(figure.add_subplot(grid[:, 0], projection="3d"), robot, t, values, tip, goal)
    _in_its_plane(figure.add_subplot(grid[0, 1]), tip, goal)
    _over_time(figure.add_subplot(grid[1, 1]), t, tip, goal)
    heading(figure, title)
    return figure


def checked_places(target: ArrayLike, k: int) -> Array:
    """Places (k, 3) [m], one an instant.

    Raises:
        PoseError: another shape, or not finite.
    """
    goal = np.asarray(target, dtype=np.float64)
    if goal.shape != (k, 3) or not np.isfinite(goal).all():
        raise PoseError(
            f"the target of {k} instants is ({k}, 3), all finite, not {goal.shape}"
            if goal.shape != (k, 3)
            else "the target of a path has values that are not finite"
        )
    return goal


def draw_in_space(
    axes: Any, robot: RobotModel, t: Array, values: Array, tip: Array, goal: Array | None
) -> None:
    """The arm as a stick figure at several instants, and both paths."""
    ghosts = instants(t, GHOSTS)
    arms = arm_points(robot, values[[*ghosts, -1]])[0]
    draw_arms(axes, arms[:-1], [PALE] * len(ghosts))
    arm = arms[-1]
    axes.plot(*arm.T, color=GREY, linewidth=4.0, solid_joinstyle="round")
    axes.scatter(*arm[:-1].T, s=14, color="white", edgecolors=GREY, depthshade=False, zorder=9)
    if goal is not None:
        axes.plot(*goal.T, color=ORANGE, linewidth=4.0)
    axes.plot(*tip.T, color=BLUE, linewidth=1.4)
    axes.text(*arm[0], f"  {robot.base}", fontsize=8, color=GREY, va="top")
    space_axes(axes)
    panel_title(axes, f"{robot.name} at the end, and at {len(ghosts)} instants")


def _in_its_plane(axes: Axes, tip: Array, goal: Array) -> None:
    """Both paths, seen along the direction in which the target's extends least."""
    centre = goal.mean(axis=0)
    first, second = _plane(goal - centre)
    across = np.array([first, second]).T * 1e2  # to [cm]
    axes.plot(*((goal - centre) @ across).T, color=ORANGE, linewidth=5.0, label="target")
    axes.plot(*((tip - centre) @ across).T, color=BLUE, linewidth=1.6, label="tip")
    axes.set_aspect("equal", adjustable="datalim")
    axes.locator_params(nbins=6)
    axes.set_xlabel("along the path's long side [cm]", fontsize=9)
    axes.set_ylabel("across [cm]", fontsize=9)
    panel_title(axes, "the path in its own plane")
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=9, ncol=2)
    plain(axes)


def _plane(points: Array) -> Array:
    """The two directions (2, 3) in which points (k, 3) extend most, pointing to the positive."""
    _, _, directions = np.linalg.svd(points, full_matrices=False)
    main = directions[:2]
    largest = np.abs(main).argmax(axis=1)
    signs: Array = np.sign(main[np.arange(2), largest])
    return main * signs[:, None]


def _over_time(axes: Axes, t: Array, tip: Array, goal: Array) -> None:
    distance = np.linalg.norm(tip - goal, axis=1)
    scale, unit = _length(float(distance.max()))
    error = scale * distance
    axes.plot(t, error, color=BLUE, linewidth=1.4)
    axes.fill_between(t, error, color=BLUE, alpha=0.15, linewidth=0)
    axes.axhline(error.mean(), color=GREY, linewidth=1.0, linestyle="--")
    at_the_end = axes.get_yaxis_transform()  # x as a share of the axes
    axes.text(1.01, error.mean(), "mean", transform=at_the_end, color=GREY, fontsize=8, va="center")
    note = f"mean {short(error.mean())} {unit}, greatest {short(error.max())} {unit}"
    panel_title(axes, f"distance from tip to target: {note}")
    show_times(axes, t)
    axes.set_ylim(0.0, 1.15 * error.max() if error.max() > 0.0 else 1.0)
    axes.set_xlabel("time [s]", fontsize=9)
    axes.set_ylabel(f"distance [{unit}]", fontsize=9)
    plain(axes)


def _length(top: float) -> tuple[float, str]:
    """How many of which unit make a metre, so that `top` [m] is a number to read; mm for none."""
    if top <= ROUNDING:
        return 1e3, "mm"
    return next(((scale, unit) for scale, unit in LENGTHS if scale * top >= 0.5), LENGTHS[-1])


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
        _draw_plane(axes, tip, goal, (i, j))
        panel_title(axes, view, f"{AXES[i]}{AXES[j]}")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    heading(figure, title)
    return figure


def _draw_plane(axes: Axes, tip: Array, goal: Array | None, seen: tuple[int, int]) -> None:
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
