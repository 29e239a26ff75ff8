"""Many poses at once, on all cores."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dls_ik.core.search import ALL, ATTEMPTS, FOUND
from dls_ik.core.types import Array, Rows
from dls_ik.errors import BatchInterrupted, JointValueError, OptionError, PoseError
from dls_ik.solver.best import approach_poses
from dls_ik.solver.method import AUTO
from dls_ik.solver.poses import checked_poses, real_array
from dls_ik.solver.problem import Problem
from dls_ik.solver.request import Request
from dls_ik.solver.result import IkBatchResult, Status
from dls_ik.solver.rows import attempts, found, new_rows, some_rows, steps
from dls_ik.text import quoted

if TYPE_CHECKING:
    from dls_ik.solver.solver import IkSolver

Progress = Callable[[int, int], None]

RESTARTS = 1000  # of one pose, where the solver has no bound of its own
CHUNK = 1024  # poses that a thread takes at a time, at most
CHUNKS = 8  # for each thread, at least


class Task(NamedTuple):
    """What a batch is about, and what has become of it."""

    solver: IkSolver
    problem: Problem
    request: Request
    poses: Array  # (b, k, 4, 4)
    seeds: Array  # (b, n), or (1, n) for all
    seeded: bool
    rows: Rows
    status: NDArray[np.int64]  # (b,)


def solve_rows(
    solver: IkSolver,
    problem: Problem,
    request: Request,
    Ts: ArrayLike,
    seeds: ArrayLike | None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> IkBatchResult:
    """Solve every row; see :meth:`dls_ik.IkSolver.solve_batch`."""
    begin = time.perf_counter()
    poses = batch_poses(Ts, len(solver.robot.tips))
    b, n = len(poses), solver.robot.n
    starts = solver.middle if seeds is None else _seeds(seeds, n)
    if len(starts) not in (1, b):
        raise JointValueError(f"{b} poses need {b} seeds or one for all, not {len(starts)}")
    rows = new_rows(b, n, solver.options.random_seed)
    status = np.full(b, int(Status.INTERRUPTED))
    task = Task(solver, problem, request, poses, starts, seeds is not None, rows, status)
    try:
        _solve_chunks(task, _thread_count(threads), progress)
    except KeyboardInterrupt as error:
        left, fresh = np.flatnonzero(status == Status.INTERRUPTED), new_rows(1, n, 0)
        _put_back(rows, left, fresh)  # of a chunk that was begun
        raise BatchInterrupted(_result(task, time.perf_counter() - begin)) from error
    return _result(task, time.perf_counter() - begin)


def batch_poses(Ts: ArrayLike, k: int) -> Array:
    """(b, k, 4, 4) of poses (b, 4, 4), or (b, k, 4, 4) for k tips; not copied if need not be.

    Raises:
        PoseError: no numbers, or another shape.
    """
    shape = (4, 4) if k == 1 else (k, 4, 4)
    try:
        poses = real_array(Ts)
    except (TypeError, ValueError, OverflowError) as error:
        raise PoseError(f"a batch of poses is an array of numbers (b, 4, 4): {error}") from error
    if poses.ndim != len(shape) + 1 or poses.shape[1:] != shape:
        named = "(b, 4, 4)" if k == 1 else f"(b, {k}, 4, 4) for {k} tips"
        raise PoseError(f"a batch of poses has the shape {named}, not {poses.shape}")
    return poses.reshape(-1, k, 4, 4)


def _seeds(seeds: ArrayLike, n: int) -> Array:
    """(b, n), or (1, n)."""
    try:
        starts = real_array(seeds)
    except (TypeError, ValueError, OverflowError) as error:
        raise JointValueError(f"seeds are an array of numbers (b, {n}): {error}") from error
    if starts.ndim not in (1, 2) or starts.shape[-1] != n:
        raise JointValueError(f"seeds have the shape (b, {n}) or ({n},), not {starts.shape}")
    return starts.reshape(-1, n)


def _thread_count(threads: int | None) -> int:
    if threads is None:
        return len(os.sched_getaffinity(0))
    if isinstance(threads, bool) or not isinstance(threads, (int, np.integer)) or threads < 1:
        raise OptionError(f"threads is a whole number from 1, not {quoted(threads)}")
    return int(threads)


def _solve_chunks(task: Task, threads: int, progress: Progress | None) -> None:
    """Solve slices of the rows in threads; the kernel holds no lock of Python's."""
    b = len(task.poses)
    size = min(CHUNK, max(1, -(-b // (CHUNKS * threads))))
    stopped = threading.Event()

    def work(first: int) -> int:
        rows = slice(first, min(first + size, b))
        if not stopped.is_set():
            solve_chunk(task, rows)
        return rows.stop

    with ThreadPoolExecutor(threads) as pool:
        chunks = range(0, b, size)
        try:
            for done in map(work, chunks) if threads == 1 else pool.map(work, chunks):
                if progress is not None:
                    progress(done, b)
        except BaseException:
            stopped.set()
            raise


def solve_chunk(task: Task, which: slice) -> None:
    """Solve some of the rows, and say how that ended."""
    solver, problem, request = task.solver, task.problem, task.request
    rows, poses, status = some_rows(task.rows, which), task.poses[which], task.status[which]
    seeds = task.seeds if len(task.seeds) == 1 else task.seeds[which]
    nothing = request.leaves_nothing(solver.robot, seeds)
    if nothing.any():  # as near as the limits are
        clipped = np.clip(seeds, solver.robot.lower, solver.robot.upper)
        seeds = np.where(nothing[:, None], clipped, seeds)
    nothing = np.broadcast_to(nothing, len(poses))
    limit = 1 + (RESTARTS if solver.options.max_restarts is None else solver.options.max_restarts)
    begun = min(limit, solver.options.prove_after)
    solver.search(problem, poses, seeds, begun, rows, request, task.seeded)
    if solver.keeps_limits and (rows.counts[:, FOUND] == ALL).all() and not nothing.any():
        status[:] = Status.SUCCESS  # as a rule; what follows holds Python's lock
        return
    poses = _solve_inexact(task, poses, seeds, rows, begun)
    left = np.flatnonzero((rows.counts[:, FOUND] != ALL) & (rows.counts[:, ATTEMPTS] > 0))
    beyond = left[solver.reach.rows_beyond(problem, poses[left]) | nothing[left]]
    left = np.setdiff1d(left, beyond)
    if limit > begun and len(left):
        part, some = some_rows(rows, left), _of(seeds, left)
        solver.search(problem, poses[left], some, limit - begun, part, request, task.seeded)
        _put_back(rows, left, part)
    begun_at_all = attempts(rows) > 0
    ended = np.where(begun_at_all, Status.MAX_RESTARTS, Status.REFUSED)
    ended[beyond] = Status.UNREACHABLE
    missed = begun_at_all & ~found(rows)
    missed &= request.approximate | ((ended == Status.UNREACHABLE) & (solver.method == AUTO))
    if missed.any():
        which_ones = np.flatnonzero(missed)
        part, near = some_rows(rows, which_ones), _of(seeds, which_ones)
        approach_poses(solver, problem, request, poses[which_ones], near, part)
        _put_back(rows, which_ones, part)
    ended[found(rows)] = Status.SUCCESS
    if not solver.keeps_limits:
        ended[found(rows) & ~_inside(task, rows.best, seeds)] = Status.FAR_FROM_SEED
        ended[found(rows) & ~_within_limits(task, rows.best)] = Status.OUTSIDE_LIMITS
    ended[nothing & begun_at_all] = Status.FAR_FROM_SEED
    status[:] = ended  # at once: Ctrl-C may come between any two lines


def _of(seeds: Array, which: NDArray[np.intp]) -> Array:
    return seeds if len(seeds) == 1 else seeds[which]


def _put_back(rows: Rows, which: NDArray[np.intp], part: Rows) -> None:
    for array, some in zip(rows, part, strict=True):
        array[which] = some


def _solve_inexact(task: Task, poses: Array, seeds: Array, rows: Rows, begun: int) -> Array:
    """Take up rows that the kernel passed over for a rotation that is only slightly inexact.

    Returns:
        The poses, in a copy with those rows made exact where there are some.
    """
    for i in np.flatnonzero(rows.counts[:, ATTEMPTS] == 0):
        seed = _of(seeds, np.array([i]))
        if not np.isfinite(seed).all():
            continue
        try:
            exact = checked_poses(poses[i], len(task.solver.robot.tips))
        except PoseError:
            continue
        if np.shares_memory(poses, task.poses):
            poses = poses.copy()
        poses[i] = exact
        row = some_rows(rows, slice(i, i + 1))
        task.solver.search(task.problem, exact[None], seed, begun, row, task.request, task.seeded)
    return poses


def _inside(task: Task, q: Array, seeds: Array) -> NDArray[np.bool_]:
    """(b,) whether answers of our own keep the limits, those around the seeds too."""
    near: NDArray[np.bool_] = np.all(np.abs(q - seeds) <= task.request.change, axis=-1)
    return near & _within_limits(task, q)


def _within_limits(task: Task, q: Array) -> NDArray[np.bool_]:
    """(b,) whether answers keep the limits; q may have NaN of rows that were passed over."""
    robot = task.solver.robot
    inside: NDArray[np.bool_] = np.all((q >= robot.lower) & (q <= robot.upper), axis=-1)
    return inside


def succeeded(task: Task) -> NDArray[np.bool_]:
    """(b,) which rows have an answer: where the solver approximates, one that was missed too.

    Not one beyond limits, to which methods may come that do not keep them.
    """
    success: NDArray[np.bool_] = task.status == Status.SUCCESS
    if task.request.approximate:
        missed = (task.status == Status.MAX_RESTARTS) | (task.status == Status.UNREACHABLE)
        missed &= ~task.request.leaves_nothing(task.solver.robot, task.seeds)
        if not task.solver.keeps_limits:
            missed &= _inside(task, task.rows.best, task.seeds)
        success = success | missed
    return success


def _result(task: Task, duration: float) -> IkBatchResult:
    rows, status = task.rows, task.status
    return IkBatchResult(
        succeeded(task),
        status,
        rows.best,
        rows.figures[:, 0],
        rows.figures[:, 1],
        steps(rows),
        np.maximum(attempts(rows) - 1, 0),
        duration,
    )
