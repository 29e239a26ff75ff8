# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Pictures of reachability maps: slices through the shoulder, and a 3D view."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.plot.arm import AXES, space_axes
from dls_ik.plot.canvas import GREY, RED, heading, new_figure
from dls_ik.plot.scene import sections
from dls_ik.reachability.grid import ReachabilityError
from dls_ik.reachability.map import ReachabilityMap
from dls_ik.text import listing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dls_ik.scene.planning_scene import PlanningScene

Slices = tuple[tuple[int, int, str], ...]
SLICES: Slices = ((0, 1, "from above"), (0, 2, "from the side"), (1, 2, "from the front"))
EDGE: dict[str, Any] = {"markeredgecolor": "white", "markeredgewidth": 1.2, "linestyle": ""}
COLOUR_MAP = "viridis"
SHOWN = ("index", "manipulability", "collisions")
LOST = "only reached in collision [% of the poses with solutions]"
MAX_DRAWN_VOXELS = 24  # maximum along an axis; finer maps show the mean over blocks of voxels
OUTLINES = "; black: obstacles in the slice"
COUNTED = {"pose": " orientations", "pointing": " directions of the tool"}


class MapColours(NamedTuple):
    """Values that the colours of a picture represent, with their range and label."""

    values: Array  # (nx, ny, nz), NaN if no orientation is reached
    top: float  # value at the upper end of the colours
    label: str  # label of the colour bar


def map_picture(
    found: ReachabilityMap, show: str = "index", scene: PlanningScene | None = None
) -> Figure:
    """Draw a map: three slices through the shoulder and a 3D view, or a single layer of voxels.

    Args:
        found: Map to draw.
        show: ``index``, the share of the orientations that are reached; ``manipulability``, the
            mean over the solutions; or ``collisions``, the share of the poses with solutions whose
            solutions are all in collision.
        scene: Scene with which the map was computed; the slices show outlines of its objects.

    Raises:
        ReachabilityError: If `show` has another value, or the map was computed with another scene.
        DlsIkError: If matplotlib is not installed.
    """
    shown = _shown(found, show)
    if scene is not None and scene.snapshot.digest != found.settings.scene:
        raise ReachabilityError("the map was computed with another scene")
    thick = [n > 1 for n in found.settings.shape]
    if all(thick):
        figure = new_figure(11.0, 10.6)
        grid = figure.add_gridspec(2, 2)
        panels = [figure.add_subplot(grid[i]) for i in range(3)]
        space = figure.add_subplot(grid[3], projection="3d")
        _draw_solid(space, found, shown.values / shown.top)
    else:
        figure = new_figure(7.2, 7.6)
        panels = [figure.subplots()]
    slices = [s for s in SLICES if thick[s[0]] and thick[s[1]]] or SLICES
    for axes, (i, j, view) in zip(panels, slices, strict=False):
        mesh = _slice(axes, found, shown, i, j, view)
        if scene is not None:
            _outline(axes, found, scene, i, j)
    _name_base(panels[0], found)
    _colour_bar(figure, mesh, shown.label)
    heading(figure, _title(found, scene is not None and bool(scene.objects)))
    return figure


def _shown(found: ReachabilityMap, show: str) -> MapColours:
    if show == "index":
        values = np.where(found.voxels.reached > 0, 100.0 * found.index, np.nan)
        return MapColours(values, 100.0, "reachability index [%]")
    if show == "manipulability":
        values = found.voxels.manipulability_mean.astype(float)
        top = float(np.max(values, where=np.isfinite(values), initial=1e-12))
        return MapColours(values, top, "manipulability, mean over the solutions")
    if show == "collisions":
        if not found.settings.scene:
            raise ReachabilityError("the map was computed without a scene: it has no collisions")
        some = found.voxels.reached + found.voxels.in_collision > 0
        return MapColours(np.where(some, 100.0 * found.lost, np.nan), 100.0, LOST)
    raise ReachabilityError(f"show must be one of {listing(SHOWN)}; got {show!r}")


def _slice(axes: Axes, found: ReachabilityMap, shown: MapColours, i: int, j: int, view: str) -> Any:
    """Draw the slice of the map through the shoulder along two axes; return the drawn mesh.

    Args:
        axes: Axes to draw in.
        found: Map to draw.
        shown: Values to draw.
        i: Horizontal axis: 0, 1 or 2 for x, y or z.
        j: Vertical axis.
        view: Name of the view, such as "from above".
    """
    (across,) = {0, 1, 2} - {i, j}
    layer = found.at(found.shoulder)[across]
    values = np.take(shown.values, layer, axis=across)  # (n_i, n_j)
    mesh = axes.pcolormesh(
        found.grid.edges(i),
        found.grid.edges(j),
        values.T,
        vmin=0.0,
        vmax=shown.top,
        cmap=COLOUR_MAP,
    )
    _mark_base(axes, found, i, j)
    axes.set_aspect("equal")
    axes.set_xlim(*found.extent(i))
    axes.set_ylim(*found.extent(j))
    axes.set_xlabel(f"{AXES[i]} [m]", fontsize=9)
    axes.set_ylabel(f"{AXES[j]} [m]", fontsize=9)
    place = f"{AXES[across]} = {found.grid.axis(across)[layer] + 0.0:.2f} m"
    axes.set_title(f"{view}, at {place}", fontsize=10, loc="left")
    axes.tick_params(labelsize=8, colors=GREY)
    return mesh


def _outline(axes: Axes, found: ReachabilityMap, scene: PlanningScene, i: int, j: int) -> None:
    """Draw outlines of the scene's objects in the slice through the shoulder along axes i and j."""
    from matplotlib.collections import LineCollection

    (across,) = {0, 1, 2} - {i, j}
    at = float(found.grid.axis(across)[found.at(found.shoulder)[across]])
    pieces = list(sections(scene, across, at)[:, :, (i, j)])
    for colour, width in (("white", 3.6), ("black", 1.6)):
        axes.add_collection(LineCollection(pieces, colors=colour, linewidths=width), autolim=False)


def _mark_base(axes: Axes, found: ReachabilityMap, i: int, j: int) -> None:
    """Draw the base as a triangle, and the shoulder as a dot unless both coincide in the slice.

    Args:
        axes: Axes to draw in.
        found: Map to draw.
        i: Horizontal axis of the slice: 0, 1 or 2 for x, y or z.
        j: Vertical axis of the slice.
    """
    end = (found.shoulder[i], found.shoulder[j])
    if np.hypot(*end) > found.settings.resolution / 2.0:
        axes.plot([0.0, end[0]], [0.0, end[1]], color="white", linewidth=4.0)
        axes.plot([0.0, end[0]], [0.0, end[1]], color=RED, linewidth=2.0)
        axes.plot(*end, color=RED, marker="o", markersize=7, **EDGE)
    axes.plot(0.0, 0.0, color=RED, marker="^", markersize=11, **EDGE)


def _name_base(axes: Axes, found: ReachabilityMap) -> None:
    from matplotlib.patheffects import withStroke

    axes.annotate(
        found.settings.base,
        (0.0, 0.0),
        (0.0, -9.0),
        textcoords="offset points",
        fontsize=8,
        ha="center",
        va="top",
        color=RED,
        path_effects=[withStroke(linewidth=2.5, foreground="white")],
    )


def _colour_bar(figure: Figure, mesh: Any, label: str) -> None:
    bar = figure.colorbar(
        mesh, ax=figure.axes, location="bottom", shrink=0.6, aspect=40, pad=0.02, fraction=0.05
    )
    bar.set_label(label, fontsize=10)
    bar.ax.tick_params(labelsize=8, colors=GREY)


def _title(found: ReachabilityMap, has_outlines: bool) -> str:
    settings = found.settings
    counted = COUNTED.get(settings.task)
    asked = f", {settings.orientations}{counted}" if counted else ""
    title = f"Reach of {settings.robot}: voxels of {100.0 * settings.resolution:g} cm{asked}"
    if not settings.scene:
        return title
    lost = int(found.voxels.in_collision.sum(dtype=np.int64))
    share = lost / max(lost + int(found.voxels.reached.sum(dtype=np.int64)), 1)
    return f"{title}\ncollisions prevent {share:.1%} of the poses{OUTLINES if has_outlines else ''}"


def _draw_solid(axes: Any, found: ReachabilityMap, values: Array) -> None:
    """Draw a coloured cube for each voxel in 3D, except in the quarter that is cut out.

    Args:
        axes: 3D axes.
        found: Map to draw.
        values: (nx, ny, nz) values from 0 to 1; a voxel with NaN is not drawn.
    """
    from matplotlib import colormaps

    step = max(1, -(-max(values.shape) // MAX_DRAWN_VOXELS))
    coarse = _blocks(values, step)
    edge = step * found.settings.resolution
    corners = [found.grid.edges(i)[0] + edge * np.arange(coarse.shape[i] + 1) for i in range(3)]
    kept = np.isfinite(coarse) & ~_front(corners, found.shoulder)
    faces = colormaps[COLOUR_MAP](np.nan_to_num(coarse))
    axes.voxels(
        *np.meshgrid(*corners, indexing="ij"),
        kept,
        facecolors=faces,
        edgecolors=(1.0, 1.0, 1.0, 0.25),
        linewidth=0.2,
        shade=False,
    )
    axes.plot(*np.transpose([(0.0, 0.0, 0.0), found.shoulder]), color=RED, linewidth=2.0, zorder=9)
    axes.scatter(0.0, 0.0, 0.0, color=RED, marker="^", s=40, zorder=9)
    for i, name in enumerate(AXES):
        getattr(axes, f"set_{name}lim")(*found.extent(i))
    space_axes(axes)
    axes.set_title("the quarter towards the viewer cut out", fontsize=10, loc="left")


def _blocks(values: Array, step: int) -> Array:
    """Return a coarser array: the mean over the voxels in each block of `step`^3 voxels.

    Voxels with NaN, in which no orientation is reached, do not count. A block without other voxels
    is NaN.
    """
    padding = [(0, -n % step) for n in values.shape]
    padded = np.pad(values, padding, constant_values=np.nan)
    a, b, c = (n // step for n in padded.shape)
    cubes = padded.reshape(a, step, b, step, c, step).transpose(0, 2, 4, 1, 3, 5)
    flat = cubes.reshape(a, b, c, -1)
    some = np.isfinite(flat)
    total = np.where(some, flat, 0.0).sum(axis=-1)
    return np.where(some.any(axis=-1), total / np.maximum(some.sum(axis=-1), 1), np.nan)


def _front(corners: list[Array], shoulder: tuple[float, float, float]) -> Any:
    """Return a mask (mx, my, 1) of the cubes in the quarter that is cut out to show the inside.

    Args:
        corners: Coordinates of the boundaries of the cubes along each axis [m].
        shoulder: Corner of the quarter [m].
    """
    x, y = (0.5 * (c[1:] + c[:-1]) for c in corners[:2])
    front = (x >= shoulder[0])[:, None] & (y <= shoulder[1])[None, :]
    return front[:, :, None]
