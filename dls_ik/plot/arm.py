"""The arm as a stick figure, at one instant or many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dls_ik.core.types import Array
from dls_ik.errors import DlsIkError, OptionError, PoseError
from dls_ik.model.robot import RobotModel
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
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

AXES = "xyz"
Colour = tuple[float, float, float, float]
ELEVATION, AZIMUTH = 26.0, -52.0  # [deg] from where a picture in space is seen
THIN, TICKED = 0.04, 0.15  # of the largest extent: the least that is shown, and that has ticks
WIDEST, HIGHEST = 0.93, 0.86  # of the diagonal of what is drawn, that fit with their labels
NEAR = 1e-9  # [m]: the same point


def arm_points(robot: RobotModel, q: Array) -> list[Array]:
    """Where base, joints and tip are at q (k, n): for each tip (k, m, 3) [m], in the base frame.

    A joint that slides counts twice, where its slide begins and where it is.
    """
    return [
        np.array([_skeleton(robot, link, offset, row) for row in q])
        for link, offset in zip(robot.tips, robot.offsets, strict=True)
    ]


def _skeleton(robot: RobotModel, tip: str, offset: Array, q: Array) -> Array:
    """(m, 3) at q (n,)."""
    values = robot.tree.values(dict(zip(robot.joint_names, q.tolist(), strict=True)))
    T = np.eye(4)
    places = [T[:3, 3]]
    for joint in robot.tree.path(robot.base, tip):
        T = T @ joint.origin
        places.append(T[:3, 3])
        T = T @ joint.motion(values.get(joint.name, 0.0))
        if joint.kind == "prismatic":  # what it slides along
            places.append(T[:3, 3])
    places.append((T @ offset)[:3, 3])
    return np.array(places)


def instants(t: Array, count: int) -> NDArray[np.int64]:
    """Indices of some instants (k,), as evenly in time as there are any; first and last one too."""
    wanted = np.linspace(t[0], t[-1], count)
    after = np.searchsorted(t, wanted).clip(1, len(t) - 1)
    nearest = np.where(wanted - t[after - 1] < t[after] - wanted, after - 1, after)
    return np.unique(nearest)


def fading(shares: Array) -> list[Colour]:
    """Colours by the share of the time that is over, 0 to 1: pale to dark."""
    shades = fading_map()
    return [shades(float(share)) for share in shares]


def fading_map() -> Any:
    """The colour map behind :func:`fading`."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("fading", (PALE, "#6FA8D6", BLUE, "#003A5C"))


def draw_arms(axes: Any, points: Array, colours: Sequence[Any], width: float = 1.2) -> None:
    """Configurations (k, m, 2 or 3), each as a line of links in a colour of its own."""
    for arm, colour in zip(points, colours, strict=True):
        axes.plot(*arm.T, color=colour, linewidth=width, solid_joinstyle="round")


def draw_paths(axes: Any, points: Array, colours: Sequence[Any], width: float = 0.9) -> None:
    """The ways of points (k, m, 2 or 3), each stretch in the colour of the instant it leads to."""
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


def moving_points(points: Array) -> Array:
    """Without those (k, m, 3) that are always where their predecessor is."""
    apart = np.linalg.norm(np.diff(points, axis=1), axis=2).max(axis=0) > NEAR
    return points[:, np.concatenate([[True], apart])]


def space_axes(axes: Any) -> None:
    """One scale for all three directions, labels, and a view from above and the side."""
    from matplotlib.ticker import MaxNLocator

    limits = np.array([getattr(axes, f"get_{name}lim")() for name in AXES])
    extent = np.ptp(limits, axis=1)
    for name, (low, high), is_thin in zip(AXES, limits, extent < THIN * extent.max(), strict=True):
        if is_thin:
            half = 0.5 * THIN * extent.max()
            getattr(axes, f"set_{name}lim")(0.5 * (low + high) - half, 0.5 * (low + high) + half)
    extent = np.maximum(extent, THIN * extent.max())
    axes.set_box_aspect(extent, zoom=_zoom(extent))
    axes.view_init(elev=ELEVATION, azim=AZIMUTH)
    ticks = np.clip(np.round(5.0 * extent / extent.max()), 1, 4).astype(int).tolist()
    has_room = extent > TICKED * extent.max()
    for name, is_ticked, count in zip(AXES, has_room, ticks, strict=True):
        if not is_ticked:
            getattr(axes, f"set_{name}ticks")([])
            continue
        getattr(axes, f"set_{name}label")(
            f"{name} [m]", fontsize=8, labelpad=-1.0 if name == "z" else 2.0
        )
        getattr(axes, f"{name}axis").set_major_locator(MaxNLocator(count))
    axes.tick_params(labelsize=7, colors=GREY)


def _zoom(extent: Array) -> float:
    """By how much a box (3,) that is seen from there may grow, and leave room for its labels."""
    x, y, z = extent / np.linalg.norm(extent)
    up, turn = np.radians((ELEVATION, AZIMUTH))
    width = x * abs(np.sin(turn)) + y * np.cos(turn)
    height = z * np.cos(up) + (x * np.cos(turn) + y * abs(np.sin(turn))) * np.sin(up)
    return float(min(1.05, WIDEST / width, HIGHEST / height))


def require_one_tip(robot: RobotModel) -> None:
    """Refuse a robot with several tips, of which this picture could show but one.

    Raises:
        DlsIkError: it has several.
    """
    if len(robot.tips) > 1:
        raise DlsIkError(
            f"this picture takes a robot with one tip, not {', '.join(robot.tips)}; "
            "stroboscope shows them all"
        )


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
