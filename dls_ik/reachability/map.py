# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Reachability maps, the quantities derived from them, and their files (``.npz`` or ``.zarr``)."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from dls_ik.core.types import Array
from dls_ik.reachability.grid import Grid, ReachabilityError
from dls_ik.reachability.settings import FORMAT, MapSettings
from dls_ik.reachability.voxels import Voxels
from dls_ik.text import quoted

MAP_SUFFIXES = (".npz", ".zarr")
ABOUT_ENTRY = "about"  # name of the entry of a file that contains settings and versions


@dataclass(frozen=True, eq=False)
class ReachabilityMap:
    """Number of orientations that an arm reaches in each voxel, and the dexterity of the arm there.

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
        """Share (nx, ny, nz) of the orientations reached in each voxel, the reachability index.

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
        """Share (nx, ny, nz) of the poses with solutions whose solutions are all in collision.

        Poses without any solution are not counted.
        """
        lost = self.voxels.in_collision
        share: Array = lost / np.maximum(self.voxels.reached + lost, 1)
        return share

    def extent(self, i: int) -> tuple[float, float]:
        """Return the range [m] along axis i (0 to 2) that contains the reached voxels and the base.

        Voxels that are only reached in collision are included. The range has a margin at both ends.
        """
        some = self.voxels.reached + self.voxels.in_collision
        layers = np.flatnonzero(some.any(axis=tuple({0, 1, 2} - {i})))
        places = [0.0, self.shoulder[i], *self.grid.axis(i)[layers]]
        margin = 1.5 * self.settings.resolution
        return min(places) - margin, max(places) + margin

    def at(self, point: Any) -> tuple[int, int, int]:
        """Return the index (i, j, k) of the voxel closest to a point (3,) [m] in the base frame."""
        i, j, k = (self.grid.layer(axis, float(x)) for axis, x in enumerate(point))
        return i, j, k

    def summary(self) -> dict[str, Any]:
        """Return the settings and the totals of the map as a dict for JSON."""
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
        """Write the map to a file ``.npz`` or a store ``.zarr``.

        The file is written completely or not at all.

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
            ReachabilityError: If the file does not exist, or contains no map.
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
    """Check that a map can be written to a path, and return the path.

    Raises:
        ReachabilityError: If no map can be written to the path; the message gives the reason.
    """
    store = Path(path)
    if store.suffix.lower() not in MAP_SUFFIXES:
        raise ReachabilityError(f"a map must end in {' or '.join(MAP_SUFFIXES)}; got {store.name}")
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
    """Return the arrays of a file, with zeros for `in_collision` if an old version wrote it."""
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
            "a .zarr store needs the package zarr: pip install 'dls-ik[zarr]', or use .npz"
        ) from error
