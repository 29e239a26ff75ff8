"""One pose, with an eye on the clock."""

from __future__ import annotations

import math
import time
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from dls_ik.core.search import ALL, ATTEMPTS, FOUND, NOTHING, STATE
from dls_ik.core.types import Array, Rows
from dls_ik.model.joint import checked_configuration
from dls_ik.solver.best import approach_poses
from dls_ik.solver.method import AUTO
from dls_ik.solver.poses import checked_poses, is_plain
from dls_ik.solver.problem import Problem
from dls_ik.solver.request import Request
from dls_ik.solver.result import IkResult, Status

if TYPE_CHECKING:
    from dls_ik.solver.solver import IkSolver

Result = TypeVar("Result")
FIRST_ATTEMPTS = 8  # of "auto" before the first look at the clock, about 20 us
QUICK = 100  # steps of an attempt up to which that holds
UNLIMITED = 2**62
SLICE = 0.01  # [s] of attempts between two looks at the clock, about


def solve_pose(
    solver: IkSolver,
    T: ArrayLike,
    seed: ArrayLike | None,
    begin: float,
    problem: Problem,
    request: Request,
    timeout: float,
) -> IkResult:
    """As :meth:`dls_ik.IkSolver.solve`; `begin` [s] on the clock of perf_counter.

    Most poses take the first attempts only, and those are made here: a generator takes as long as
    a tenth of them.
    """
    row = None
    is_usual = _is_quick(solver) and solver.keeps_limits and not request.narrows
    if is_usual and _is_plain(solver, T, seed):
        row = _new_row(solver)
        poses, seeds = _plain(T, seed, solver)
        attempts = _first_attempts(solver)
        solver.search(problem, poses, seeds, attempts, row, request, seed is not None)
        if row.counts[0, FOUND] == ALL:
            return _result(row, Status.SUCCESS, True, begin)
        if row.counts[0, ATTEMPTS] == 0:  # the kernel passed over what is not exact
            row = None
    return finished(pose_slices(solver, T, seed, begin, problem, request, timeout, row))


def pose_slices(
    solver: IkSolver,
    T: ArrayLike,
    seed: ArrayLike | None,
    begin: float,
    problem: Problem,
    request: Request,
    timeout: float,
    row: Rows | None = None,
) -> Generator[None, None, IkResult]:
    """As :meth:`dls_ik.IkSolver.slices`; `begin` [s] on the clock of perf_counter.

    Args:
        row: of the first attempts, where they were made and found nothing; of poses that are plain.
    """
    begun, deadline, seeded = None if row is None else begin, begin + timeout, seed is not None
    row = _new_row(solver) if row is None else row
    plain = _is_plain(solver, T, seed)
    poses, seeds = _plain(T, seed, solver) if plain else _checked(T, seed, solver)
    nothing = request.narrows and bool(request.leaves_nothing(solver.robot, seeds)[0])
    if nothing:  # as near as the limits are
        seeds = solver.robot.clip(seeds)
    given = solver, problem, request
    missed = yield from _attempts(*given, poses, seeds, seeded, deadline, row, nothing, begun)
    if missed is Status.REFUSED:  # the kernel passed over what is not exact
        poses = _checked(T, seed, solver)[0]
        missed = yield from _attempts(*given, poses, seeds, seeded, deadline, row, nothing)
    status = missed
    if nothing or missed is not Status.SUCCESS or not solver.keeps_limits:
        missed = Status.UNREACHABLE if nothing else missed
        status = _outcome(solver, problem, request, poses, seeds, missed, row)
        status = Status.FAR_FROM_SEED if nothing else status
    is_near = request.approximate and not nothing and _keeps(solver, request, row.best[0], seeds[0])
    return _result(row, status, status is Status.SUCCESS or is_near, begin)


def _result(row: Rows, status: Status, success: bool, begin: float) -> IkResult:
    made, steps, _, _ = row.counts.tolist()[0]
    position, rotation, _ = row.figures.tolist()[0]
    duration = time.perf_counter() - begin
    return IkResult(success, status, row.best[0], position, rotation, steps, made - 1, duration)


def _is_plain(solver: IkSolver, T: Any, seed: Any) -> bool:
    """Whether pose and seed are arrays as kernels take them."""
    n, k = solver.robot.n, len(solver.robot.tips)
    return is_plain(T, (4, 4) if k == 1 else (k, 4, 4)) and (seed is None or is_plain(seed, (n,)))


def _new_row(solver: IkSolver) -> Rows:
    counts = np.zeros((1, 4), np.int64)
    counts[0, STATE] = solver.options.random_seed
    return Rows(counts, np.empty((1, solver.robot.n)), np.empty((1, 3)))


def _is_quick(solver: IkSolver) -> bool:
    return solver.method == AUTO and solver.options.max_iterations <= QUICK


def _most_attempts(solver: IkSolver) -> int:
    restarts = solver.options.max_restarts
    return UNLIMITED if restarts is None else restarts + 1


def _first_attempts(solver: IkSolver) -> int:
    """How many are made before the first look at the clock."""
    first = FIRST_ATTEMPTS if _is_quick(solver) else 1
    return min(first, _most_attempts(solver), solver.options.prove_after)


def _plain(T: Any, seed: Any, solver: IkSolver) -> tuple[Array, Array]:
    """Arrays as kernels take them; the kernel looks at the numbers."""
    poses = T.reshape(1, -1, 4, 4)
    return poses, solver.middle if seed is None else seed[None]


def _checked(T: ArrayLike, seed: ArrayLike | None, solver: IkSolver) -> tuple[Array, Array]:
    """(1, k, 4, 4) and (1, n) from whatever was given."""
    poses = checked_poses(T, len(solver.robot.tips))[None]
    if seed is None:
        return poses, solver.middle
    return poses, checked_configuration(seed, solver.robot.joint_names)[None]


def _attempts(
    solver: IkSolver,
    problem: Problem,
    request: Request,
    poses: Array,
    seeds: Array,
    seeded: bool,
    deadline: float,
    row: Rows,
    nothing: bool,
    begun: float | None = None,
) -> Generator[None, None, Status]:
    """Make attempts, more at a time as they prove quick; yield between; return how that ended.

    The first ones were made where it is told when they were `begun` [s]. A pose that is proved to
    be beyond reach, or where `nothing` is near enough to the seed, gets no more than those. REFUSED
    is a pose that kernels do not take as it is.
    """
    limit, asked = _most_attempts(solver), solver.options.prove_after
    attempts = _first_attempts(solver)
    if nothing:
        deadline = math.inf
    while True:
        before = time.perf_counter() if begun is None else begun
        if begun is None:
            solver.search(problem, poses, seeds, attempts, row, request, seeded)
        begun = None
        made, _, found, _ = row.counts.tolist()[0]
        if found == ALL or made == 0:
            return Status.SUCCESS if made else Status.REFUSED
        now = time.perf_counter()
        if made >= limit or now >= deadline:
            return Status.TIMED_OUT if made < limit else Status.MAX_RESTARTS
        if made == asked and found == NOTHING:
            if nothing or solver.reach.proves_beyond(problem, poses[0]):
                return Status.UNREACHABLE
            deadline += time.perf_counter() - now  # bounds are found once, not for this pose alone
        affordable = attempts * min(0.5 * (deadline - now), SLICE) / (now - before)
        until = limit if made >= asked else min(limit, asked)
        attempts = max(1, int(min(2.0 * attempts, affordable, until - made)))
        yield


def _outcome(
    solver: IkSolver,
    problem: Problem,
    request: Request,
    poses: Array,
    seeds: Array,
    missed: Status,
    row: Rows,
) -> Status:
    """Say how a search ended; come nearer to a pose that it missed."""
    status = missed
    if row.counts[0, FOUND] == NOTHING:
        known = status is Status.UNREACHABLE
        if known or solver.reach.proves_beyond(problem, poses[0]):
            status = Status.UNREACHABLE
        if request.approximate or (status is Status.UNREACHABLE and solver.method == AUTO):
            approach_poses(solver, problem, request, poses, seeds, row)
    if row.counts[0, FOUND] == NOTHING:
        return status
    if _keeps(solver, request, row.best[0], seeds[0]):
        return Status.SUCCESS
    inside = solver.robot.within_limits(row.best[0])
    return Status.FAR_FROM_SEED if inside else Status.OUTSIDE_LIMITS


def _keeps(solver: IkSolver, request: Request, q: Array, seed: Array) -> bool:
    """Whether an answer keeps the limits, those around the seed too; not all methods see to it."""
    if solver.keeps_limits:
        return True
    robot = solver.robot
    inside = (q >= robot.lower) & (q <= robot.upper) & (np.abs(q - seed) <= request.change)
    return bool(inside.all())


def finished(slices: Generator[None, None, Result]) -> Result:
    """What a generator returns, after all its slices."""
    try:
        while True:
            next(slices)
    except StopIteration as end:
        result: Result = end.value
        return result
