# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Reachability maps: derived quantities, files (``.npz`` or ``.zarr``) and pictures."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.plot.arm import AXES, space_axes
from dls_ik.plot.canvas import GREY, RED, heading, new_figure
from dls_ik.plot.scene import sections
from dls_ik.reachability.chunks import Voxels
from dls_ik.reachability.settings import (
    FORMAT,
    Grid,
    MapSettings,
    ReachabilityError,
)
from dls_ik.text import listing, quoted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dls_ik.scene.planning_scene import PlanningScene

MAP_SUFFIXES = (".npz", ".zarr")
ABOUT_ENTRY = "about"  # name of the entry with settings and versions in a file


@dataclass(frozen=True, eq=False)
class ReachabilityMap:
    """Map with the orientations that an arm reaches in each voxel, and the dexterity of the arm.

    Attributes:
        settings: Robot, region and accuracy of the map.
        voxels: Results for each voxel, see :class:`dls_ik.reachability.Voxels`.
        shoulder: (3,) centre of a ball that contains all reachable positions, in the base frame
            [m].
        versions: Versions of the packages that computed the map.
    """

    settings: MapSettings
    voxels: Voxels
    shoulder: tuple[float, float, float]
    versions: dict[str, str]

    @property
    def grid(self) -> Grid:
        """Positions and size of the voxels."""
        return self.settings.grid

    @property
    def index(self) -> Array:
        """Return the reachability index (nx, ny, nz), the share of orientations that is reached.

        The index is that of Zacharias, Borst & Hirzinger 2007. Here, inverse kinematics is solved
        for every orientation in every voxel.
        """
        return self.voxels.reached / self.settings.orientations

    @property
    def volume(self) -> float:
        """Total volume of the voxels in which at least one orientation is reached [m^3]."""
        return float(np.count_nonzero(self.voxels.reached)) * self.settings.resolution**3

    @property
    def lost(self) -> Array:
        """Share (nx, ny, nz) of the poses with solutions whose solutions are all in collision."""
        lost = self.voxels.in_collision
        share: Array = lost / np.maximum(self.voxels.reached + lost, 1)
        return share

    def extent(self, i: int) -> tuple[float, float]:
        """Return the range [m] along axis i that contains the reached voxels and the base.

        The range has a margin at both ends.
        """
        some = self.voxels.reached + self.voxels.in_collision
        layers = np.flatnonzero(some.any(axis=tuple({0, 1, 2} - {i})))
        places = [0.0, self.shoulder[i], *self.grid.axis(i)[layers]]
        margin = 1.5 * self.settings.resolution
        return min(places) - margin, max(places) + margin

    def at(self, point: Any) -> tuple[int, int, int]:
        """Return the voxel (i, j, k) that contains a point (3,) [m], or the closest voxel."""
        i, j, k = (self.grid.layer(axis, float(x)) for axis, x in enumerate(point))
        return i, j, k

    def summary(self) -> dict[str, Any]:
        """Return settings and totals of the map as a dict for JSON."""
        some = self.voxels.reached > 0
        lost = self.voxels.in_collision > 0
        best = self.voxels.manipulability_best[some]
        return {
            "robot": self.settings.robot,
            "base": self.settings.base,
            "tip": self.settings.tip,
            "task": self.settings.task,
            "resolution": self.settings.resolution,
            "shape": list(self.settings.shape),
            "orientations": self.settings.orientations,
            "voxels": self.grid.size,
            "voxels_reached": int(some.sum()),
            "poses": self.settings.poses,
            "poses_reached": int(self.voxels.reached.sum(dtype=np.int64)),
            "poses_undecided": int(self.voxels.undecided.sum(dtype=np.int64)),
            "poses_only_in_collision": int(self.voxels.in_collision.sum(dtype=np.int64)),
            "voxels_only_in_collision": int((lost & ~some).sum()),
            "volume": self.volume,
            "mean_index": float(self.index[some].mean()) if some.any() else 0.0,
            "largest_index": float(self.index.max()),
            "largest_manipulability": float(best.max()) if some.any() else 0.0,
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the map to a file ``.npz`` or a store ``.zarr``; an error leaves no partial file.

        Raises:
            ReachabilityError: If the suffix is not supported, or the file cannot be written.
        """
        store = checked_store(path)
        part = store.with_name(f".{store.stem}.{os.getpid()}{store.suffix}")
        about = {
            "settings": self.settings.as_json(),
            "shoulder": list(self.shoulder),
            "versions": self.versions,
        }
        try:
            _write(part, self.voxels, about)
            if _is_zarr(store) and store.is_dir():
                shutil.rmtree(store)
            part.replace(store)
        except OSError as error:
            raise ReachabilityError(f"cannot write {path}: {error.strerror or error}") from error
        finally:
            with suppress(OSError):
                _remove(part)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ReachabilityMap:
        """Read a map from a file ``.npz`` or a store ``.zarr``.

        Raises:
            ReachabilityError: If the file does not exist, or holds no map.
        """
        store = Path(path)
        if not store.exists():
            raise ReachabilityError(f"there is no map {quoted(os.fspath(path))}")
        try:
            arrays, about = _read(store)
            settings = MapSettings.from_json(about["settings"])
            shoulder = tuple(map(float, about["shoulder"]))
            found = cls(settings, Voxels(**arrays), shoulder, about["versions"])  # type: ignore[arg-type]
        except Exception as error:
            raise ReachabilityError(f"{quoted(os.fspath(path))} holds no map: {error}") from error
        if settings.format != FORMAT or any(a.shape != settings.shape for a in found.voxels):
            raise ReachabilityError(f"{quoted(os.fspath(path))} holds a map of another format")
        return found


def checked_store(path: str | os.PathLike[str]) -> Path:
    """Check that a map can be written at a path; return the path.

    Raises:
        ReachabilityError: If no map can be written there; the message gives the reason.
    """
    store = Path(path)
    if store.suffix.lower() not in MAP_SUFFIXES:
        raise ReachabilityError(f"a map is stored as {' or '.join(MAP_SUFFIXES)}, not {store.name}")
    if not store.absolute().parent.is_dir():
        raise ReachabilityError(f"cannot write {path}: there is no directory {store.parent}")
    if not os.access(store.absolute().parent, os.W_OK | os.X_OK):
        raise ReachabilityError(f"cannot write {path}: permission denied")
    if _is_zarr(store):
        _zarr()
    return store


def _write(part: Path, voxels: Voxels, about: dict[str, Any]) -> None:
    if _is_zarr(part):
        group = _zarr().open_group(str(part), mode="w")
        group.attrs[ABOUT_ENTRY] = about
        for name, array in voxels._asdict().items():
            group.create_array(name, data=array)
    else:
        with part.open("wb") as file:
            np.savez_compressed(file, **voxels._asdict(), about=np.array(json.dumps(about)))


def _read(store: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    if _is_zarr(store):
        group = _zarr().open_group(str(store), mode="r")
        arrays = {name: np.asarray(group[name]) for name in Voxels._fields if name in group}
        return _with_collisions(arrays), dict(group.attrs[ABOUT_ENTRY])
    if not store.is_file():
        raise OSError("no regular file")
    with np.load(store, allow_pickle=False) as file:
        arrays = {name: file[name] for name in Voxels._fields if name in file}
        return _with_collisions(arrays), json.loads(str(file[ABOUT_ENTRY]))


def _with_collisions(arrays: dict[str, Any]) -> dict[str, Any]:
    """Return the arrays of a file, with zeros for collisions if an old version wrote the file."""
    return {"in_collision": np.zeros_like(arrays["reached"]), **arrays}


def _remove(part: Path) -> None:
    if part.is_dir():
        shutil.rmtree(part)
    part.unlink(missing_ok=True)


def _is_zarr(store: Path) -> bool:
    return store.suffix.lower() == ".zarr"


def _zarr() -> Any:
    try:
        return import_module("zarr")
    except ImportError as error:
        raise ReachabilityError(
            "a .zarr store needs zarr: pip install 'dls-ik[zarr]', or take .npz"
        ) from error


# Pictures

Slices = tuple[tuple[int, int, str], ...]
SLICES: Slices = ((0, 1, "from above"), (0, 2, "from the side"), (1, 2, "from the front"))
EDGE_STYLE: dict[str, Any] = {"markeredgecolor": "white", "markeredgewidth": 1.2, "linestyle": ""}
COLOUR_MAP = "viridis"
DRAWN_QUANTITIES = ("index", "manipulability", "collisions")
LOST = "only reached in collision [% of what is reached]"
MAX_DRAWN_VOXELS = 24  # maximum voxels along an axis; finer maps show the mean of several voxels
OUTLINES = "; black: obstacles in the slice"
COUNTED_NOUNS = {"pose": " orientations", "pointing": " directions of the tool"}


class MapColours(NamedTuple):
    """Values that the colours of a picture represent."""

    values: Array  # (nx, ny, nz), NaN if no orientation is reached
    top: float  # value at the upper end of the colours
    label: str  # label of the colour bar


def map_picture(
    found: ReachabilityMap, show: str = "index", scene: PlanningScene | None = None
) -> Figure:
    """Draw a map: three slices through the shoulder and a 3D view, or the layer of a flat map.

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
            raise ReachabilityError("the map was computed without a scene: no collisions to show")
        some = found.voxels.reached + found.voxels.in_collision > 0
        return MapColours(np.where(some, 100.0 * found.lost, np.nan), 100.0, LOST)
    raise ReachabilityError(f"a picture shows {listing(DRAWN_QUANTITIES)}, not {show!r}")


def _slice(axes: Axes, found: ReachabilityMap, shown: MapColours, i: int, j: int, view: str) -> Any:
    """Draw the slice along axes i and j that contains the shoulder."""
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
    """Draw outlines of the scene's objects in the slice along axes i and j through the shoulder."""
    from matplotlib.collections import LineCollection

    (across,) = {0, 1, 2} - {i, j}
    at = float(found.grid.axis(across)[found.at(found.shoulder)[across]])
    pieces = list(sections(scene, across, at)[:, :, (i, j)])
    for colour, width in (("white", 3.6), ("black", 1.6)):
        axes.add_collection(LineCollection(pieces, colors=colour, linewidths=width), autolim=False)


def _mark_base(axes: Axes, found: ReachabilityMap, i: int, j: int) -> None:
    """Draw the base as a triangle, and the shoulder as a dot if its coordinates i and j differ."""
    end = (found.shoulder[i], found.shoulder[j])
    if np.hypot(*end) > found.settings.resolution / 2.0:
        axes.plot([0.0, end[0]], [0.0, end[1]], color="white", linewidth=4.0)
        axes.plot([0.0, end[0]], [0.0, end[1]], color=RED, linewidth=2.0)
        axes.plot(*end, color=RED, marker="o", markersize=7, **EDGE_STYLE)
    axes.plot(0.0, 0.0, color=RED, marker="^", markersize=11, **EDGE_STYLE)


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
    counted = COUNTED_NOUNS.get(settings.task)
    asked = f", {settings.orientations}{counted}" if counted else ""
    title = f"Reach of {settings.robot}: voxels of {100.0 * settings.resolution:g} cm{asked}"
    if not settings.scene:
        return title
    lost = int(found.voxels.in_collision.sum(dtype=np.int64))
    share = lost / max(lost + int(found.voxels.reached.sum(dtype=np.int64)), 1)
    return f"{title}\ncollisions take away {share:.1%} of it{OUTLINES if has_outlines else ''}"


def _draw_solid(axes: Any, found: ReachabilityMap, values: Array) -> None:
    """Draw a coloured cube for each value (nx, ny, nz) from 0 to 1, and no cube for NaN."""
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
    """Return a coarser map: the mean of the reached voxels in each block of `step`^3 voxels."""
    padding = [(0, -n % step) for n in values.shape]
    padded = np.pad(values, padding, constant_values=np.nan)
    a, b, c = (n // step for n in padded.shape)
    cubes = padded.reshape(a, step, b, step, c, step).transpose(0, 2, 4, 1, 3, 5)
    flat = cubes.reshape(a, b, c, -1)
    some = np.isfinite(flat)
    total = np.where(some, flat, 0.0).sum(axis=-1)
    return np.where(some.any(axis=-1), total / np.maximum(some.sum(axis=-1), 1), np.nan)


def _front(corners: list[Array], shoulder: tuple[float, float, float]) -> Any:
    """Return a mask of the cubes in the quarter that is cut out, so that the inside is visible."""
    x, y = (0.5 * (c[1:] + c[:-1]) for c in corners[:2])
    front = (x >= shoulder[0])[:, None] & (y <= shoulder[1])[None, :]
    return front[:, :, None]
