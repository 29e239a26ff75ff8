# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Computation of reachability maps; finished chunks are stored, so that a map can be resumed."""

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
from dls_ik.reachability.grid import ReachabilityError, reach_ball
from dls_ik.reachability.map import ReachabilityMap, checked_store
from dls_ik.reachability.settings import (
    MAP_TOLERANCE,
    RESOLUTION,
    RESTARTS,
    MapJob,
    MapSettings,
    new_job,
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
    tolerance: float = MAP_TOLERANCE,
    max_restarts: int = RESTARTS,
    random_seed: int = 0,
    scene: PlanningScene | None = None,
    out: str | os.PathLike[str] | None = None,
    scheduler: str | None = None,
    progress: Progress | None = None,
) -> ReachabilityMap:
    """Compute which poses of a workspace an arm reaches, and the dexterity of the arm.

    Args:
        robot: Robot, name of a shipped robot, or path of a file (URDF, xacro, DH).
        resolution: Edge length of the cubic voxels [m].
        orientations: Number of evenly distributed orientations per voxel; default: 64, or 1 for
            the task ``position``.
        base: First link of the chain; default: the root link, if there is only one.
        tip: Last link of the chain; default: the leaf link, if there is only one.
        region: Box (6,) x0 x1 y0 y1 z0 z1 [m] in the base frame; default: the reach of the arm.
        task: ``pose`` for position and rotation, ``pointing`` for position and direction of the
            tool's z axis, or ``position``.
        tolerance: Maximum position error [m] and rotation error [rad] of a solution.
        max_restarts: Number of restarts after which a pose counts as not reached.
        random_seed: Seed of the restarts.
        scene: Scene of the robot, used in its current state; a pose is reached only if it has a
            collision-free solution.
        out: Path of the map, a file ``.npz`` or a store ``.zarr``. Until the map is complete,
            finished chunks are kept next to this path in a folder ``.parts``. A second call with
            the same arguments resumes an interrupted map.
        scheduler: Address of a Dask scheduler; default: the threads of this machine.
        progress: Called with the number of finished chunks and the number of all chunks.

    Returns:
        The map. If `out` already holds a map with the same settings, that map is returned.

    Raises:
        DlsIkError: If an argument is not valid, `out` holds a map with other settings, or no
            scheduler answers.
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
    """Compute the map of a job; if the file `out` already contains the map, read it instead.

    Args:
        job: Map to compute.
        out, scheduler, progress: See :func:`reachability_map`.
    """
    if out is None:
        kept: dict[int, Voxels] = {}
        _solve_missing(job, set(), kept.__setitem__, scheduler, progress)
        return _merged(job, kept.__getitem__)
    store = checked_store(out)
    found = stored_map(job, store)
    if found is not None and not parts_folder(store).exists():
        return found
    with open_parts(store, job.settings) as parts:
        if found is None:
            _solve_missing(job, parts.finished(), parts.keep, scheduler, progress)
            found = _merged(job, parts.load)
            found.save(store)
        parts.remove()
    return found


def stored_map(job: MapJob, store: Path) -> ReachabilityMap | None:
    """Read the map of a job from the file `store`; return None if the file does not exist.

    Raises:
        ReachabilityError: If the file contains no map, or a map with other settings.
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
    """Return a robot model; load it if `robot` is a shipped name, a file or URDF text.

    Args:
        robot: Robot model, name of a shipped robot, path of a file, or URDF text.
        base: First link of the chain; None keeps the base of a model, or uses the root link.
        tip: Last link of the chain; None keeps the tip of a model, or uses the only leaf link.
    """
    if isinstance(robot, RobotModel):
        if base is None and tip is None:
            return robot
        return RobotModel.from_tree(robot.tree, base or robot.base, tip or robot.tip)
    given = os.fspath(robot)
    if given.lstrip("\ufeff \t\r\n").startswith("<"):
        return RobotModel.from_urdf(given, base, tip)
    return RobotModel.from_tree(find_tree(given), base, tip)


def _solve_missing(
    job: MapJob,
    finished: set[int],
    keep: Keep,
    scheduler: str | None,
    progress: Progress | None,
) -> None:
    """Solve the chunks of a job that are not finished yet, and pass each result to `keep`.

    Args:
        job: Map to compute.
        finished: Numbers of the finished chunks.
        keep: Called with the number and the results of a chunk.
        scheduler: Address of a Dask scheduler; None uses the threads of this machine.
        progress: Called with the number of finished chunks and the number of all chunks.
    """
    total, count = job.settings.chunks, len(finished)

    def keep_and_count(chunk: int, voxels: Voxels) -> None:
        nonlocal count
        keep(chunk, voxels)
        count += 1
        if progress is not None:
            progress(count, total)

    if progress is not None:
        progress(count, total)
    # The order is random, so that the first chunks are a fair sample for the remaining time.
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
MAX_PART_BYTES = 64 * 1024 * 1024  # maximum size of the file of a chunk, typically a few kilobytes


class FolderParts:
    """Folder with a file for each finished chunk of a map.

    Args:
        folder: The folder.
        settings: Settings of the map.
    """

    def __init__(self, folder: Path, settings: MapSettings) -> None:
        self._folder, self._settings = folder, settings

    def finished(self) -> set[int]:
        """Return the numbers of the finished chunks."""
        names = (CHUNK_NAME.fullmatch(path.name) for path in self._folder.glob("chunk-*"))
        return {int(match[1]) for match in names if match}

    def remove_damaged(self) -> None:
        """Remove the files of chunks that cannot be read, so that the chunks are computed again."""
        damaged = sum(not self._is_whole(chunk) for chunk in self.finished())
        if damaged:
            words = "chunk was" if damaged == 1 else "chunks were"
            LOG.warning("%d %s damaged in %s: computed again", damaged, words, self._folder)

    def keep(self, chunk: int, voxels: Voxels) -> None:
        """Write the results of a chunk to a file; an interruption leaves no incomplete file.

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
                f"cannot write {path}: {error.strerror or error}; finished chunks are kept"
            ) from error

    def load(self, chunk: int) -> Voxels:
        """Return the results of a finished chunk.

        A damaged file is removed, so that the next call computes the chunk again.

        Raises:
            ReachabilityError: If the file is damaged.
        """
        path = self._path(chunk)
        first, last = self._settings.voxels(chunk)
        try:
            with np.load(io.BytesIO(read_file(path, MAX_PART_BYTES)), allow_pickle=False) as file:
                voxels = Voxels(**file)
            if any(array.shape != (last - first,) for array in voxels):
                raise ValueError("wrong number of voxels")
            return voxels
        except Exception as error:
            with suppress(OSError):
                path.unlink()
            raise ReachabilityError(
                f"{path} was damaged and has been removed; run the same command to compute it again"
            ) from error

    def _is_whole(self, chunk: int) -> bool:
        try:
            self.load(chunk)
        except ReachabilityError:
            return False
        return True

    def remove(self) -> None:
        """Remove the files of the chunks, then the rest of the folder.

        In this order, the manifest with the settings remains if the removal is interrupted.
        """
        with suppress(OSError):
            for path in self._folder.glob("chunk-*"):
                path.unlink()
        shutil.rmtree(self._folder, ignore_errors=True)

    def remove_if_empty(self) -> None:
        """Remove the folder if it contains no finished chunk."""
        if not self.finished():
            self.remove()

    def _path(self, chunk: int) -> Path:
        return self._folder / f"chunk-{chunk:07d}.npz"


def parts_folder(store: Path) -> Path:
    """Return the folder for the finished chunks of a map that will be written to `store`."""
    return store.with_name(f"{store.name}.parts")


@contextmanager
def open_parts(store: Path, settings: MapSettings) -> Iterator[FolderParts]:
    """Yield the folder of the finished chunks of a map, locked against other processes.

    At the end of the ``with`` block, the folder is removed if it contains no finished chunk.

    Args:
        store: Path to which the complete map will be written.
        settings: Settings of the map.

    Raises:
        ReachabilityError: If the chunks belong to a map with other settings, another process uses
            the folder, or the folder cannot be written.
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
            f"{folder} holds an unfinished map with other settings ({differing}): use these "
            "settings, write to another file, or remove the folder"
        )


def _read_manifest(manifest: Path) -> dict[str, Any]:
    try:
        found = json.loads(read_file(manifest, MAX_PART_BYTES))
    except (OSError, ValueError) as error:
        raise ReachabilityError(f"cannot read {manifest}: {error}") from error
    return found if isinstance(found, dict) else {}


def differences(found: dict[str, Any], asked: dict[str, Any]) -> str:
    """Describe the differences between stored and requested settings; "" if they agree."""
    keys = [key for key in asked if found.get(key) != asked[key]]
    return ", ".join(f"{key} {found.get(key)}, now {asked[key]}" for key in keys)
