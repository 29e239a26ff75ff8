# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Stick figures of an arm: at several times of a motion, or in alternative configurations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dls_ik.core.types import Array
from dls_ik.errors import OptionError, PoseError
from dls_ik.model.robot import RobotModel
from dls_ik.plot.canvas import (
    BLUE,
    GREY,
    ORANGE,
    PALE,
    checked_motion,
    heading,
    new_figure,
    panel_title,
    plain,
    series_look,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

AXES = "xyz"
Colour = tuple[float, float, float, float]
ELEVATION, AZIMUTH = 26.0, -52.0  # [deg] view direction of 3D pictures
# Minimum extent of an axis, and of an axis that has ticks, relative to the largest extent
MIN_EXTENT, MIN_TICKED_EXTENT = 0.04, 0.15
MAX_WIDTH, MAX_HEIGHT = 0.93, 0.86  # maximum size of the box without labels, relative to axes
POINT_TOLERANCE = 1e-9  # [m] maximum distance of points that count as equal
VIEWS = {"space": (0, 1, 2), "xy": (0, 1), "xz": (0, 2), "yz": (1, 2)}
MAX_FLAT = 1e-6  # [m] a motion that extends less normal to a plane is drawn in that plane


class Scene(NamedTuple):
    """Geometry of an arm and a target that both panels of :func:`stroboscope` draw."""

    arms: list[Array]  # one array per tip, (k, m, 2 or 3): m points of the arm at k instants [m]
    goals: Array | None  # (j, 2 or 3) target points [m]
    seen: tuple[int, ...]  # drawn coordinates: 0 for x, 1 for y, 2 for z


def stroboscope(
    robot: RobotModel,
    times: ArrayLike,
    q: ArrayLike,
    target: ArrayLike | None = None,
    view: str = "auto",
    count: int = 24,
    title: str = "The arm, pale to dark",
) -> Figure:
    """Draw the arm at several times of a motion, and the paths of all joints.

    The style follows Tabaczynski 2005.

    Args:
        robot: Robot.
        times: (k,) times [s].
        q: (k, n) joint positions [rad or m].
        target: Target point (3,), or points of a path (j, 3) [m]; fewer than 8 points are drawn as
            crosses, otherwise a line through the points is drawn.
        view: ``space`` for 3D, or a plane of the base frame: ``xy``, ``xz``, ``yz``. ``auto``
            selects the plane in which the arm moves, or ``space`` if there is none.
        count: Number of times, evenly spaced, at which the arm is drawn; at least 2.
        title: Title of the picture.

    Raises:
        JointValueError: If the joint positions do not fit the robot or the times.
        PoseError: If the target is not valid.
        OptionError: If the view is unknown or `count` is below 2.
        DlsIkError: If matplotlib is not installed.
    """
    t, values = checked_motion(robot, times, q)
    scene = _scene(arm_points(robot, values), target, view)
    if count < 2:
        raise OptionError(f"count must be at least 2 instants; got {count}")
    figure = new_figure(11.0, 5.6)
    kind: Any = {"projection": "3d"} if len(scene.seen) == 3 else {}
    left, right = (figure.add_subplot(1, 2, i, **kind) for i in (1, 2))
    chosen, shares = instants(t, count), (t - t[0]) / (t[-1] - t[0])
    _draw_instants(left, scene, chosen, shares[chosen])
    panel_title(left, f"{robot.name} at {len(chosen)} instants")
    _draw_joint_paths(right, scene, shares)
    whose = "the tip's" if len(robot.tips) == 1 else "the tips'"
    panel_title(right, f"paths of the joints, {whose} bold")
    for axes in (left, right):
        _mark(axes, scene)
    _share_limits(left, right, len(scene.seen))
    for axes in (left, right):
        _finish(axes, scene)
    _time_bar(figure, t)
    heading(figure, title)
    return figure


def configurations(
    robot: RobotModel,
    q: ArrayLike,
    target: ArrayLike | None = None,
    view: str = "auto",
    labels: Sequence[str] = (),
    title: str = "Configurations of the arm",
) -> Figure:
    """Draw alternative configurations of an arm, such as :meth:`dls_ik.IkSolver.solve_all` finds.

    Unlike in :func:`stroboscope`, the configurations have no order and no time: each has a colour
    of its own, and no path connects them.

    Args:
        robot: Robot.
        q: (k, n) joint positions [rad or m].
        target: As for :func:`stroboscope`.
        view: As for :func:`stroboscope`.
        labels: k names for the legend; by default the numbers 1 to k.
        title: Title of the picture.

    Raises:
        JointValueError: If the joint positions do not fit the robot.
        PoseError: If the target is not valid.
        OptionError: If the view is unknown, or the number of labels is not k.
        DlsIkError: If matplotlib is not installed.
    """
    values = np.atleast_2d(robot.validated(np.atleast_2d(np.asarray(q, dtype=np.float64))))
    names = list(labels) or [str(i + 1) for i in range(len(values))]
    if len(names) != len(values):
        raise OptionError(
            f"labels must have {len(values)} names, one per row of q; got {len(names)}"
        )
    scene = _scene(arm_points(robot, values), target, view)
    figure = new_figure(7.0, 5.6)
    kind: Any = {"projection": "3d"} if len(scene.seen) == 3 else {}
    axes = figure.add_subplot(1, 1, 1, **kind)
    for i, name in enumerate(names):
        look: Any = {**series_look(i), "linewidth": 2.2, "solid_joinstyle": "round"}
        for k, arm in enumerate(scene.arms):
            axes.plot(*arm[i].T, label=name if k == 0 else None, **look)
            dots = {"markeredgecolor": look["color"], "markersize": 4, "zorder": 9}
            axes.plot(*arm[i].T, "o", color="white", **dots)
    _mark(axes, scene)
    _finish(axes, scene)
    figure.legend(loc="outside right center", frameon=False, fontsize=9)
    heading(figure, title)
    return figure


def _scene(arms: list[Array], target: ArrayLike | None, view: str) -> Scene:
    """Project the points of the arm and the target to the coordinates of the view.

    Args:
        arms: Points (k, m, 3) of the arm at k times for each tip [m].
        target: Points to mark, or None.
        view: View as in :func:`stroboscope`.

    Raises:
        OptionError: If the view is unknown.
        PoseError: If the target is not valid.
    """
    seen = VIEWS.get(_flat_view(np.concatenate(arms, axis=1)) if view == "auto" else view)
    if seen is None:
        raise OptionError(f"view must be one of auto, {', '.join(VIEWS)}; got {view!r}")
    goals = None
    if target is not None:
        goals = np.atleast_2d(np.asarray(target, dtype=np.float64))
        if goals.ndim != 2 or goals.shape[1] != 3 or not np.isfinite(goals).all():
            raise PoseError(
                f"target must be (3,) or (j, 3) finite numbers; got shape {np.shape(target)}"
            )
        goals = goals[:, seen]
    return Scene([_moving_points(arm)[..., seen] for arm in arms], goals, seen)


def _flat_view(points: Array) -> str:
    """Return the name of the view in whose plane all points (k, m, 3) lie, or ``space`` if none."""
    thickness = np.ptp(points.reshape(-1, 3), axis=0)
    flat = [
        view for view, across in (("xy", 2), ("xz", 1), ("yz", 0)) if thickness[across] < MAX_FLAT
    ]
    return flat[0] if flat else "space"


def _moving_points(points: Array) -> Array:
    """Remove points of the arm that always coincide with the previous point along the arm.

    Args:
        points: (k, m, 3) positions of m points of the arm at k times [m].
    """
    apart = np.linalg.norm(np.diff(points, axis=1), axis=2).max(axis=0) > POINT_TOLERANCE
    return points[:, np.concatenate([[True], apart])]


def _draw_instants(axes: Any, scene: Scene, chosen: Any, shares: Array) -> None:
    """Draw the arm at the chosen times, with a thick line at the last one.

    Args:
        axes: Axes to draw in.
        scene: Geometry to draw.
        chosen: Indices of the times.
        shares: Chosen times relative to the duration, which determine the colours.
    """
    colours = fading(shares)
    for arm in scene.arms:
        draw_arms(axes, arm[chosen], colours)
        last = arm[chosen[-1]]
        axes.plot(*last.T, color=colours[-1], linewidth=3.2, solid_joinstyle="round")
        axes.plot(*last.T, "o", color="white", markeredgecolor=colours[-1], markersize=4, zorder=9)


def _draw_joint_paths(axes: Any, scene: Scene, shares: Array) -> None:
    """Draw the paths of joints and tips; `shares` (k,) are the times relative to the duration."""
    colours = fading(shares)
    for arm in scene.arms:
        _draw_paths(axes, arm[:, 1:-1], colours, 0.9)
        _draw_paths(axes, arm[:, -1:], colours, 2.6)


def _draw_paths(axes: Any, points: Array, colours: Sequence[Any], width: float) -> None:
    """Draw the paths of m points over k times.

    Args:
        axes: Axes to draw in.
        points: (k, m, 2) or (k, m, 3) positions of the points [m].
        colours: Colour at each of the k times.
        width: Width of the lines [pt].
    """
    from matplotlib.collections import LineCollection
    from mpl_toolkits.mplot3d.art3d import Line3DCollection  # type: ignore[import-untyped]

    in_space = points.shape[2] == 3
    for path in np.moveaxis(points, 1, 0):
        stretches = np.stack([path[:-1], path[1:]], axis=1)
        kind = Line3DCollection if in_space else LineCollection
        axes.add_collection(
            kind(list(stretches), colors=colours[1:], linewidths=width, capstyle="round")
        )
        if in_space:
            axes.auto_scale_xyz(*path.T)
    if not in_space:
        axes.autoscale_view()


def _mark(axes: Any, scene: Scene) -> None:
    """Mark the base, and the target by crosses, or by a line if it has at least 8 points."""
    base = scene.arms[0][0, 0]
    axes.plot(*([x] for x in base), "s", color=GREY, markersize=7)
    if scene.goals is not None:
        look = {"color": ORANGE, "markersize": 9, "markeredgewidth": 2.0}
        if len(scene.goals) < 8:
            axes.plot(*scene.goals.T, "x", zorder=10, **look)
        else:
            axes.plot(*scene.goals.T, color=ORANGE, linewidth=1.6)


def _share_limits(left: Any, right: Any, directions: int) -> None:
    """Set the limits of the first `directions` axes of both panels to their common range."""
    for name in AXES[:directions]:
        limits = [getattr(axes, f"get_{name}lim")() for axes in (left, right)]
        for axes in (left, right):
            getattr(axes, f"set_{name}lim")(np.min(limits), np.max(limits))


def _finish(axes: Any, scene: Scene) -> None:
    """Set the scale and the axis labels of a panel."""
    if len(scene.seen) == 3:
        space_axes(axes)
        return
    axes.set_aspect("equal")
    plain(axes, f"{AXES[scene.seen[0]]} [m]", f"{AXES[scene.seen[1]]} [m]")


def _time_bar(figure: Figure, t: Array) -> None:
    """Add a colour bar that shows which colour stands for which of the times t (k,) [s]."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    shades = ScalarMappable(Normalize(t[0], t[-1]), _fading_map())
    bar = figure.colorbar(
        shades, ax=figure.axes, location="bottom", shrink=0.5, aspect=50, pad=0.03
    )
    bar.set_label("time [s]", fontsize=9)
    bar.ax.tick_params(labelsize=8, colors=GREY)
    bar.outline.set_visible(False)


def arm_points(robot: RobotModel, q: Array) -> list[Array]:
    """Return the positions of base, joints and tip in the base frame at q (k, n) [rad or m].

    A prismatic joint has two points: one at joint position 0, one at the current joint position.

    Returns:
        For each tip, the positions (k, m, 3) [m] of m points.
    """
    return [
        np.array([_stick_figure(robot, link, offset, row) for row in q])
        for link, offset in zip(robot.tips, robot.offsets, strict=True)
    ]


def _stick_figure(robot: RobotModel, tip: str, offset: Array, q: Array) -> Array:
    """Return the positions (m, 3) [m] of the base, the joints and the tip, in the base frame.

    Args:
        robot: Robot.
        tip: Name of the tip link.
        offset: (4, 4) pose of the tip in the frame of the tip link.
        q: (n,) joint positions [rad or m].
    """
    values = robot.tree.values(robot.named(q))
    T = np.eye(4)
    places = [T[:3, 3]]
    for joint in robot.tree.path(robot.base, tip):
        T = T @ joint.origin
        places.append(T[:3, 3])
        T = T @ joint.motion(values.get(joint.name, 0.0))
        if joint.kind == "prismatic":  # adds a second point, at the current joint position
            places.append(T[:3, 3])
    places.append((T @ offset)[:3, 3])
    return np.array(places)


def instants(t: Array, count: int) -> NDArray[np.int64]:
    """Return the indices of at most `count` of the times t (k,) that are nearly evenly spaced.

    The first and the last time are included.
    """
    wanted = np.linspace(t[0], t[-1], count)
    after = np.searchsorted(t, wanted).clip(1, len(t) - 1)
    nearest = np.where(wanted - t[after - 1] < t[after] - wanted, after - 1, after)
    return np.unique(nearest)


def fading(shares: Array) -> list[Colour]:
    """Return a colour for each time, given relative to the duration: pale at 0, dark at 1."""
    shades = _fading_map()
    return [shades(float(share)) for share in shares]


def _fading_map() -> Any:
    """Return the matplotlib colour map from pale to dark."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("fading", (PALE, "#6FA8D6", BLUE, "#003A5C"))


def draw_arms(axes: Any, points: Array, colours: Sequence[Any], width: float = 1.2) -> None:
    """Draw k configurations of an arm as lines through m points.

    Args:
        axes: Axes to draw in.
        points: (k, m, 2) or (k, m, 3) positions of the points [m].
        colours: Colour of each configuration.
        width: Width of the lines [pt].
    """
    for arm, colour in zip(points, colours, strict=True):
        axes.plot(*arm.T, color=colour, linewidth=width, solid_joinstyle="round")


def space_axes(axes: Any) -> None:
    """Set equal scales, labels and the view direction of 3D axes."""
    from matplotlib.ticker import MaxNLocator

    limits = np.array([getattr(axes, f"get_{name}lim")() for name in AXES])
    extent = np.ptp(limits, axis=1)
    min_extent = MIN_EXTENT * extent.max()
    for name, (low, high), is_thin in zip(AXES, limits, extent < min_extent, strict=True):
        if is_thin:
            half = 0.5 * min_extent
            getattr(axes, f"set_{name}lim")(0.5 * (low + high) - half, 0.5 * (low + high) + half)
    extent = np.maximum(extent, min_extent)
    axes.set_box_aspect(extent, zoom=_zoom(extent))
    axes.view_init(elev=ELEVATION, azim=AZIMUTH)
    ticks = np.clip(np.round(5.0 * extent / extent.max()), 1, 4).astype(int).tolist()
    has_ticks = extent > MIN_TICKED_EXTENT * extent.max()
    for name, is_ticked, count in zip(AXES, has_ticks, ticks, strict=True):
        if not is_ticked:
            getattr(axes, f"set_{name}ticks")([])
            continue
        getattr(axes, f"set_{name}label")(
            f"{name} [m]", fontsize=8, labelpad=-1.0 if name == "z" else 2.0
        )
        getattr(axes, f"{name}axis").set_major_locator(MaxNLocator(count))
    axes.tick_params(labelsize=7, colors=GREY)


def _zoom(extent: Array) -> float:
    """Return the zoom at which a box with edges `extent` (3,) and its labels fit into the axes."""
    x, y, z = extent / np.linalg.norm(extent)
    up, turn = np.radians((ELEVATION, AZIMUTH))
    width = x * abs(np.sin(turn)) + y * np.cos(turn)
    height = z * np.cos(up) + (x * np.cos(turn) + y * abs(np.sin(turn))) * np.sin(up)
    return float(min(1.05, MAX_WIDTH / width, MAX_HEIGHT / height))
