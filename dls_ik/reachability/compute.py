"""Compute a map, or go on with one."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np

from dls_ik import __version__
from dls_ik.model.load import find_tree
from dls_ik.model.robot import RobotModel
from dls_ik.reachability.chunk import Voxels
from dls_ik.reachability.executors import dask_cluster, local_threads, run_chunks
from dls_ik.reachability.grid import RESOLUTION, RESTARTS, TOLERANCE, ReachabilityError, reach_ball
from dls_ik.reachability.map import ReachabilityMap, checked_store
from dls_ik.reachability.parts import (
    FolderParts,
    MemoryParts,
    differences,
    open_parts,
    parts_folder,
)
from dls_ik.reachability.settings import Job, new_job

Progress = Callable[[int, int], None]  # chunks finished, of how many


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
    """Find out which poses of a workspace an arm reaches, and how well it moves there.

    Args:
        robot: a robot, the name of a shipped one, or the path of a file (URDF, xacro, DH).
        resolution: edge of a voxel [m].
        orientations: how many are tried in each voxel, spread evenly; default: 64.
        base: link where the chain begins, and tip: where it ends; found where there is no choice.
        region: x0 x1 y0 y1 z0 z1 [m] in the base frame; default: all that the arm's length allows.
        task: ``pose``; ``pointing``, the tool's z axis in so many directions; or ``position``.
        tolerance: position and rotation error allowed [m, rad].
        max_restarts: of a pose, after which it counts as not reached.
        random_seed: of the restarts.
        out: file ``.npz`` or store ``.zarr``. Finished chunks are kept beside it in a folder
            ``.parts`` until the map is complete: the same call goes on after an interruption.
        scheduler: address of a Dask scheduler whose workers do the work; default: this machine.
        progress: called with the number of chunks finished and of all.

    Returns:
        The map; the one that `out` holds already where it has the same settings.

    Raises:
        DlsIkError: arguments that are not valid, another map in `out`, or no such scheduler.
    """
    arm = find_robot(robot, base, tip)
    job = new_job(arm, resolution, orientations, region, task, tolerance, max_restarts, random_seed)
    return compute(job, out, scheduler, progress)


def compute(
    job: Job,
    out: str | os.PathLike[str] | None = None,
    scheduler: str | None = None,
    progress: Progress | None = None,
) -> ReachabilityMap:
    """:func:`reachability_map` of a job that is checked already."""
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


def stored_map(job: Job, store: Path) -> ReachabilityMap | None:
    """The map of a job, where its file is complete.

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
    """The robot itself, or as :func:`dls_ik.model.load.robot_file` finds it, or from URDF text."""
    if isinstance(robot, RobotModel):
        if base is None and tip is None:
            return robot
        return RobotModel.from_tree(robot.tree, base or robot.base, tip or robot.tip)
    given = os.fspath(robot)
    if given.lstrip("\ufeff \t\r\n").startswith("<"):
        return RobotModel.from_urdf(given, base, tip)
    return RobotModel.from_tree(find_tree(given), base, tip)


def _complete(
    job: Job, parts: FolderParts | MemoryParts, scheduler: str | None, progress: Progress | None
) -> None:
    """Solve the chunks that are missing."""
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
    missing = [chunk for chunk in chunk_order(total) if chunk not in finished]
    if missing:
        with local_threads() if scheduler is None else dask_cluster(scheduler) as (executor, depth):
            run_chunks(job, missing, executor, depth, keep)


def chunk_order(total: int) -> list[int]:
    """All chunks in an order without order, so that the first ones tell how long the rest takes."""
    order: list[int] = np.random.default_rng(0).permutation(total).tolist()
    return order


def _merged(job: Job, parts: FolderParts | MemoryParts) -> ReachabilityMap:
    settings = job.settings
    chunks = [parts.load(chunk) for chunk in range(settings.chunks)]
    fields = (np.concatenate(arrays) for arrays in zip(*chunks, strict=True))
    voxels = Voxels(*(array.reshape(settings.shape) for array in fields))
    x, y, z = (float(c) for c in reach_ball(job.solver().robot).centre)
    return ReachabilityMap(settings, voxels, (x, y, z), _versions())


def _versions() -> dict[str, str]:
    names = ("numpy", "numba")
    found = {name: version(name) for name in names}
    return {"dls_ik": __version__, "python": platform.python_version(), **found}
