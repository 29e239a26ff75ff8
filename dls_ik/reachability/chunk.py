"""One chunk of voxels: a pure function of the job and the chunk's number."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.types import Array
from dls_ik.reachability.dexterity import dexterity
from dls_ik.reachability.settings import Job
from dls_ik.reachability.tasks import checked_task, orientations
from dls_ik.solver.result import IkBatchResult, Status
from dls_ik.solver.solver import IkSolver

Single = NDArray[np.float32]


class Voxels(NamedTuple):
    """What is known of v voxels, or of a whole map; NaN where no orientation is reached."""

    reached: NDArray[np.int32]  # orientations with a solution
    undecided: NDArray[np.int32]  # without one after all restarts, and not proved unreachable
    manipulability_mean: Single  # over the solutions
    manipulability_best: Single
    isotropy_best: Single
    room_best: Single  # to the joint limits


def solve_chunk(job: Job, chunk: int) -> Voxels:
    """Solve every orientation in every voxel of a chunk.

    The same on every machine of a kind, in any order, on any thread: nothing is carried from one
    pose to another.
    """
    solver = _solver(job)
    first, last = job.settings.voxels(chunk)
    poses = chunk_poses(job, first, last)
    result = _solve(solver, poses)
    return _per_voxel(job, solver, result, last - first)


def chunk_poses(job: Job, first: int, last: int) -> Array:
    """Poses ((last - first) * orientations, 4, 4) of voxels, orientations running fastest."""
    rotations = orientations(job.settings.orientations, job.settings.task)
    poses = np.zeros((last - first, len(rotations), 4, 4))
    poses[..., :3, :3] = rotations
    poses[..., :3, 3] = job.settings.grid.centres(first, last)[:, None]
    poses[..., 3, 3] = 1.0
    return poses.reshape(-1, 4, 4)


@lru_cache(maxsize=4)
def _solver(job: Job) -> IkSolver:
    return job.solver()


def _solve(solver: IkSolver, poses: Array) -> IkBatchResult:
    return solver.solve_batch(poses, threads=1)  # chunks run side by side


def _per_voxel(job: Job, solver: IkSolver, result: IkBatchResult, voxels: int) -> Voxels:
    shape = (voxels, job.settings.orientations)
    task, weight = checked_task(job.settings.task), solver.options.rotation_weight
    values = dexterity(solver.robot, task, weight, result.q[result.success])
    best = [_reduced(np.fmax, each, result.success, shape) for each in values]
    reached = result.success.reshape(shape).sum(axis=1, dtype=np.int32)
    undecided = result.status.reshape(shape) == Status.MAX_RESTARTS
    total = _reduced(np.add, values.manipulability, result.success, shape)
    measures = (total / np.maximum(reached, 1), *best)
    singles = [measure.astype(np.float32) for measure in measures]
    return Voxels(reached, undecided.sum(axis=1, dtype=np.int32), *singles)


def _reduced(
    combine: np.ufunc, values: Array, success: NDArray[np.bool_], shape: tuple[int, int]
) -> Array:
    """Combine the values of the solutions of each voxel: (v,), NaN where there is none."""
    every = np.full(len(success), 0.0 if combine is np.add else np.nan)
    every[success] = values
    combined: Array = combine.reduce(every.reshape(shape), axis=1)
    return np.where(success.reshape(shape).any(axis=1), combined, np.nan)
