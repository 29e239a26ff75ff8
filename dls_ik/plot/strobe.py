"""The arm at many instants in one picture, pale to dark, and the paths of its joints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dls_ik.core.types import Array
from dls_ik.errors import OptionError, PoseError
from dls_ik.model.robot import RobotModel
from dls_ik.plot.arm import (
    AXES,
    arm_points,
    draw_arms,
    draw_paths,
    fading,
    fading_map,
    instants,
    moving_points,
    space_axes,
)
from dls_ik.plot.canvas import GREY, ORANGE, heading, motion, new_figure, panel_title, plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

VIEWS = {"space": (0, 1, 2), "xy": (0, 1), "xz": (0, 2), "yz": (1, 2)}
FLAT = 1e-6  # [m]: an arm that is thinner is drawn in its plane


class Scene(NamedTuple):
    """What both panels show."""

    arms: list[Array]  # for each tip (k, m, 2 or 3) [m], at all instants
    goals: Array | None  # (j, 2 or 3) [m]
    seen: tuple[int, ...]  # directions


def stroboscope(
    robot: RobotModel,
    times: ArrayLike,
    q: ArrayLike,
    target: ArrayLike | None = None,
    view: str = "auto",
    count: int = 24,
    title: str = "The arm, pale to dark",
) -> Figure:
    """The arm at instants evenly in time, as in a stroboscope, and the paths of all its joints.

    As Tabaczynski 2005 draws them.

    Args:
        robot: whose links, with one tip or several.
        times: (k,) [s].
        q: (k, n) [rad or m].
        target: (3,) or (j, 3) places to mark, or a path (j, 3) [m].
        view: ``space``, or a plane of the base frame: ``xy``, ``xz``, ``yz``; ``auto``: the plane
            of a flat arm, and space for any other.
        count: instants, 2 or more.
        title: what the picture says as a whole.

    Raises:
        JointValueError, PoseError, OptionError: values that do not fit the robot or each other.
        DlsIkError: matplotlib is not installed.
    """
    t, values = motion(robot, times, q)
    scene = _scene(arm_points(robot, values), target, view)
    if count < 2:
        raise OptionError(f"count is 2 instants or more, not {count}")
    figure = new_figure(11.0, 5.6)
    kind: Any = {"projection": "3d"} if len(scene.seen) == 3 else {}
    left, right = (figure.add_subplot(1, 2, i, **kind) for i in (1, 2))
    chosen, shares = instants(t, count), (t - t[0]) / (t[-1] - t[0])
    _arms(left, scene, chosen, shares[chosen])
    panel_title(left, f"{robot.name} at {len(chosen)} instants")
    _paths(right, scene, shares)
    whose = "the tip's" if len(robot.tips) == 1 else "the tips'"
    panel_title(right, f"paths of the joints, {whose} bold")
    for axes in (left, right):
        _mark(axes, scene)
    _same_limits(left, right, len(scene.seen))
    for axes in (left, right):
        _finish(axes, scene)
    _time_bar(figure, t)
    heading(figure, title)
    return figure


def _scene(arms: list[Array], target: ArrayLike | None, view: str) -> Scene:
    seen = VIEWS.get(_flat_view(np.concatenate(arms, axis=1)) if view == "auto" else view)
    if seen is None:
        raise OptionError(f"view is one of auto, {', '.join(VIEWS)}, not {view!r}")
    goals = None
    if target is not None:
        goals = np.atleast_2d(np.asarray(target, dtype=np.float64))
        if goals.ndim != 2 or goals.shape[1] != 3 or not np.isfinite(goals).all():
            raise PoseError(f"a target is (3,) or (j, 3), all finite, not {np.shape(target)}")
        goals = goals[:, seen]
    return Scene([moving_points(arm)[..., seen] for arm in arms], goals, seen)


def _flat_view(points: Array) -> str:
    """The plane (of the base frame) that all points (k, m, 3) are in; space, if in none."""
    thickness = np.ptp(points.reshape(-1, 3), axis=0)
    flat = [across for across in (2, 1, 0) if thickness[across] < FLAT]
    return {2: "xy", 1: "xz", 0: "yz"}[flat[0]] if flat else "space"


def _arms(axes: Any, scene: Scene, chosen: Any, shares: Array) -> None:
    colours = fading(shares)
    for arm in scene.arms:
        draw_arms(axes, arm[chosen], colours)
        last = arm[chosen[-1]]
        axes.plot(*last.T, color=colours[-1], linewidth=3.2, solid_joinstyle="round")
        axes.plot(*last.T, "o", color="white", markeredgecolor=colours[-1], markersize=4, zorder=9)


def _paths(axes: Any, scene: Scene, shares: Array) -> None:
    colours = fading(shares)
    for arm in scene.arms:
        draw_paths(axes, arm[:, 1:-1], colours)
        draw_paths(axes, arm[:, -1:], colours, 2.6)


def _mark(axes: Any, scene: Scene) -> None:
    """The base, and targets as crosses, or as a path where there are many."""
    base = scene.arms[0][0, 0]
    axes.plot(*([x] for x in base), "s", color=GREY, markersize=7)
    if scene.goals is not None:
        look = {"color": ORANGE, "markersize": 9, "markeredgewidth": 2.0}
        if len(scene.goals) < 8:
            axes.plot(*scene.goals.T, "x", zorder=10, **look)
        else:
            axes.plot(*scene.goals.T, color=ORANGE, linewidth=1.6)


def _same_limits(left: Any, right: Any, directions: int) -> None:
    for name in AXES[:directions]:
        limits = [getattr(axes, f"get_{name}lim")() for axes in (left, right)]
        for axes in (left, right):
            getattr(axes, f"set_{name}lim")(np.min(limits), np.max(limits))


def _finish(axes: Any, scene: Scene) -> None:
    if len(scene.seen) == 3:
        space_axes(axes)
        return
    axes.set_aspect("equal")
    axes.set_xlabel(f"{AXES[scene.seen[0]]} [m]", fontsize=9)
    axes.set_ylabel(f"{AXES[scene.seen[1]]} [m]", fontsize=9)
    plain(axes)


def _time_bar(figure: Figure, t: Array) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    shades = ScalarMappable(Normalize(t[0], t[-1]), fading_map())
    bar = figure.colorbar(
        shades, ax=figure.axes, location="bottom", shrink=0.5, aspect=50, pad=0.03
    )
    bar.set_label("time [s]", fontsize=9)
    bar.ax.tick_params(labelsize=8, colors=GREY)
    bar.outline.set_visible(False)
