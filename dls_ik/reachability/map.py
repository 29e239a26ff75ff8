"""A finished map: its numbers, what they sum up to, and its file, ``.npz`` or ``.zarr``."""

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
from dls_ik.reachability.chunk import Voxels
from dls_ik.reachability.grid import Grid, ReachabilityError
from dls_ik.reachability.settings import FORMAT, Settings
from dls_ik.text import quoted

SUFFIXES = (".npz", ".zarr")
ABOUT = "about"  # the entry with settings and versions


@dataclass(frozen=True, eq=False)
class ReachabilityMap:
    """What share of the orientations the arm reaches in each voxel, and how well it moves there.

    Attributes:
        settings: What the map is of.
        voxels: Arrays (nx, ny, nz), see :class:`dls_ik.reachability.Voxels`.
        shoulder: (3,) centre of the ball that bounds the reach [m].
        versions: Of the packages that it was computed with.
    """

    settings: Settings
    voxels: Voxels
    shoulder: tuple[float, float, float]
    versions: dict[str, str]

    @property
    def grid(self) -> Grid:
        """Where the voxels are."""
        return self.settings.grid

    @property
    def index(self) -> Array:
        """The reachability index (nx, ny, nz), the share of the orientations that is reached.

        As Zacharias, Borst & Hirzinger 2007 have it, by inverse kinematics in every voxel.
        """
        return self.voxels.reached / self.settings.orientations

    @property
    def volume(self) -> float:
        """Volume of the voxels in which some orientation is reached [m^3]."""
        return float(np.count_nonzero(self.voxels.reached)) * self.settings.resolution**3

    def extent(self, i: int) -> tuple[float, float]:
        """Ends, along axis i, of what is reached and of the base, with a voxel of room [m]."""
        layers = np.flatnonzero(self.voxels.reached.any(axis=tuple({0, 1, 2} - {i})))
        places = [0.0, self.shoulder[i], *self.grid.axis(i)[layers]]
        room = 1.5 * self.settings.resolution
        return min(places) - room, max(places) + room

    def at(self, point: Any) -> tuple[int, int, int]:
        """The voxel (i, j, k) that holds a point (3,) [m], or the nearest one."""
        i, j, k = (self.grid.layer(axis, float(x)) for axis, x in enumerate(point))
        return i, j, k

    def summary(self) -> dict[str, Any]:
        """The figures of the map as a whole, for JSON."""
        some = self.voxels.reached > 0
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
            "volume": self.volume,
            "mean_index": float(self.index[some].mean()) if some.any() else 0.0,
            "largest_index": float(self.index.max()),
            "largest_manipulability": float(best.max()) if some.any() else 0.0,
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the map to one file ``.npz`` or one store ``.zarr``, whole or not at all.

        Raises:
            ReachabilityError: another suffix, or it cannot be written.
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
        """Read a map.

        Raises:
            ReachabilityError: no such file, or it holds no map.
        """
        store = Path(path)
        if not store.exists():
            raise ReachabilityError(f"there is no map {quoted(os.fspath(path))}")
        try:
            arrays, about = _read(store)
            settings = Settings.from_json(about["settings"])
            shoulder = tuple(map(float, about["shoulder"]))
            found = cls(settings, Voxels(**arrays), shoulder, about["versions"])  # type: ignore[arg-type]
        except Exception as error:
            raise ReachabilityError(f"{quoted(os.fspath(path))} holds no map: {error}") from error
        if settings.format != FORMAT or any(a.shape != settings.shape for a in found.voxels):
            raise ReachabilityError(f"{quoted(os.fspath(path))} holds a map of another format")
        return found


def checked_store(path: str | os.PathLike[str]) -> Path:
    """Refuse, before the work begins, what no map could be written to.

    Raises:
        ReachabilityError: the reason.
    """
    store = Path(path)
    if store.suffix.lower() not in SUFFIXES:
        raise ReachabilityError(f"a map is stored as {' or '.join(SUFFIXES)}, not {store.name}")
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
        group.attrs[ABOUT] = about
        for name, array in voxels._asdict().items():
            group.create_array(name, data=array)
    else:
        with part.open("wb") as file:
            np.savez_compressed(file, **voxels._asdict(), about=np.array(json.dumps(about)))


def _read(store: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    if _is_zarr(store):
        group = _zarr().open_group(str(store), mode="r")
        return {name: np.asarray(group[name]) for name in Voxels._fields}, dict(group.attrs[ABOUT])
    if not store.is_file():
        raise OSError("no regular file")
    with np.load(store, allow_pickle=False) as file:
        return {name: file[name] for name in Voxels._fields}, json.loads(str(file[ABOUT]))


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
