"""The reached voxels in space, with the quarter towards the viewer cut out."""

from __future__ import annotations

from typing import Any

import numpy as np

from dls_ik.core.types import Array
from dls_ik.plot.arm import AXES, space_axes
from dls_ik.plot.canvas import RED
from dls_ik.reachability.map import ReachabilityMap

MOST = 24  # voxels along an axis; finer maps are shown by the mean of several


def draw_solid(axes: Any, found: ReachabilityMap, values: Array, colours: str) -> None:
    """Draw values (nx, ny, nz) from 0 to 1, NaN where there is nothing, as coloured cubes."""
    from matplotlib import colormaps

    step = max(1, -(-max(values.shape) // MOST))
    coarse = _blocks(values, step)
    edge = step * found.settings.resolution
    corners = [found.grid.edges(i)[0] + edge * np.arange(coarse.shape[i] + 1) for i in range(3)]
    kept = np.isfinite(coarse) & ~_front(corners, found.shoulder)
    faces = colormaps[colours](np.nan_to_num(coarse))
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
    _dress(axes, [found.extent(i) for i in range(3)])


def _blocks(values: Array, step: int) -> Array:
    """The mean over cubes of `step` voxels an edge, of those that are reached."""
    padding = [(0, -n % step) for n in values.shape]
    padded = np.pad(values, padding, constant_values=np.nan)
    a, b, c = (n // step for n in padded.shape)
    cubes = padded.reshape(a, step, b, step, c, step).transpose(0, 2, 4, 1, 3, 5)
    flat = cubes.reshape(a, b, c, -1)
    some = np.isfinite(flat)
    total = np.where(some, flat, 0.0).sum(axis=-1)
    return np.where(some.any(axis=-1), total / np.maximum(some.sum(axis=-1), 1), np.nan)


def _front(corners: list[Array], shoulder: tuple[float, float, float]) -> Any:
    """Which cubes are in the quarter that the viewer would look through."""
    x, y = (0.5 * (c[1:] + c[:-1]) for c in corners[:2])
    front = (x >= shoulder[0])[:, None] & (y <= shoulder[1])[None, :]
    return front[:, :, None]


def _dress(axes: Any, extents: list[tuple[float, float]]) -> None:
    for name, extent in zip(AXES, extents, strict=True):
        getattr(axes, f"set_{name}lim")(*extent)
    space_axes(axes)
    axes.set_title("the quarter towards the viewer cut out", fontsize=10, loc="left")
