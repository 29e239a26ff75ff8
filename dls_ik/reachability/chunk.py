"""One chunk of voxels: solutions of its poses, and how well the arm moves there."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.reachability.settings import Job, checked_task, orientations
from dls_ik.solver.result import IkBatchResult, Status
from dls_ik.solver.solver import IkSolver
from dls_ik.solver.task import Task

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
    result = solver.solve_batch(poses, threads=1)  # chunks run side by side
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


class Dexterity(NamedTuple):
    """One number for each of b configurations."""

    manipulability: Array  # (b,) Yoshikawa 1985
    isotropy: Array  # (b,) least over largest singular value, 0 at a singularity, 1 at best
    room: Array  # (b,) to the nearest limit, 0 on it, 1 where all joints are in mid-range


def dexterity(robot: RobotModel, task: Task, rotation_weight: float, q: Array) -> Dexterity:
    """Measures of configurations (b, n).

    With the Jacobian J (r, n) of the task, linear rows in [m/rad]:
    manipulability sqrt(det(J J^T)), and sqrt(det(J^T J)) where n < r (Yoshikawa 1985).
    Isotropy is of J with its rotation rows times the rotation weight [m/rad].
    """
    J = task_jacobian(robot, task, q)
    Jt = J.swapaxes(1, 2)
    square = J @ Jt if J.shape[1] <= J.shape[2] else Jt @ J
    manipulability = np.sqrt(np.maximum(np.linalg.det(square), 0.0))
    weights = np.ones(J.shape[1])
    weights[len(task.position) :] = rotation_weight
    s = np.linalg.svd(weights[:, None] * J, compute_uv=False)  # (b, min(r, n))
    isotropy = s[:, -1] / np.maximum(s[:, 0], np.finfo(float).tiny)
    return Dexterity(manipulability, isotropy, room_to_limits(robot, q))


def task_jacobian(robot: RobotModel, task: Task, q: Array) -> Array:
    """Rows (b, r, n) of the Jacobian that count, along the tip's axes where the task says so."""
    J = robot.jacobian(q)
    if task.frame == "target":
        R_tip_base = robot.fk(q)[:, None, :3, :3].swapaxes(2, 3)
        J = (R_tip_base @ J.reshape(len(q), 2, 3, robot.n)).reshape(J.shape)
    rows = ["xyz".index(axis) for axis in task.position]
    rows += [3 + "xyz".index(axis) for axis in task.rotation]
    chosen: Array = J[:, rows]
    return chosen


def room_to_limits(robot: RobotModel, q: Array) -> Array:
    """The least share (b,) of half its range that any limited joint is away from a limit."""
    limited = robot.limited
    lower, upper = robot.lower[limited], robot.upper[limited]
    half = np.maximum((upper - lower) / 2.0, np.finfo(float).tiny)
    share = np.minimum(q[:, limited] - lower, upper - q[:, limited]) / half
    room: Array = np.clip(share.min(axis=1, initial=1.0), 0.0, 1.0)
    return room
