"""The arm as a stick figure, flat or in space: where its links begin, and how it is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.types import Array
from dls_ik.errors import DlsIkError
from dls_ik.model.robot import RobotModel
from dls_ik.plot.canvas import BLUE, GREY, PALE

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
