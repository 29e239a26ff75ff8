"""Many poses: batches on all cores, and paths in which each pose starts from the answer before."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dls_ik.core.search import ALL, FOUND, NEAREST, STEPS
from dls_ik.core.types import Array, Rows
from dls_ik.errors import BatchInterrupted, JointValueError, OptionError, PoseError
from dls_ik.model.joint import checked_configuration, real_array
from dls_ik.solver.method import AUTO
from dls_ik.solver.result import IkBatchResult, IkPathResult, Status
from dls_ik.solver.search import (
    Search,
    attempts_of,
    found,
    new_rows,
    put_back,
    some_rows,
)
from dls_ik.solver.task import checked_poses
from dls_ik.text import quoted

Progress = Callable[[int, int], None]

RESTARTS = 1000  # of one pose, where the solver has no bound of its own
CHUNK = 1024  # poses that a thread takes at a time, at most
CHUNKS = 8  # for each thread, at least


def solve_batch(
    search: Search,
    Ts: ArrayLike,
    seeds: ArrayLike | None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> IkBatchResult:
    """Solve for many poses as :meth:`dls_ik.IkSolver.solve_batch`."""
    begin = time.perf_counter()
    poses = batch_poses(Ts, len(search.robot.tips))
    starts = search.middle if seeds is None else _checked_seeds(seeds, search.robot.n)
    b = len(poses)
    if len(starts) not in (1, b):
        raise JointValueError(f"{b} poses need {b} seeds or one for all, not {len(starts)}")
    count = _thread_count(threads)
    rows, status = search.new_rows(b), np.full(b, int(Status.INTERRUPTED))

    def solve(which: slice) -> None:
        near = starts if len(starts) == 1 else starts[which]
        part = some_rows(rows, which)
        status[which] = solve_rows(search, poses[which], near, seeds is not None, part)

    def result() -> IkBatchResult:
        success = search.has_answer(status, rows.best, starts)
        return _result(rows, status, success, begin)

    try:
        _in_chunks(solve, b, count, progress)
    except KeyboardInterrupt as error:
        begun = np.flatnonzero(status == Status.INTERRUPTED)
        put_back(rows, begun, new_rows(1, search.robot.n, 0))
        raise BatchInterrupted(result()) from error
    return result()


def solve_path(
    search: Search,
    Ts: ArrayLike,
    seed: ArrayLike | None,
    max_joint_step: float,
    progress: Progress | None = None,
) -> IkPathResult:
    """Solve for a path of poses as :meth:`dls_ik.IkSolver.solve_path`."""
    begin = time.perf_counter()
    largest = _checked_step(max_joint_step)
    poses = batch_poses(Ts, len(search.robot.tips))
    last = None if seed is None else checked_configuration(seed, search.robot.joint_names)
    b = len(poses)
    rows, status = search.new_rows(b), np.full(b, int(Status.REFUSED))
    jumps, success = np.zeros(b, np.bool_), np.zeros(b, np.bool_)
    for i in range(b):
        one = slice(i, i + 1)
        row, start = some_rows(rows, one), search.middle if last is None else last[None]
        status[one] = solve_rows(search, poses[one], start, last is not None, row)
        if last is not None and status[i] == Status.SUCCESS:
            jumps[i] = _is_jump(search, poses[i], start, row, largest)
        success[one] = search.has_answer(status[one], row.best, start)
        if status[i] == Status.SUCCESS:
            last = rows.best[i]
        if progress is not None:
            progress(i + 1, b)
    return IkPathResult(**vars(_result(rows, status, success, begin)), jumps=jumps)


def _is_jump(search: Search, T: Array, start: Array, row: Rows, largest: float) -> bool:
    """Return whether the nearest answer is too far from the one before; write that to the row."""
    if np.abs(row.best - start).max() > largest and search.method == AUTO:
        poses, nearest = checked_poses(T, len(search.robot.tips))[None], search.new_rows(1)
        candidates = search.options.num_candidates
        replace(search, kind=NEAREST).attempt(poses, start, candidates, nearest)
        if found(nearest)[0]:
            put_back(row, np.array([0]), nearest)
    return bool(np.abs(row.best - start).max() > largest)


def solve_rows(
    search: Search, poses: Array, seeds: Array, seeded: bool, rows: Rows
) -> NDArray[np.int64]:
    """Make attempts for every pose, as many as the options allow, and return how each ended.

    Args:
        poses: (b, k, 4, 4), not checked; seeds: (b, n), or (1, n) for all.
        seeded: whether the seeds were given.
        rows: state of the searches, out.
    """
    no_answer = search.has_no_answer(seeds)
    if no_answer.any():  # as near as the limits are
        clipped = np.clip(seeds, search.robot.lower, search.robot.upper)
        seeds = np.where(no_answer[:, None], clipped, seeds)
    no_answer = np.broadcast_to(no_answer, len(poses))
    restarts = search.options.max_restarts
    limit = 1 + (RESTARTS if restarts is None else restarts)
    first = min(limit, search.options.prove_after)
    search.attempt(poses, seeds, first, rows, seeded)
    if search.keeps_limits and (rows.counts[:, FOUND] == ALL).all() and not no_answer.any():
        return np.full(len(poses), int(Status.SUCCESS))  # as a rule; the rest holds Python's lock
    poses = _solve_inexact(search, poses, seeds, seeded, first, rows)
    ended = np.where(attempts_of(rows) > 0, Status.MAX_RESTARTS, Status.REFUSED)
    is_left = (attempts_of(rows) > 0) & (rows.counts[:, FOUND] != ALL)
    left = np.flatnonzero(is_left)
    beyond = search.proves_unreachable(poses[left]) | no_answer[left]
    ended[left[beyond]] = Status.UNREACHABLE
    if limit > first and not beyond.all():
        search.attempt_some(left[~beyond], poses, seeds, limit - first, rows, seeded)
    return search.conclude(poses, seeds, rows, ended, no_answer)


def _solve_inexact(
    search: Search, poses: Array, seeds: Array, seeded: bool, attempts: int, rows: Rows
) -> Array:
    """Make attempts for poses that the kernel passed over for a slightly inexact rotation.

    Returns:
        The poses, in a copy with exact rotations where some were not.
    """
    exact: dict[int, Array] = {}
    for i in np.flatnonzero(attempts_of(rows) == 0).tolist():
        if np.isfinite(seeds[i % len(seeds)]).all():  # one for all, or one each
            try:
                exact[i] = checked_poses(poses[i], len(search.robot.tips))
            except PoseError:
                continue
    if exact:
        which, poses = np.array([*exact]), poses.copy()
        poses[which] = [*exact.values()]
        search.attempt_some(which, poses, seeds, attempts, rows, seeded)
    return poses


def _in_chunks(
    solve: Callable[[slice], None], b: int, threads: int, progress: Progress | None
) -> None:
    """Solve slices of b rows in threads; kernels run without Python's lock."""
    size = min(CHUNK, max(1, -(-b // (CHUNKS * threads))))
    stopped = threading.Event()

    def work(first: int) -> int:
        rows = slice(first, min(first + size, b))
        if not stopped.is_set():
            solve(rows)
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


def _result(
    rows: Rows, status: NDArray[np.int64], success: NDArray[np.bool_], begin: float
) -> IkBatchResult:
    return IkBatchResult(
        success=success,
        status=status,
        q=rows.best,
        position_error=rows.figures[:, 0],
        rotation_error=rows.figures[:, 1],
        iterations=rows.counts[:, STEPS],
        restarts=np.maximum(attempts_of(rows) - 1, 0),
        duration=time.perf_counter() - begin,
    )


def batch_poses(Ts: ArrayLike, k: int) -> Array:
    """Return poses (b, k, 4, 4) of k tips, of one tip also (b, 4, 4); not copied if need not be.

    Raises:
        PoseError: values that are not numbers, or another shape.
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


def _checked_seeds(seeds: ArrayLike, n: int) -> Array:
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


def _checked_step(given: Any) -> float:
    try:
        is_number = isinstance(given, Real) and not isinstance(given, bool)
        largest = float(given) if is_number else math.nan
    except OverflowError:  # a whole number of hundreds of digits
        largest = math.inf if given > 0 else -math.inf
    if not largest > 0.0:
        raise OptionError(f"max_joint_step is a number above 0 [rad or m], not {quoted(given)}")
    return largest
