# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Computation of reachability maps; finished chunks are stored, so that a map can be resumed."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dls_ik import __version__
from dls_ik.chunks.executors import Work
from dls_ik.chunks.parts import (
    FolderParts,
    Progress,
    differences,
    open_parts,
    parts_folder,
    solve_missing,
)
from dls_ik.model.load import find_tree
from dls_ik.model.robot import RobotModel
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
from dls_ik.reachability.voxels import Voxels, solve_chunk

if TYPE_CHECKING:
    from dls_ik.scene.planning_scene import PlanningScene


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
        work = Work(solve_chunk, job)
        solve_missing(work, job.settings.chunks, (), kept.__setitem__, scheduler, progress)
        return _merged(job, kept.__getitem__)
    store = checked_store(out)
    found = stored_map(job, store)
    if found is not None and not parts_folder(store).exists():
        return found
    with open_map_parts(store, job.settings) as parts:
        if found is None:

            def keep(chunk: int, voxels: Voxels) -> None:
                parts.keep(chunk, voxels._asdict())

            work, finished = Work(solve_chunk, job), parts.finished()
            solve_missing(work, job.settings.chunks, finished, keep, scheduler, progress)
            found = _merged(job, lambda chunk: Voxels(**parts.load(chunk)))
            found.save(store)
        parts.remove()
    return found


def open_map_parts(store: Path, settings: MapSettings) -> AbstractContextManager[FolderParts]:
    """Return a context manager that yields the folder of the finished chunks of a map.

    Args:
        store: Path to which the complete map will be written.
        settings: Settings of the map.
    """

    def length(chunk: int) -> int:
        first, last = settings.voxels(chunk)
        return last - first

    asked = {**settings.as_json(), "voxels_per_chunk": settings.voxels_per_chunk}
    return open_parts(store, asked, Voxels._fields, length, "map")


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


def _merged(job: MapJob, load: Callable[[int], Voxels]) -> ReachabilityMap:
    settings = job.settings
    chunks = [load(chunk) for chunk in range(settings.chunks)]
    fields = (np.concatenate(arrays) for arrays in zip(*chunks, strict=True))
    voxels = Voxels(*(array.reshape(settings.shape) for array in fields))
    x, y, z = (float(c) for c in reach_ball(job.solver().robot).centre)
    versions = {"dls_ik": __version__, "python": platform.python_version()}
    versions |= {name: version(name) for name in ("numpy", "numba")}
    return ReachabilityMap(settings, voxels, (x, y, z), versions)
