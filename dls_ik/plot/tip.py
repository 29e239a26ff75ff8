"""The path of the tip against the path that was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dls_ik.core.types import Array
from dls_ik.exceptions import PoseError
from dls_ik.model.robot import RobotModel
from dls_ik.plot.canvas import BLUE, GREY, ORANGE, PALE, motion, new_figure, plain, show_times

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GHOSTS = 12  # instants at which the arm is drawn


def tip_path(
    robot: RobotModel,
    times: ArrayLike,
    q: ArrayLike,
    target: ArrayLike,
    title: str = "The tip follows its target",
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
    t, values = motion(robot, times, q)
    goal = np.asarray(target, dtype=np.float64)
    if goal.shape != (len(t), 3):
        raise PoseError(f"the target of {len(t)} instants is ({len(t)}, 3), not {goal.shape}")
    tip = robot.fk(values)[:, :3, 3]
    figure = new_figure(11.0, 5.6)
    grid = figure.add_gridspec(2, 2, width_ratios=(1.0, 1.1), height_ratios=(1.5, 1.0), wspace=0.08)
    _in_space(figure.add_subplot(grid[:, 0], projection="3d"), robot, values, tip, goal)
    _in_its_plane(figure.add_subplot(grid[0, 1]), tip, goal)
    _over_time(figure.add_subplot(grid[1, 1]), t, tip, goal)
    figure.suptitle(title, fontsize=13, fontweight="bold")
    return figure


def _in_space(axes: Any, robot: RobotModel, values: Array, tip: Array, goal: Array) -> None:
    """The arm as a stick figure at several instants, and both paths."""
    for i in np.linspace(0, len(values) - 1, GHOSTS).astype(int):
        axes.plot(*_joints(robot, values[i]).T, color=PALE, linewidth=1.2)
    arm = _joints(robot, values[-1])
    axes.plot(*arm.T, color=GREY, linewidth=4.0, solid_joinstyle="round")
    axes.scatter(*arm[:-1].T, s=14, color="white", edgecolors=GREY, depthshade=False, zorder=9)
    axes.plot(*goal.T, color=ORANGE, linewidth=4.0)
    axes.plot(*tip.T, color=BLUE, linewidth=1.4)
    axes.text(*arm[0], f"  {robot.base}", fontsize=8, color=GREY, va="top")
    limits = [axes.get_xlim(), axes.get_ylim(), axes.get_zlim()]
    axes.set_box_aspect(np.ptp(limits, axis=1), zoom=1.05)  # one scale for all three axes
    axes.view_init(elev=26.0, azim=-52.0)
    for name, label in zip("xyz", ("x [m]", "y [m]", "z [m]"), strict=True):
        getattr(axes, f"set_{name}label")(label, fontsize=8, labelpad=-1.0 if name == "z" else 2.0)
        getattr(axes, f"{name}axis").set_major_locator(_few_ticks())
    axes.tick_params(labelsize=7, colors=GREY)
    axes.set_title(f"{robot.name} at the end, and at {GHOSTS} instants", fontsize=10, loc="left")


def _few_ticks() -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(4)


def _joints(robot: RobotModel, q: Array) -> Array:
    """Where the base, the joints and the tip are, (m, 3)."""
    links = [robot.base, *(joint.child for joint in robot.tree.path(robot.base, robot.tip))]
    return np.array([robot.link_pose(link, q)[:3, 3] for link in links])


def _in_its_plane(axes: Axes, tip: Array, goal: Array) -> None:
    """Both paths, seen along the direction in which the target's extends least."""
    centre = goal.mean(axis=0)
    first, second = _plane(goal - centre)
    across = np.array([first, second]).T * 1e2  # to [cm]
    axes.plot(*((goal - centre) @ across).T, color=ORANGE, linewidth=5.0, label="target")
    axes.plot(*((tip - centre) @ across).T, color=BLUE, linewidth=1.6, label="tip")
    axes.set_aspect("equal", adjustable="datalim")
    axes.set_xlabel("along the path's long side [cm]", fontsize=9)
    axes.set_ylabel("across [cm]", fontsize=9)
    axes.set_title("the path in its own plane", fontsize=10, loc="left")
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
    error = 1e3 * np.linalg.norm(tip - goal, axis=1)  # [mm]
    axes.plot(t, error, color=BLUE, linewidth=1.4)
    axes.fill_between(t, error, color=BLUE, alpha=0.15, linewidth=0)
    axes.axhline(error.mean(), color=GREY, linewidth=1.0, linestyle="--")
    at_the_end = axes.get_yaxis_transform()  # x as a share of the axes
    axes.text(1.01, error.mean(), "mean", transform=at_the_end, color=GREY, fontsize=8, va="center")
    note = f"mean {error.mean():.2g} mm, greatest {error.max():.2g} mm"
    axes.set_title(f"distance from tip to target: {note}", fontsize=10, loc="left")
    show_times(axes, t)
    axes.set_ylim(0.0, 1.15 * error.max() + 1e-9)
    axes.set_xlabel("time [s]", fontsize=9)
    axes.set_ylabel("distance [mm]", fontsize=9)
    plain(axes)
