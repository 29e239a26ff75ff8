"""Maps: compute one or resume it, its figures, and its file, ``.npz`` or ``.zarr``."""

from __future__ import annotations

import json
import os
import platform
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from dls_ik import __version__
from dls_ik.core.types import Array
from dls_ik.model.load import find_tree
from dls_ik.model.robot import RobotModel
from dls_ik.reachability.chunks import Voxels, dask_cluster, local_threads, run_chunks
from dls_ik.reachability.grid import (
    RESOLUTION,
    RESTARTS,
    TOLERANCE,
    Grid,
    ReachabilityError,
    reach_ball,
)
from dls_ik.reachability.parts import (
    FolderParts,
    MemoryParts,
    differences,
    open_parts,
    parts_folder,
)
from dls_ik.reachability.settings import FORMAT, MapJob, MapSettings, new_job
from dls_ik.text import quoted

SUFFIXES = (".npz", ".zarr")
ABOUT = "about"  # the entry with settings and versions


@dataclass(frozen=True, eq=False)
class ReachabilityMap:
    """The share of orientations that an arm reaches in each voxel, and how well it moves there.

    Attributes:
        settings: Robot, region and accuracy of the map.
        voxels: Arrays (nx, ny, nz), see :class:`dls_ik.reachability.Voxels`.
        shoulder: (3,) centre of the ball that bounds the reach [m].
        versions: Versions of the packages that computed it.
    """

    settings: MapSettings
    voxels: Voxels
    shoulder: tuple[float, float, float]
    versions: dict[str, str]

    @property
    def grid(self) -> Grid:
        """The grid of the voxels."""
        return self.settings.grid

    @property
    def index(self) -> Array:
        """The reachability index (nx, ny, nz), the share of the orientations that is reached.

        Defined as in Zacharias, Borst & Hirzinger 2007, with inverse kinematics in every voxel.
        """
        return self.voxels.reached / self.settings.orientations

    @property
    def volume(self) -> float:
        """Volume of the voxels in which some orientation is reached [m^3]."""
        return float(np.count_nonzero(self.voxels.reached)) * self.settings.resolution**3

    def extent(self, i: int) -> tuple[float, float]:
        """Return the ends [m] along axis i of the reached voxels and the base, with a margin."""
        layers = np.flatnonzero(self.voxels.reached.any(axis=tuple({0, 1, 2} - {i})))
        places = [0.0, self.shoulder[i], *self.grid.axis(i)[layers]]
        margin = 1.5 * self.settings.resolution
        return min(places) - margin, max(places) + margin

    def at(self, point: Any) -> tuple[int, int, int]:
        """Return the voxel (i, j, k) that holds a point (3,) [m], or the nearest one."""
        i, j, k = (self.grid.layer(axis, float(x)) for axis, x in enumerate(point))
        return i, j, k

    def summary(self) -> dict[str, Any]:
        """Return the figures of the map as a whole, for JSON."""
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
            settings = MapSettings.from_json(about["settings"])
            shoulder = tuple(map(float, about["shoulder"]))
            found = cls(settings, Voxels(**arrays), shoulder, about["versions"])  # type: ignore[arg-type]
        except Exception as error:
            raise ReachabilityError(f"{quoted(os.fspath(path))} holds no map: {error}") from error
        if settings.format != FORMAT or any(a.shape != settings.shape for a in found.voxels):
            raise ReachabilityError(f"{quoted(os.fspath(path))} holds a map of another format")
        return found


def checked_store(path: str | os.PathLike[str]) -> Path:
    """Refuse a path that no map can be written to.

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


# Computing a map

Progress = Callable[[int, int], None]  # finished chunks, all chunks


def reachability_map(
    robot: RobotModel | str | os.PathLike[str],
    resolution: float = RESOLUTION,
    orientations: int | None = None,
    *,
    base: str | None = None,
    tip: str | None = None,
    region: Sequence[float] | None = None,
    task: str = "pose",
    tolerance: float = TOLERANCE,
    max_restarts: int = RESTARTS,
    random_seed: int = 0,
    out: str | os.PathLike[str] | None = None,
    scheduler: str | None = None,
    progress: Progress | None = None,
) -> ReachabilityMap:
    """Compute which poses of a workspace an arm reaches, and how well it moves there.

    Args:
        robot: a robot, the name of a shipped one, or the path of a file (URDF, xacro, DH).
        resolution: edge of a voxel [m].
        orientations: number tried in each voxel, spread evenly; default: 64.
        base: first link of the chain, and tip: its last; found where there is only one.
        region: x0 x1 y0 y1 z0 z1 [m] in the base frame; default: the reach of the arm.
        task: ``pose``; ``pointing``, only the direction of the tool's z axis; or ``position``.
        tolerance: position and rotation error allowed [m, rad].
        max_restarts: restarts after which a pose counts as not reached.
        random_seed: seed of the restarts.
        out: file ``.npz`` or store ``.zarr``. Finished chunks are kept beside it in a folder
            ``.parts`` until the map is complete: the same call resumes an interrupted map.
        scheduler: address of a Dask scheduler; default: the threads of this machine.
        progress: called with the number of finished chunks and of all chunks.

    Returns:
        The map; read from `out` where that holds a map with the same settings.

    Raises:
        DlsIkError: invalid arguments, another map in `out`, or no such scheduler.
    """
    arm = find_robot(robot, base, tip)
    job = new_job(arm, resolution, orientations, region, task, tolerance, max_restarts, random_seed)
    return compute(job, out, scheduler, progress)


def compute(
    job: MapJob,
    out: str | os.PathLike[str] | None = None,
    scheduler: str | None = None,
    progress: Progress | None = None,
) -> ReachabilityMap:
    """Compute the map of a checked job; see :func:`reachability_map`."""
    if out is None:
        memory = MemoryParts()
        _complete(job, memory, scheduler, progress)
        return _merged(job, memory)
    store = checked_store(out)
    found = stored_map(job, store)
    if found is not None and not parts_folder(store).exists():
        return found
    with open_parts(store, job.settings) as parts:
        if found is None:
            _complete(job, parts, scheduler, progress)
            found = _merged(job, parts)
            found.save(store)
        parts.remove()
    return found


def stored_map(job: MapJob, store: Path) -> ReachabilityMap | None:
    """Return the map of a job if its file is complete, else None.

    Raises:
        ReachabilityError: the file holds something else.
    """
    if not store.exists():
        return None
    found = ReachabilityMap.load(store)
    differing = differences(found.settings.as_json(), job.settings.as_json())
    if differing:
        raise ReachabilityError(
            f"{store} holds a map with other settings ({differing}): write to another file, or "
            "remove it"
        )
    return found


def find_robot(
    robot: RobotModel | str | os.PathLike[str], base: str | None, tip: str | None
) -> RobotModel:
    """Return the robot itself, or load it from a shipped name, a file or URDF text."""
    if isinstance(robot, RobotModel):
        if base is None and tip is None:
            return robot
        return RobotModel.from_tree(robot.tree, base or robot.base, tip or robot.tip)
    given = os.fspath(robot)
    if given.lstrip("\ufeff \t\r\n").startswith("<"):
        return RobotModel.from_urdf(given, base, tip)
    return RobotModel.from_tree(find_tree(given), base, tip)


def _complete(
    job: MapJob, parts: FolderParts | MemoryParts, scheduler: str | None, progress: Progress | None
) -> None:
    """Solve the missing chunks."""
    total, finished = job.settings.chunks, parts.finished()
    count = len(finished)

    def keep(chunk: int, voxels: Voxels) -> None:
        nonlocal count
        parts.keep(chunk, voxels)
        count += 1
        if progress is not None:
            progress(count, total)

    if progress is not None:
        progress(count, total)
    # A random order, so that the first chunks tell how long the others take.
    order: list[int] = np.random.default_rng(0).permutation(total).tolist()
    missing = [chunk for chunk in order if chunk not in finished]
    if missing:
        with local_threads() if scheduler is None else dask_cluster(scheduler) as (executor, depth):
            run_chunks(job, missing, executor, depth, keep)


def _merged(job: MapJob, parts: FolderParts | MemoryParts) -> ReachabilityMap:
    settings = job.settings
    chunks = [parts.load(chunk) for chunk in range(settings.chunks)]
    fields = (np.concatenate(arrays) for arrays in zip(*chunks, strict=True))
    voxels = Voxels(*(array.reshape(settings.shape) for array in fields))
    x, y, z = (float(c) for c in reach_ball(job.solver().robot).centre)
    versions = {"dls_ik": __version__, "python": platform.python_version()}
    versions |= {name: version(name) for name in ("numpy", "numba")}
    return ReachabilityMap(settings, voxels, (x, y, z), versions)
