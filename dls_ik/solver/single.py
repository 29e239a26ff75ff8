"""One pose: an answer with an eye on the clock, or all solutions."""

from __future__ import annotations

import math
import time
from collections.abc import Generator
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from dls_ik.core.fast.table import LEAF
from dls_ik.core.search import ALL, ATTEMPTS, FIRST, FOUND, NEAREST, NOTHING, STATE, unwind
from dls_ik.core.types import WIDEST, Array, Rows
from dls_ik.errors import OptionError
from dls_ik.solver.result import IkResult, Status
from dls_ik.solver.search import Search, found
from dls_ik.solver.task import is_plain
from dls_ik.text import quoted

Result = TypeVar("Result")

SLICE = 0.01  # [s] of attempts between two looks at the clock, about

DISTINCT = 0.1  # by which some joint differs, in the joint metric [rad or m]
STARTS, MAX_IN_VAIN, MAX_ROUNDS = 64, 16, 200  # a round; rounds without a new solution; rounds


def solve_pose(
    search: Search, T: ArrayLike, seed: ArrayLike | None, timeout: float, begin: float
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
            return _result(row, Status.SUCCESS, True, begin)
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
    no_answer = search.has_no_answer(seeds)
    if no_answer[0]:  # as near as the limits are
        seeds = search.robot.clip(seeds)
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
        ended = search.conclude(poses, seeds, row, np.array([int(status)]), no_answer)
        status = Status(int(ended[0]))
        success = bool(search.has_answer(ended, row.best, seeds)[0])
    return _result(row, status, success, begin)


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
        made, _, solutions, _ = row.counts.tolist()[0]
        if solutions == ALL:
            return Status.SUCCESS
        now = time.perf_counter()
        is_over = made >= limit or now >= deadline
        if solutions == NOTHING and (is_over or made == prove_after):
            if no_answer or search.proves_unreachable(poses)[0]:
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


def _result(row: Rows, status: Status, success: bool, begin: float) -> IkResult:
    made, steps, _, _ = row.counts.tolist()[0]
    position, rotation, _ = row.figures.tolist()[0]
    duration = time.perf_counter() - begin
    return IkResult(success, status, row.best[0], position, rotation, steps, made - 1, duration)


def _new_row(search: Search) -> Rows:
    """Return the state of a search before its first attempt, which writes all but the counts."""
    counts = np.zeros((1, 4), np.int64)
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


def solve_all(search: Search, T: ArrayLike, count: int, seed: ArrayLike | None) -> Array:
    """Find distinct solutions of a pose as :meth:`dls_ik.IkSolver.solve_all`."""
    if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 0:
        raise OptionError(f"count is a whole number from 0, not {quoted(count)}")
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
    inside = search.robot.within_limits(q) & (np.abs(q - near) <= search.max_change).all(axis=1)
    return q[inside]


def _distinct(weights: Array, kept: Array, more: Array) -> Array:
    """`kept` (s, n), and those of `more` (b, n) that differ from all before; weights: (n,)."""
    for q in more:
        if ((np.sqrt(weights) * np.abs(kept - q)).max(axis=1, initial=0.0) > DISTINCT).all():
            kept = np.vstack([kept, q])
    return kept
