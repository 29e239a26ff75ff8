# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Functions that call the solver for one pose with a timeout, or for many poses on all cores."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.selection import (
    ATTEMPTS_COLUMN,
    FOUND_ALL,
    FOUND_BLOCKED,
    FOUND_COLUMN,
    FOUND_NOTHING,
    RANDOM_STATE_COLUMN,
    STEPS_COLUMN,
)
from dls_ik.core.types import Array, Rows
from dls_ik.errors import BatchInterrupted, JointValueError, PoseError
from dls_ik.model.joint import JointValues, ordered_values, real_array
from dls_ik.model.pose import PoseLike
from dls_ik.model.robot import RobotModel
from dls_ik.solver.conclusion import conclude, has_answer, pairs_in_the_way
from dls_ik.solver.options import checked_count
from dls_ik.solver.poses import batch_poses, checked_poses, is_plain
from dls_ik.solver.result import IkBatchResult, IkResult, Status
from dls_ik.solver.search import Search, attempts_of, put_back, some_rows

Result = TypeVar("Result")
Progress = Callable[[int, int], None]

SLICE_DURATION = 0.01  # [s] approximate duration of the attempts between two clock readings

# Batches:
BATCH_RESTARTS = 1000  # maximum number of restarts per pose if max_restarts is None
MAX_CHUNK_SIZE = 1024  # maximum number of poses in a chunk, which one thread solves
MIN_CHUNKS_PER_THREAD = 8  # minimum number of chunks per thread, if there are enough poses

# One pose


def solve_pose(
    search: Search, T: PoseLike, seed: JointValues | None, timeout: float, begin: float
) -> IkResult:
    """Solve for the pose T; :meth:`dls_ik.IkSolver.solve` explains pose, seed and result.

    Most poses are reached in the first attempts, so these are made as fast as possible: the kernel
    validates the arrays of the caller, because validation in Python would take 10 % longer, and a
    generator would take another 10 %. Only if the first attempts fail, a generator continues.

    Args:
        search: Search for the solution.
        T: Desired pose in any form.
        seed: Start configuration; None if the caller gave no seed.
        timeout: Maximum duration [s].
        begin: Time of the call on the clock of `time.perf_counter` [s].
    """
    row, given = None, None if search.is_narrowed else _as_given(search, T, seed)
    if given is not None:
        row = _new_row(search)
        search.attempt_plain(*given, row, seed is not None)
        solved = row.counts.tolist()[0][FOUND_COLUMN] == FOUND_ALL
        if solved and (search.keeps_limits or search.keeps(row.best, given[1])[0]):
            return _result(search, row, Status.SUCCESS, True, begin)
    poses, seeds = given or search.checked(T, seed)
    return finished(pose_slices(search, poses, seeds, seed is not None, timeout, begin, row))


def pose_slices(
    search: Search,
    poses: Array,
    seeds: Array,
    seeded: bool,
    timeout: float,
    begin: float,
    row: Rows | None = None,
) -> Generator[None, None, IkResult]:
    """Return a generator that solves for a pose, and yields about every 10 ms.

    The generator returns the result; see :meth:`dls_ik.IkSolver.slices`.

    Args:
        search: Search for the solution.
        poses: (1, k, 4, 4) desired poses of the k tips.
        seeds: (1, n) seed [rad or m].
        seeded: Whether the caller gave a seed.
        timeout: Maximum duration [s].
        begin: Time of the call on the clock of `time.perf_counter` [s].
        row: State of the search after the first attempts; None if no attempts have been made.

    Raises:
        PoseError: If the pose is not valid.
        JointValueError: If the seed is not valid.
    """
    seeds, no_answer = search.starts(seeds)
    before = begin
    if row is None:
        row, before = _new_row(search), time.perf_counter()
        search.attempt(poses, seeds, search.first_attempts, row, seeded)
    if not row.counts[0, ATTEMPTS_COLUMN]:  # the kernel skipped an inexact or invalid pose or seed
        poses, seeds = search.checked(poses[0], seeds[0])
        search.attempt(poses, seeds, search.first_attempts, row, seeded)
    deadline = math.inf if no_answer[0] else begin + timeout
    attempts = _attempts(search, poses, seeds, seeded, deadline, before, row, bool(no_answer[0]))
    status = yield from attempts
    success = status is Status.SUCCESS
    if not success or no_answer[0] or search.is_narrowed or not search.keeps_limits:
        ended = conclude(search, poses, seeds, row, np.array([int(status)]), no_answer)
        status = Status(int(ended[0]))
        success = bool(has_answer(search, ended, row.best, seeds)[0])
    return _result(search, row, status, success, begin)


def _attempts(
    search: Search,
    poses: Array,
    seeds: Array,
    seeded: bool,
    deadline: float,
    before: float,
    row: Rows,
    no_answer: bool,
) -> Generator[None, None, Status]:
    """Continue a search in slices of several attempts; yield before each slice.

    The number of attempts at most doubles from slice to slice, and is limited to the number that
    takes `SLICE_DURATION`. If no solution is found, the solver tries to prove the pose unreachable
    after `prove_after` attempts, and again at the end of the search. The status is UNREACHABLE if
    the proof succeeds or `no_answer` is true.

    Args:
        search: Search for the solution.
        poses: (1, k, 4, 4) desired poses.
        seeds: (1, n) seed [rad or m].
        seeded: Whether the caller gave a seed.
        deadline: Latest end of the search on the clock of `time.perf_counter` [s].
        before: Time at which the first attempts started, on the clock of `time.perf_counter` [s].
        row: State of the search after the first attempts, read and written.
        no_answer: Whether no configuration within the limits is within `max_change` of the seed.

    Returns:
        The status of the search.
    """
    limit, prove_after = search.max_attempts, search.prove_after
    attempts = search.first_attempts
    while True:
        made, _, solutions, *_ = row.counts.tolist()[0]
        if solutions == FOUND_ALL:
            return Status.SUCCESS
        if solutions == FOUND_BLOCKED:
            return Status.IN_COLLISION
        now = time.perf_counter()
        is_over = made >= limit or now >= deadline
        if solutions == FOUND_NOTHING and (is_over or made == prove_after):
            if no_answer or (
                not search.was_blocked(row)[0] and search.proves_unreachable(poses)[0]
            ):
                return Status.UNREACHABLE
            deadline += time.perf_counter() - now  # the timeout excludes the proof's time
        if is_over:
            return Status.TIMED_OUT if made < limit else Status.MAX_RESTARTS
        affordable = attempts * min(0.5 * (deadline - now), SLICE_DURATION) / (now - before)
        until = limit if made >= prove_after else min(limit, prove_after)
        attempts = max(1, int(min(2.0 * attempts, affordable, until - made)))
        yield
        before = time.perf_counter()
        search.attempt(poses, seeds, attempts, row, seeded)


def finished(slices: Generator[None, None, Result]) -> Result:
    """Run a generator to its end, and return the value of its ``return`` statement."""
    try:
        while True:
            next(slices)
    except StopIteration as end:
        result: Result = end.value
        return result


def _result(search: Search, row: Rows, status: Status, success: bool, begin: float) -> IkResult:
    made, steps, *_ = row.counts.tolist()[0]
    position, rotation, _ = row.figures.tolist()[0]
    duration = time.perf_counter() - begin
    pair = None
    if status is Status.IN_COLLISION:
        (pair,) = pairs_in_the_way(search, row, np.array([status]))
    q, robot, scene = row.best[0], search.robot, search.snapshot
    return IkResult(
        success, status, q, position, rotation, steps, made - 1, duration, robot, scene, pair
    )


def _new_row(search: Search) -> Rows:
    """Return the state of a search for one pose before the first attempt.

    The counts are 0; the configuration and the figures are not initialized, which saves time.
    """
    counts = np.zeros((1, search.columns), np.int64)
    counts[0, RANDOM_STATE_COLUMN] = search.options.random_seed
    return Rows(counts, np.empty((1, search.robot.n)), np.empty((1, 3)))


def _as_given(search: Search, T: Any, seed: Any) -> tuple[Array, Array] | None:
    """Return views of the given pose, (1, k, 4, 4), and seed, (1, n), for the kernels.

    Return None if one of them is not a plain array (see :func:`is_plain`) and must be converted.
    """
    k = len(search.robot.tips)
    if not is_plain(T, (4, 4) if k == 1 else (k, 4, 4)):
        return None
    if seed is None:
        return T.reshape(1, k, 4, 4), search.middle
    return (T.reshape(1, k, 4, 4), seed[None]) if is_plain(seed, (search.robot.n,)) else None


# Batches


def solve_batch(
    search: Search,
    Ts: PoseLike,
    seeds: JointValues | None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> IkBatchResult:
    """Solve for many poses independently; :meth:`dls_ik.IkSolver.solve_batch` has the arguments."""
    begin = time.perf_counter()
    poses = batch_poses(Ts, len(search.robot.tips), search.position_only)
    starts = search.middle if seeds is None else checked_seeds(seeds, search.robot)
    b = len(poses)
    if len(starts) not in (1, b):
        raise JointValueError(f"{b} poses need {b} seeds or one for all; got {len(starts)} seeds")
    workers = usable_cores() if threads is None else checked_count("threads", threads, 1)
    rows, status = search.new_rows(b), np.full(b, int(Status.INTERRUPTED))

    def solve(which: slice) -> None:
        near = starts if len(starts) == 1 else starts[which]
        part = some_rows(rows, which)
        status[which] = solve_rows(search, poses[which], near, seeds is not None, part)

    def result() -> IkBatchResult:
        success = has_answer(search, status, rows.best, starts)
        return batch_result(search, rows, status, success, begin)

    try:
        in_chunks(solve, b, workers, progress)
    except KeyboardInterrupt as error:
        begun = np.flatnonzero(status == Status.INTERRUPTED)
        put_back(rows, begun, search.new_rows(1))
        raise BatchInterrupted(result()) from error
    return result()


def solve_rows(
    search: Search, poses: Array, seeds: Array, seeded: bool, rows: Rows
) -> NDArray[np.int64]:
    """Search for a solution of every pose without a timeout.

    Args:
        search: Search.
        poses: (b, k, 4, 4) desired poses; the kernels validate them.
        seeds: (b, n) seeds, or (1, n) for all poses [rad or m].
        seeded: Whether the caller gave seeds.
        rows: State of the searches before the first attempt; the results are written to it.

    Returns:
        (b,) values of `Status`.
    """
    seeds, no_answer = search.starts(seeds)
    no_answer = np.broadcast_to(no_answer, len(poses))
    restarts = search.options.max_restarts
    limit = 1 + (BATCH_RESTARTS if restarts is None else restarts)
    first = min(limit, search.prove_after)
    search.attempt(poses, seeds, first, rows, seeded)
    if (
        search.keeps_limits
        and (rows.counts[:, FOUND_COLUMN] == FOUND_ALL).all()
        and not no_answer.any()
    ):
        return np.full(len(poses), int(Status.SUCCESS))  # usual case: skip code that holds the GIL
    poses = _solve_inexact(search, poses, seeds, seeded, first, rows)
    ended = np.where(attempts_of(rows) > 0, Status.MAX_RESTARTS, Status.REFUSED)
    is_left = (attempts_of(rows) > 0) & (rows.counts[:, FOUND_COLUMN] < FOUND_ALL)
    left = np.flatnonzero(is_left)
    beyond = search.proves_unreachable(poses[left]) | no_answer[left]
    ended[left[beyond]] = Status.UNREACHABLE
    if limit > first and not beyond.all():
        search.attempt_some(left[~beyond], poses, seeds, limit - first, rows, seeded)
    return conclude(search, poses, seeds, rows, ended, no_answer)


def _solve_inexact(
    search: Search, poses: Array, seeds: Array, seeded: bool, attempts: int, rows: Rows
) -> Array:
    """Make attempts for poses that the kernel skipped because a rotation is slightly inexact.

    The rotations of these poses are made exact before. The arguments are those of
    :meth:`Search.attempt`.

    Returns:
        The poses (b, k, 4, 4); a copy with exact rotations if some rotations were inexact.
    """
    exact: dict[int, Array] = {}
    for i in np.flatnonzero(attempts_of(rows) == 0).tolist():
        if np.isfinite(seeds[i % len(seeds)]).all():  # len(seeds) is 1 or the number of poses
            try:
                exact[i] = checked_poses(poses[i], len(search.robot.tips))
            except PoseError:
                continue
    if exact:
        which, poses = np.array([*exact]), poses.copy()
        poses[which] = [*exact.values()]
        search.attempt_some(which, poses, seeds, attempts, rows, seeded)
    return poses


def usable_cores() -> int:
    """Return the number of cores that this process may use; all cores if not on Linux."""
    affinity = getattr(os, "sched_getaffinity", None)
    return (os.cpu_count() or 1) if affinity is None else len(affinity(0))


def in_chunks(
    solve: Callable[[slice], None], b: int, threads: int, progress: Progress | None
) -> None:
    """Call `solve` for slices of b rows in several threads, in which kernels run without the GIL.

    Args:
        solve: Function that solves the rows of a slice.
        b: Number of rows.
        threads: Number of threads.
        progress: Function that is called with the numbers of finished rows and of all rows, or
            None.
    """
    size = min(MAX_CHUNK_SIZE, max(1, -(-b // (MIN_CHUNKS_PER_THREAD * threads))))
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


def batch_result(
    search: Search,
    rows: Rows,
    status: NDArray[np.int64],
    success: NDArray[np.bool_],
    begin: float,
) -> IkBatchResult:
    """Return the result of a batch from the final state of its searches.

    Args:
        search: Search.
        rows: Final state of the searches.
        status: (b,) values of `Status`.
        success: (b,) whether the configuration of a row is an answer, from :func:`has_answer`.
        begin: Time of the call on the clock of `time.perf_counter` [s].
    """
    return IkBatchResult(
        success=success,
        status=status,
        q=rows.best,
        position_error=rows.figures[:, 0],
        rotation_error=rows.figures[:, 1],
        iterations=rows.counts[:, STEPS_COLUMN],
        restarts=np.maximum(attempts_of(rows) - 1, 0),
        duration=time.perf_counter() - begin,
        robot=search.robot,
        scene=search.snapshot,
        pairs_in_the_way=pairs_in_the_way(search, rows, status),
    )


def checked_seeds(seeds: JointValues, robot: RobotModel) -> Array:
    """Return validated seeds (b, n), or (1, n) for all poses [rad or m].

    Raises:
        JointValueError: If the seeds are not an array of numbers of shape (b, n) or (n,).
    """
    n = robot.n
    try:
        starts = real_array(ordered_values(seeds, robot.joint_names, robot.tree.joint))
    except (TypeError, ValueError, OverflowError) as error:
        raise JointValueError(f"seeds must be an array of numbers (b, {n}): {error}") from error
    if starts.ndim not in (1, 2) or starts.shape[-1] != n:
        raise JointValueError(
            f"seeds must have the shape (b, {n}) or ({n},); got the shape {starts.shape}"
        )
    return starts.reshape(-1, n)
