# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Solver calls for many poses, for paths and for several solutions with a stack of tasks."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cmp_to_key
from typing import TYPE_CHECKING, Any

import numpy as np

from dls_ik.core.selection import SELECT_NEAREST
from dls_ik.core.stack_motion import compare_levels
from dls_ik.core.types import Array
from dls_ik.errors import BatchInterrupted, JointValueError, PoseError
from dls_ik.model.joint import JointValues
from dls_ik.model.pose import PoseLike
from dls_ik.solver.calls import (
    BATCH_RESTARTS,
    Progress,
    checked_seeds,
    in_chunks,
    usable_cores,
)
from dls_ik.solver.options import checked_count
from dls_ik.solver.paths import JointSteps, joint_steps
from dls_ik.solver.poses import batch_poses
from dls_ik.solver.result import IkBatchResult, IkPathResult, IkResult, Status
from dls_ik.solver.search import Search
from dls_ik.solver.solutions import IkSolutions, distinct, solve_all
from dls_ik.solver.stack_search import Improved, StackSearch

if TYPE_CHECKING:
    from dls_ik.scene.snapshot import PathContact

NUM_LEVEL_STARTS = 64  # number of solutions of the tips' task from which levels are minimised


def solve_batch_levels(
    levels: StackSearch,
    search: Search,
    Ts: PoseLike,
    seeds: JointValues | None,
    threads: int | None,
    progress: Progress | None,
) -> IkBatchResult:
    """Solve a stack for many poses; :meth:`dls_ik.IkSolver.solve_batch` has the arguments."""
    begin, search = time.perf_counter(), _untimed(search)
    poses = batch_poses(Ts, len(search.robot.tips), search.position_only)
    starts = None if seeds is None else checked_seeds(seeds, search.robot)
    b = len(poses)
    if starts is not None and len(starts) not in (1, b):
        raise JointValueError(f"{b} poses need {b} seeds or one for all; got {len(starts)} seeds")
    workers = usable_cores() if threads is None else checked_count("threads", threads, 1)
    found = [_no_result(search, levels, Status.INTERRUPTED)] * b

    def solve(which: slice) -> None:
        for i in range(which.start, which.stop):
            seed = None if starts is None else starts[i % len(starts)]
            found[i] = _solve(levels, search, poses[i], seed)

    try:
        in_chunks(solve, b, workers, progress)
    except KeyboardInterrupt as error:
        raise BatchInterrupted(_batch(search, found, begin)) from error
    return _batch(search, found, begin)


def solve_path_levels(
    levels: StackSearch,
    search: Search,
    Ts: PoseLike,
    seed: JointValues | None,
    max_joint_step: JointSteps,
    progress: Progress | None,
) -> IkPathResult:
    """Solve a stack along a path; :meth:`dls_ik.IkSolver.solve_path` has the arguments.

    Each answer is the seed of the next pose. If the motion to an answer is a jump, the pose is
    solved again, from the solution of the tips' task that is closest to the previous answer. The
    second answer is used if its motion is smaller.
    """
    begin, search = time.perf_counter(), _untimed(search)
    steps = joint_steps(search.robot, max_joint_step)
    poses = batch_poses(Ts, len(search.robot.tips), search.position_only)
    nearest = replace(search, kind=SELECT_NEAREST)
    last = None if seed is None else search.checked_seed(seed)
    found = list[IkResult]()
    jumps, contacts = np.zeros(len(poses), np.bool_), list[Any]()
    for i, T in enumerate(poses):
        result = _solve(levels, search, T, last)
        if last is not None and result.success and (abs(result.q - last) > steps).any():
            other = _solve(levels, nearest, T, last)
            if other.success and _change(other.q, last) < _change(result.q, last):
                result = other
            jumps[i] = (abs(result.q - last) > steps).any()
        follows = bool(i and result.success and found[-1].success)
        contacts.append(_contact(search, found[-1].q, result.q) if follows else None)
        found.append(result)
        if result.success:
            last = result.q
        if progress is not None:
            progress(i + 1, len(poses))
    whole = vars(_batch(search, found, begin))
    return IkPathResult(
        **whole, jumps=jumps, contacts=() if search.snapshot is None else tuple(contacts)
    )


def solve_all_levels(
    levels: StackSearch, search: Search, T: PoseLike, count: int, seed: JointValues | None
) -> IkSolutions:
    """Find distinct local minima of a stack; :meth:`dls_ik.IkSolver.solve_all` has the arguments.

    The levels are minimised from distinct solutions of the tips' task. The minima are compared
    level by level, and sorted with the best first.
    """
    count, n = checked_count("count", count, 0), search.robot.n
    plain = solve_all(search, T, max(count, NUM_LEVEL_STARTS), seed)
    found = [levels.improve(search, plain.T, q) for q in plain]
    found = sorted((each for each in found if each.result.success), key=_PRIORITY)
    rows = np.empty((0, n + 2 + levels.num_levels))
    rows = distinct(search, rows, np.array([*map(_row, found)]).reshape(-1, rows.shape[1]))
    q, position, rotation, errors = np.split(rows[:count], (n, n + 1, n + 2), axis=1)
    return replace(
        plain,
        q=np.ascontiguousarray(q),
        position_error=position[:, 0].copy(),
        rotation_error=rotation[:, 0].copy(),
        level_errors=errors.copy(),
    )


def _compare(one: Improved, other: Improved) -> int:
    """Return -1 if the minimum `one` is better than `other` by priority, 1 if worse, else 0."""
    return -int(compare_levels(one.cost, other.cost))


_PRIORITY = cmp_to_key(_compare)


def _row(found: Improved) -> list[float]:
    """Return joint positions, position error, rotation error and errors of the levels in a row."""
    result = found.result
    return [*result.q, result.position_error, result.rotation_error, *result.level_errors]


def _untimed(search: Search) -> Search:
    """Return a search whose calls end by their number of restarts, for calls without a timeout."""
    if search.options.max_restarts is not None:
        return search
    return replace(search, options=replace(search.options, max_restarts=BATCH_RESTARTS))


def _solve(levels: StackSearch, search: Search, T: Array, seed: Array | None) -> IkResult:
    """Return the result for poses T (k, 4, 4); an invalid pose or seed has the status REFUSED."""
    try:
        given = T[0] if len(T) == 1 else T
        return levels.solve(search, given, seed, math.inf, time.perf_counter())
    except (PoseError, JointValueError):
        return _no_result(search, levels, Status.REFUSED)


def _no_result(search: Search, levels: StackSearch, status: Status) -> IkResult:
    """Return a result without joint positions."""
    nan, robot = math.nan, search.robot
    q, errors = np.full(robot.n, nan), (nan,) * levels.num_levels
    return IkResult(
        False, status, q, nan, nan, 0, 0, 0.0, robot, search.snapshot, level_errors=errors
    )


def _batch(search: Search, found: Sequence[IkResult], begin: float) -> IkBatchResult:
    """Return the results of a call that started at the time `begin` [s] as a batch."""
    n, errors = search.robot.n, [result.level_errors for result in found]
    return IkBatchResult(
        success=np.array([result.success for result in found], np.bool_),
        status=np.array([int(result.status) for result in found], np.int64),
        q=np.array([result.q for result in found]).reshape(-1, n),
        position_error=np.array([result.position_error for result in found]),
        rotation_error=np.array([result.rotation_error for result in found]),
        iterations=np.array([result.iterations for result in found], np.int64),
        restarts=np.array([result.restarts for result in found], np.int64),
        duration=time.perf_counter() - begin,
        robot=search.robot,
        scene=search.snapshot,
        pairs_in_the_way=tuple(result.pair_in_the_way for result in found),
        level_errors=np.array(errors).reshape(len(found), -1),
    )


def _change(q: Array, before: Array) -> float:
    """Return the largest change of a joint between two configurations (n,) [rad or m]."""
    return float(np.abs(q - before).max())


def _contact(search: Search, before: Array, q: Array) -> PathContact | None:
    snapshot = search.snapshot
    return None if snapshot is None else snapshot.path_in_collision(before, q)
