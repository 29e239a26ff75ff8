# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Results of the voxels of a reachability map, computed chunk by chunk."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.types import Array
from dls_ik.reachability.grid import orientations
from dls_ik.reachability.settings import MapJob, checked_task
from dls_ik.solver.dexterity import dexterity
from dls_ik.solver.result import IkBatchResult, Status
from dls_ik.solver.solver import IkSolver

Single = NDArray[np.float32]


class Voxels(NamedTuple):
    """Results for v voxels, arrays of shape (v,), or for a whole map, arrays of shape (nx, ny, nz).

    Dexterity measures are NaN in voxels without a reached orientation.
    """

    reached: NDArray[np.int32]  # number of orientations with a solution
    # Number of orientations for which no solution was found, although one may exist
    undecided: NDArray[np.int32]
    in_collision: NDArray[np.int32]  # number of orientations whose solutions are all in collision
    manipulability_mean: Single  # mean over the solutions in the voxel
    manipulability_best: Single  # maximum over the solutions in the voxel
    isotropy_best: Single  # maximum over the solutions in the voxel
    margin_best: Single  # maximum of Dexterity.margin over the solutions in the voxel


def solve_chunk(job: MapJob, chunk: int) -> Voxels:
    """Solve every orientation in every voxel of a chunk, and return the results for the voxels.

    The solver keeps no state from one pose to the next, so the result does not depend on the order
    of the chunks or on the thread, nor on the machine if all machines are of the same kind.

    Args:
        job: Map to compute.
        chunk: Number of the chunk.
    """
    solver = _solver(job)
    first, last = job.settings.voxels(chunk)
    poses = chunk_poses(job, first, last)
    result = solver.solve_batch(poses, threads=1)  # chunks run in parallel
    return _per_voxel(job, solver, result, last - first)


def chunk_poses(job: MapJob, first: int, last: int) -> Array:
    """Return the poses to solve for voxels `first` to `last` - 1.

    Returns:
        T_base_tip ((last - first) * orientations, 4, 4), all orientations of a voxel in succession.
    """
    rotations = orientations(job.settings.orientations, job.settings.task)
    poses = np.zeros((last - first, len(rotations), 4, 4))
    poses[..., :3, :3] = rotations
    poses[..., :3, 3] = job.settings.grid.centres(first, last)[:, None]
    poses[..., 3, 3] = 1.0
    return poses.reshape(-1, 4, 4)


@lru_cache(maxsize=4)
def _solver(job: MapJob) -> IkSolver:
    return job.solver()


def _per_voxel(job: MapJob, solver: IkSolver, result: IkBatchResult, voxels: int) -> Voxels:
    shape = (voxels, job.settings.orientations)
    task, weight = checked_task(job.settings.task), solver.options.rotation_weight
    values = dexterity(solver.robot, task, weight, result.q[result.success])
    best = [_reduced(np.fmax, each, result.success, shape) for each in values]
    reached = result.success.reshape(shape).sum(axis=1, dtype=np.int32)
    ended = result.status.reshape(shape)
    missed = [
        (ended == status).sum(axis=1, dtype=np.int32)
        for status in (Status.MAX_RESTARTS, Status.IN_COLLISION)
    ]
    total = _reduced(np.add, values.manipulability, result.success, shape)
    measures = (total / np.maximum(reached, 1), *best)
    singles = [measure.astype(np.float32) for measure in measures]
    return Voxels(reached, *missed, *singles)


def _reduced(
    combine: np.ufunc, values: Array, success: NDArray[np.bool_], shape: tuple[int, int]
) -> Array:
    """Combine the values of all solutions in each of v voxels, for example by their maximum.

    Args:
        combine: ``np.fmax`` for the maximum, or ``np.add`` for the sum.
        values: One value for each pose that has a solution.
        success: Whether each pose has a solution, for all poses of the v voxels.
        shape: (v, number of orientations).

    Returns:
        Combined values (v,); NaN in voxels without a solution.
    """
    every = np.full(len(success), 0.0 if combine is np.add else np.nan)
    every[success] = values
    combined: Array = combine.reduce(every.reshape(shape), axis=1)
    return np.where(success.reshape(shape).any(axis=1), combined, np.nan)
