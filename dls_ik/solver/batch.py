"""Many poses at once, on all cores."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dls_ik.core.types import Array, Rows
from dls_ik.exceptions import JointValueError, PoseError
from dls_ik.model.robot import RobotModel
from dls_ik.solver.poses import checked_poses
from dls_ik.solver.problem import Problem
from dls_ik.solver.result import IkBatchResult, Status
from dls_ik.solver.task import Tasks

if TYPE_CHECKING:
    from dls_ik.solver.solver import IkSolver

RESTARTS = 1000  # of one pose, where the solver has no bound of its own
CHUNK = 256  # poses that a thread takes at a time


def solve_rows(
    solver: IkSolver, Ts: ArrayLike, seeds: ArrayLike, task: Tasks = None
) -> IkBatchResult:
    """Solve every row; see :meth:`dls_ik.IkSolver.solve_batch`."""
    begin = time.perf_counter()
    problem = solver.problem_for(task)
    poses, starts = _poses(Ts, len(solver.robot.tips)), _seeds(seeds, solver.robot.n)
    b, n = len(poses), solver.robot.n
    if starts.ndim == 2 and len(starts) != b:
        raise JointValueError(f"{b} poses need {b} seeds or one for all, not {len(starts)}")
    starts = np.require(np.broadcast_to(starts, (b, n)), np.float64, ["C", "W", "A"])
    rows = new_rows(b, n, solver.options.random_seed)
    _search(solver, problem, poses, starts, rows)
    _search_inexact_rows(solver, problem, poses, starts, rows)
    return _result(solver, rows, time.perf_counter() - begin)


def inside_limits(robot: RobotModel, q: Array) -> NDArray[np.bool_]:
    """Whether answers of our own, (n,) or (b, n), keep the limits; they need no validation."""
    inside: NDArray[np.bool_] = np.all((q >= robot.lower) & (q <= robot.upper), axis=-1)
    return inside


def new_rows(b: int, n: int, random_seed: int) -> Rows:
    """Return the state of b searches that have not begun."""
    return Rows(
        np.full(b, random_seed, np.uint64),
        np.zeros((b, 2), np.int64),
        np.zeros(b, np.bool_),
        np.full((b, n), np.nan),
        np.full((b, 2), np.nan),
    )


def _poses(Ts: ArrayLike, k: int) -> Array:
    """(b, k, 4, 4)."""
    shape = (4, 4) if k == 1 else (k, 4, 4)
    try:
        poses = np.require(np.asarray(Ts), np.float64, ["C", "W", "A"])
    except (TypeError, ValueError, OverflowError) as error:
        raise PoseError(f"a batch of poses is an array of numbers (b, 4, 4): {error}") from error
    if poses.ndim != len(shape) + 1 or poses.shape[1:] != shape:
        named = "(b, 4, 4)" if k == 1 else f"(b, {k}, 4, 4) for {k} tips"
        raise PoseError(f"a batch of poses has the shape {named}, not {poses.shape}")
    return poses.reshape(-1, k, 4, 4)


def _seeds(seeds: ArrayLike, n: int) -> Array:
    try:
        starts = np.asarray(seeds, np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise JointValueError(f"seeds are an array of numbers (b, {n}): {error}") from error
    if starts.ndim not in (1, 2) or starts.shape[-1] != n:
        raise JointValueError(f"seeds have the shape (b, {n}) or ({n},), not {starts.shape}")
    return starts


def _search(solver: IkSolver, problem: Problem, poses: Array, seeds: Array, rows: Rows) -> None:
    """Search slices of the rows in threads; the kernel holds no lock of Python's."""

    def work(first: int) -> None:
        chunk = slice(first, first + CHUNK)
        part = Rows._make(array[chunk] for array in rows)
        solver.search(problem, poses[chunk], seeds[chunk], _attempts(solver), part)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for _ in pool.map(work, range(0, len(poses), CHUNK)):
            pass


def _attempts(solver: IkSolver) -> int:
    restarts = solver.options.max_restarts
    return 1 + (RESTARTS if restarts is None else restarts)


def _search_inexact_rows(
    solver: IkSolver, problem: Problem, poses: Array, seeds: Array, rows: Rows
) -> None:
    """Take up rows that the kernel passed over for a rotation that is only slightly inexact."""
    for i in np.flatnonzero(rows.counts[:, 0] == 0):
        if not np.isfinite(seeds[i]).all():
            continue
        try:
            exact = checked_poses(poses[i], len(solver.robot.tips))
        except PoseError:
            continue
        row = slice(i, i + 1)
        _search(solver, problem, exact[None], seeds[row], Rows._make(a[row] for a in rows))


def _result(solver: IkSolver, rows: Rows, duration: float) -> IkBatchResult:
    q, counts, reached = rows.best, rows.counts, rows.reached
    inside = inside_limits(solver.robot, q)
    status = np.full(len(q), int(Status.MAX_RESTARTS))
    status[counts[:, 0] == 0] = Status.REFUSED
    status[reached & ~inside] = Status.OUTSIDE_LIMITS
    status[reached & inside] = Status.SUCCESS
    return IkBatchResult(
        reached & inside,
        status,
        q,
        rows.error[:, 0],
        rows.error[:, 1],
        counts[:, 1],
        np.maximum(counts[:, 0] - 1, 0),
        duration,
    )
