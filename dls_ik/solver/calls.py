"""The calls of a solver: one pose by the clock, all its solutions, and batches on all cores."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.fast.table import LEAF
from dls_ik.core.search import unwind
from dls_ik.core.selection import (
    ALL,
    ATTEMPTS,
    BLOCKED,
    FIRST,
    FOUND,
    NEAREST,
    NOTHING,
    STATE,
    STEPS,
)
from dls_ik.core.types import WIDEST, Array, Rows
from dls_ik.errors import BatchInterrupted, JointValueError, PoseError
from dls_ik.model.joint import JointValues, ordered_values, real_array
from dls_ik.model.pose import PoseLike
from dls_ik.model.robot import RobotModel
from dls_ik.solver.conclusion import conclude, has_answer, pairs_in_the_way
from dls_ik.solver.options import checked_count
from dls_ik.solver.poses import batch_poses, checked_poses, is_plain
from dls_ik.solver.result import IkBatchResult, IkResult, Status
from dls_ik.solver.search import Search, attempts_of, found, put_back, some_rows

Result = TypeVar("Result")
Progress = Callable[[int, int], None]

SLICE = 0.01  # [s] of attempts between two looks at the clock, about

DISTINCT = 0.1  # by which some joint differs, in the joint metric [rad or m]
STARTS, MAX_IN_VAIN, MAX_ROUNDS = 64, 16, 200  # a round; rounds without a new solution; rounds

RESTARTS = 1000  # of one pose of a batch, where the solver has no bound of its own
CHUNK = 1024  # poses that a thread takes at a time, at most
CHUNKS = 8  # for each thread, at least

# One pose


def solve_pose(
    search: Search, T: PoseLike, seed: JointValues | None, timeout: float, begin: float
) -> IkResult:
    """Solve for a pose as :meth:`dls_ik.IkSolver.solve`.

    Most poses need the first attempts only. Those are made here on what is given, which the kernel
    checks: a generator and checks in Python would take a tenth of their time each.

    Args:
        timeout: [s], begin: the clock at the call, by perf_counter [s].
    """
    row, given = None, None if search.is_narrowed else _as_given(search, T, seed)
    if given is not None:
        row = _new_row(search)
        search.attempt(*given, search.first_attempts, row, seed is not None)
        solved = row.counts.tolist()[0][FOUND] == ALL
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
    """Solve for a pose as :meth:`dls_ik.IkSolver.slices`, in arrays as kernels take them.

    Args:
        poses: (1, k, 4, 4), seeds: (1, n); seeded: whether a seed was given.
        timeout: [s], begin: the clock at the call, by perf_counter [s].
        row: of the first attempts, if they were made since `begin`.

    Raises:
        PoseError, JointValueError: values that are not valid.
    """
    seeds, no_answer = search.starts(seeds)
    before = begin
    if row is None:
        row, before = _new_row(search), time.perf_counter()
        search.attempt(poses, seeds, search.first_attempts, row, seeded)
    if not row.counts[0, ATTEMPTS]:  # passed over by the kernel: it is inexact, or not valid
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
    """Make more attempts after the first, and yield between; return how they ended.

    Attempts are made more at a time as they prove quick. A pose that is proved to be beyond reach,
    or that has `no_answer` near the seed, gets `prove_after` attempts.

    Args:
        before: when the first attempts began, on the clock of `deadline` [s].
    """
    limit, prove_after = search.max_attempts, search.options.prove_after
    attempts = search.first_attempts
    while True:
        made, _, solutions, *_ = row.counts.tolist()[0]
        if solutions == ALL:
            return Status.SUCCESS
        if solutions == BLOCKED:
            return Status.IN_COLLISION
        now = time.perf_counter()
        is_over = made >= limit or now >= deadline
        if solutions == NOTHING and (is_over or made == prove_after):
            if no_answer or (
                not search.was_blocked(row)[0] and search.proves_unreachable(poses)[0]
            ):
                return Status.UNREACHABLE
            deadline += time.perf_counter() - now  # bounds are computed once for all poses
        if is_over:
            return Status.TIMED_OUT if made < limit else Status.MAX_RESTARTS
        affordable = attempts * min(0.5 * (deadline - now), SLICE) / (now - before)
        until = limit if made >= prove_after else min(limit, prove_after)
        attempts = max(1, int(min(2.0 * attempts, affordable, until - made)))
        yield
        before = time.perf_counter()
        search.attempt(poses, seeds, attempts, row, seeded)


def finished(slices: Generator[None, None, Result]) -> Result:
    """Run a generator to its end, and return its result."""
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
    """Return the state of a search before its first attempt, which writes all but the counts."""
    counts = np.zeros((1, search.columns), np.int64)
    counts[0, STATE] = search.options.random_seed
    return Rows(counts, np.empty((1, search.robot.n)), np.empty((1, 3)))


def _as_given(search: Search, T: Any, seed: Any) -> tuple[Array, Array] | None:
    """Return a pose (1, k, 4, 4) and a seed (1, n) if they are arrays as kernels take them."""
    k = len(search.robot.tips)
    if not is_plain(T, (4, 4) if k == 1 else (k, 4, 4)):
        return None
    if seed is None:
        return T.reshape(1, k, 4, 4), search.middle
    return (T.reshape(1, k, 4, 4), seed[None]) if is_plain(seed, (search.robot.n,)) else None


# All solutions of a pose


def solve_all(search: Search, T: PoseLike, count: int, seed: JointValues | None) -> Array:
    """Find distinct solutions of a pose as :meth:`dls_ik.IkSolver.solve_all`."""
    count = checked_count("count", count, 0)
    poses, near = search.checked(T, seed)
    weights = search.problem.starts.joint_weights
    kept = _distinct(weights, near[:0], _nearest_solution(search, poses, near))
    if len(kept) == 0 and search.proves_unreachable(poses)[0]:
        return kept
    if len(kept) < count and search.problem.has_table:
        kept = _distinct(weights, kept, _solutions(search, poses, None, near))
    rng = np.random.default_rng(search.options.random_seed)
    low, high = _bounds_of_starts(search, near)
    in_vain = 0
    for _ in range(MAX_ROUNDS):
        if len(kept) >= count or in_vain >= MAX_IN_VAIN:
            break
        starts = rng.uniform(low, high, (STARTS, search.robot.n))
        more = _distinct(weights, kept, _solutions(search, poses, starts, near))
        in_vain = 0 if len(more) > len(kept) else in_vain + 1
        kept = more
    distances = ((kept - near) ** 2) @ weights
    return kept[np.argsort(distances, kind="stable")[:count]]


def _nearest_solution(search: Search, poses: Array, near: Array) -> Array:
    """(0 or 1, n) the solution that `solve_type="distance"` finds."""
    row = search.new_rows(1)
    replace(search, kind=NEAREST).attempt(poses, near, search.options.num_candidates, row)
    return _admissible(search, row.best[found(row)], near)


def _solutions(search: Search, poses: Array, starts: Array | None, near: Array) -> Array:
    """(s, n) solutions from some starts (b, n), or from those of the table."""
    b = LEAF if starts is None else len(starts)
    rows = search.new_rows(b)
    anywhere = replace(search, kind=FIRST, max_change=np.full(search.robot.n, np.inf))
    if starts is None:
        rows.counts[:, ATTEMPTS] = np.arange(b)  # each as if it had used the starts before
    Ts = np.repeat(poses, b, axis=0)
    anywhere.attempt(Ts, near if starts is None else starts, 1, rows, starts is not None)
    solved, robot = rows.best[found(rows)], search.robot
    for q in solved:
        unwind(search.problem.starts.periodic, robot.lower, robot.upper, near[0], q)
    return _admissible(search, solved, near)


def _bounds_of_starts(search: Search, near: Array) -> tuple[Array, Array]:
    """(1, n) each: the limits, and no farther from `near` than answers may be."""
    robot, change = search.robot, search.max_change
    low, high = np.maximum(robot.lower, near - change), np.minimum(robot.upper, near + change)
    lower, upper = robot.finite_limits()
    wide = ~(high - low <= WIDEST)
    low, high = np.where(wide, lower, low), np.where(wide, upper, high)
    return low + 0.0, np.maximum(low, high) + 0.0  # NumPy draws nothing from 0.0 to -0.0


def _admissible(search: Search, q: Array, near: Array) -> Array:
    """Those of q (s, n) that keep the limits, and are near enough."""
    return q[search.is_inside(q) & search.is_near(q, near)]


def _distinct(weights: Array, kept: Array, more: Array) -> Array:
    """`kept` (s, n), and those of `more` (b, n) that differ from all before; weights: (n,)."""
    for q in more:
        if ((np.sqrt(weights) * np.abs(kept - q)).max(axis=1, initial=0.0) > DISTINCT).all():
            kept = np.vstack([kept, q])
    return kept


# Batches


def solve_batch(
    search: Search,
    Ts: PoseLike,
    seeds: JointValues | None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> IkBatchResult:
    """Solve for many poses as :meth:`dls_ik.IkSolver.solve_batch`."""
    begin = time.perf_counter()
    poses = batch_poses(Ts, len(search.robot.tips), search.position_only)
    starts = search.middle if seeds is None else _checked_seeds(seeds, search.robot)
    b = len(poses)
    if len(starts) not in (1, b):
        raise JointValueError(f"{b} poses need {b} seeds or one for all, not {len(starts)}")
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
        _in_chunks(solve, b, workers, progress)
    except KeyboardInterrupt as error:
        begun = np.flatnonzero(status == Status.INTERRUPTED)
        put_back(rows, begun, search.new_rows(1))
        raise BatchInterrupted(result()) from error
    return result()


def solve_rows(
    search: Search, poses: Array, seeds: Array, seeded: bool, rows: Rows
) -> NDArray[np.int64]:
    """Make attempts for every pose, as many as the options allow, and return how each ended.

    Args:
        poses: (b, k, 4, 4), not checked; seeds: (b, n), or (1, n) for all.
        seeded: whether the seeds were given.
        rows: state of the searches, out.
    """
    seeds, no_answer = search.starts(seeds)
    no_answer = np.broadcast_to(no_answer, len(poses))
    restarts = search.options.max_restarts
    limit = 1 + (RESTARTS if restarts is None else restarts)
    first = min(limit, search.options.prove_after)
    search.attempt(poses, seeds, first, rows, seeded)
    if search.keeps_limits and (rows.counts[:, FOUND] == ALL).all() and not no_answer.any():
        return np.full(len(poses), int(Status.SUCCESS))  # as a rule; the rest holds Python's lock
    poses = _solve_inexact(search, poses, seeds, seeded, first, rows)
    ended = np.where(attempts_of(rows) > 0, Status.MAX_RESTARTS, Status.REFUSED)
    is_left = (attempts_of(rows) > 0) & (rows.counts[:, FOUND] < ALL)
    left = np.flatnonzero(is_left)
    beyond = search.proves_unreachable(poses[left]) | no_answer[left]
    ended[left[beyond]] = Status.UNREACHABLE
    if limit > first and not beyond.all():
        search.attempt_some(left[~beyond], poses, seeds, limit - first, rows, seeded)
    return conclude(search, poses, seeds, rows, ended, no_answer)


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


def usable_cores() -> int:
    """Return the number of cores that this process may use; Linux alone tells which those are."""
    affinity = getattr(os, "sched_getaffinity", None)
    return (os.cpu_count() or 1) if affinity is None else len(affinity(0))


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


def batch_result(
    search: Search,
    rows: Rows,
    status: NDArray[np.int64],
    success: NDArray[np.bool_],
    begin: float,
) -> IkBatchResult:
    """Return the results of rows, from the clock at the call on, by perf_counter [s]."""
    return IkBatchResult(
        success=success,
        status=status,
        q=rows.best,
        position_error=rows.figures[:, 0],
        rotation_error=rows.figures[:, 1],
        iterations=rows.counts[:, STEPS],
        restarts=np.maximum(attempts_of(rows) - 1, 0),
        duration=time.perf_counter() - begin,
        robot=search.robot,
        scene=search.snapshot,
        pairs_in_the_way=pairs_in_the_way(search, rows, status),
    )


def _checked_seeds(seeds: JointValues, robot: RobotModel) -> Array:
    """(b, n), or (1, n)."""
    n = robot.n
    try:
        starts = real_array(ordered_values(seeds, robot.joint_names, robot.tree.joint))
    except (TypeError, ValueError, OverflowError) as error:
        raise JointValueError(f"seeds are an array of numbers (b, {n}): {error}") from error
    if starts.ndim not in (1, 2) or starts.shape[-1] != n:
        raise JointValueError(f"seeds have the shape (b, {n}) or ({n},), not {starts.shape}")
    return starts.reshape(-1, n)
