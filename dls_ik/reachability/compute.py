# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Computation of maps: finished chunks are kept on disk, to resume a map, or in memory."""

from __future__ import annotations

import io
import json
import logging
import os
import platform
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dls_ik import __version__
from dls_ik.core.jit import fcntl
from dls_ik.model.files import read_file
from dls_ik.model.load import find_tree
from dls_ik.model.robot import RobotModel
from dls_ik.reachability.chunks import Keep, Voxels, dask_cluster, local_threads, run_chunks
from dls_ik.reachability.map import ReachabilityMap, checked_store
from dls_ik.reachability.settings import (
    RESOLUTION,
    RESTARTS,
    TOLERANCE,
    MapJob,
    MapSettings,
    ReachabilityError,
    new_job,
    reach_ball,
)

if TYPE_CHECKING:
    from dls_ik.scene.planning_scene import PlanningScene

Progress = Callable[[int, int], None]  # arguments: finished chunks, all chunks


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
    scene: PlanningScene | None = None,
    out: str | os.PathLike[str] | None = None,
    scheduler: str | None = None,
    progress: Progress | None = None,
) -> ReachabilityMap:
    """Compute the poses of a workspace that an arm reaches, and its dexterity there.

    Args:
        robot: Robot, name of a shipped robot, or path of a file (URDF, xacro, DH).
        resolution: Edge of a voxel [m].
        orientations: Number of orientations per voxel, spread evenly; default: 64.
        base: First link of the chain; default: the only one.
        tip: Last link of the chain; default: the only one.
        region: x0 x1 y0 y1 z0 z1 [m] in the base frame; default: the reach of the arm.
        task: ``pose``; ``pointing``, only the direction of the tool's z axis; or ``position``.
        tolerance: Maximum position and rotation error [m, rad].
        max_restarts: Restarts after which a pose counts as not reached.
        random_seed: Seed of the restarts.
        scene: Scene of the robot, in its current state; only collision-free solutions count.
        out: File ``.npz`` or store ``.zarr``. Until the map is complete, finished chunks are kept
            next to it in a folder ``.parts``; the same call resumes an interrupted map.
        scheduler: Address of a Dask scheduler; default: the threads of this machine.
        progress: Called with the number of finished chunks and of all chunks.

    Returns:
        The map; read from `out` if that holds a map with the same settings.

    Raises:
        DlsIkError: If an argument is not valid, `out` holds another map, or the scheduler does not
            exist.
    """
    arm = find_robot(robot, base, tip)
    job = new_job(
        arm, resolution, orientations, region, task, tolerance, max_restarts, random_seed, scene
    )
    return compute(job, out, scheduler, progress)


def compute(
    job: MapJob,
    out: str | os.PathLike[str] | None,
    scheduler: str | None,
    progress: Progress | None,
) -> ReachabilityMap:
    """Compute the map of a checked job; see :func:`reachability_map`."""
    if out is None:
        kept: dict[int, Voxels] = {}
        _complete(job, set(), kept.__setitem__, scheduler, progress)
        return _merged(job, kept.__getitem__)
    store = checked_store(out)
    found = stored_map(job, store)
    if found is not None and not parts_folder(store).exists():
        return found
    with open_parts(store, job.settings) as parts:
        if found is None:
            _complete(job, parts.finished(), parts.keep, scheduler, progress)
            found = _merged(job, parts.load)
            found.save(store)
        parts.remove()
    return found


def stored_map(job: MapJob, store: Path) -> ReachabilityMap | None:
    """Return the map of a job if its file exists, else None.

    Raises:
        ReachabilityError: If the file holds no map, or a map with other settings.
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
    job: MapJob,
    finished: set[int],
    keep: Keep,
    scheduler: str | None,
    progress: Progress | None,
) -> None:
    """Solve the unfinished chunks."""
    total, count = job.settings.chunks, len(finished)

    def keep_and_count(chunk: int, voxels: Voxels) -> None:
        nonlocal count
        keep(chunk, voxels)
        count += 1
        if progress is not None:
            progress(count, total)

    if progress is not None:
        progress(count, total)
    # In random order, the first chunks give an estimate of the total time.
    order: list[int] = np.random.default_rng(0).permutation(total).tolist()
    missing = [chunk for chunk in order if chunk not in finished]
    if missing:
        with local_threads() if scheduler is None else dask_cluster(scheduler) as (executor, depth):
            run_chunks(job, missing, executor, depth, keep_and_count)


def _merged(job: MapJob, load: Callable[[int], Voxels]) -> ReachabilityMap:
    settings = job.settings
    chunks = [load(chunk) for chunk in range(settings.chunks)]
    fields = (np.concatenate(arrays) for arrays in zip(*chunks, strict=True))
    voxels = Voxels(*(array.reshape(settings.shape) for array in fields))
    x, y, z = (float(c) for c in reach_ball(job.solver().robot).centre)
    versions = {"dls_ik": __version__, "python": platform.python_version()}
    versions |= {name: version(name) for name in ("numpy", "numba")}
    return ReachabilityMap(settings, voxels, (x, y, z), versions)


# Finished chunks

LOG = logging.getLogger("dls_ik")
MANIFEST = "settings.json"
LOCK_NAME = "lock"
CHUNK_NAME = re.compile(r"chunk-(\d+)\.npz")
MAX_PART_BYTES = 64 * 1024 * 1024  # maximum size of a file; a chunk has a few kilobytes


class FolderParts:
    """Finished chunks in a folder, one file each; a file appears only when it is complete."""

    def __init__(self, folder: Path, settings: MapSettings) -> None:
        self._folder, self._settings = folder, settings

    def finished(self) -> set[int]:
        """Return the numbers of the finished chunks."""
        names = (CHUNK_NAME.fullmatch(path.name) for path in self._folder.glob("chunk-*"))
        return {int(match[1]) for match in names if match}

    def remove_damaged(self) -> None:
        """Remove and count unreadable chunks, which are then computed again."""
        damaged = sum(not self._is_whole(chunk) for chunk in self.finished())
        if damaged:
            words = "chunk was" if damaged == 1 else "chunks were"
            LOG.warning("%d %s damaged in %s: computed anew", damaged, words, self._folder)

    def keep(self, chunk: int, voxels: Voxels) -> None:
        """Write a chunk to a temporary file, then rename it.

        Raises:
            ReachabilityError: If the file cannot be written.
        """
        path = self._path(chunk)
        part = path.with_suffix(".part")
        content = io.BytesIO()
        np.savez(content, **voxels._asdict())
        try:
            with part.open("wb") as file:
                file.write(content.getbuffer())
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        except OSError as error:
            with suppress(OSError):
                part.unlink(missing_ok=True)
            raise ReachabilityError(
                f"cannot write {path}: {error.strerror or error}; what was finished is kept"
            ) from error

    def load(self, chunk: int) -> Voxels:
        """Return a finished chunk.

        Raises:
            ReachabilityError: If the file is damaged; it is removed, so that it is computed again.
        """
        path = self._path(chunk)
        first, last = self._settings.voxels(chunk)
        try:
            with np.load(io.BytesIO(read_file(path, MAX_PART_BYTES)), allow_pickle=False) as file:
                voxels = Voxels(**file)
            if any(array.shape != (last - first,) for array in voxels):
                raise ValueError("another number of voxels")
            return voxels
        except Exception as error:
            with suppress(OSError):
                path.unlink()
            raise ReachabilityError(
                f"{path} was damaged and is removed: the same command computes it anew"
            ) from error

    def _is_whole(self, chunk: int) -> bool:
        try:
            self.load(chunk)
        except ReachabilityError:
            return False
        return True

    def remove(self) -> None:
        """Remove the folder, its manifest last, so that an interrupted removal is recognized."""
        with suppress(OSError):
            for path in self._folder.glob("chunk-*"):
                path.unlink()
        shutil.rmtree(self._folder, ignore_errors=True)

    def remove_if_empty(self) -> None:
        """Remove the folder if no chunk was finished."""
        if not self.finished():
            self.remove()

    def _path(self, chunk: int) -> Path:
        return self._folder / f"chunk-{chunk:07d}.npz"


def parts_folder(store: Path) -> Path:
    """Return the folder with the chunks of an unfinished map."""
    return store.with_name(f"{store.name}.parts")


@contextmanager
def open_parts(store: Path, settings: MapSettings) -> Iterator[FolderParts]:
    """Open the finished chunks of an unfinished map, for one process at a time.

    Raises:
        ReachabilityError: If the chunks belong to another map, another process uses them, or the
            folder cannot be written.
    """
    folder = parts_folder(store)
    parts = FolderParts(folder, settings)
    with ExitStack() as stack:
        try:
            folder.mkdir(exist_ok=True)
            lock = stack.enter_context((folder / LOCK_NAME).open("a"))
            if fcntl is not None:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _check_manifest(folder, settings)
        except BlockingIOError as error:
            raise ReachabilityError(f"another process is computing {store}") from error
        except OSError as error:
            if not (folder / MANIFEST).exists():
                parts.remove_if_empty()
            raise ReachabilityError(f"cannot write {folder}: {error.strerror}") from error
        stack.callback(parts.remove_if_empty)
        parts.remove_damaged()
        yield parts


def _check_manifest(folder: Path, settings: MapSettings) -> None:
    manifest = folder / MANIFEST
    asked = {
        **settings.as_json(),
        "voxels_per_chunk": settings.voxels_per_chunk,
        "dls_ik": __version__,
    }
    if not manifest.exists():
        part = manifest.with_suffix(".part")
        try:
            part.write_text(json.dumps(asked, indent=1) + "\n", encoding="utf-8")
            part.replace(manifest)
        except OSError:
            part.unlink(missing_ok=True)
            raise
        return
    differing = differences(_read_manifest(manifest), asked)
    if differing:
        raise ReachabilityError(
            f"{folder} holds an unfinished map with other settings ({differing}): go on with "
            "those, write to another file, or remove the folder"
        )


def _read_manifest(manifest: Path) -> dict[str, Any]:
    try:
        found = json.loads(read_file(manifest, MAX_PART_BYTES))
    except (OSError, ValueError) as error:
        raise ReachabilityError(f"cannot read {manifest}: {error}") from error
    return found if isinstance(found, dict) else {}


def differences(found: dict[str, Any], asked: dict[str, Any]) -> str:
    """Describe the differences of two settings; empty if they agree."""
    keys = [key for key in asked if found.get(key) != asked[key]]
    return ", ".join(f"{key} {found.get(key)}, now {asked[key]}" for key in keys)
