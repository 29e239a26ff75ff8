# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Solver calls for a stack of tasks: several starts, each improved level by level."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dls_ik import compat
from dls_ik.core.boxes import boxed
from dls_ik.core.stack import ROW_FRAME, ROW_OBJECTIVE
from dls_ik.core.stack_motion import LEVEL_TOLERANCE, compare_levels, search_levels
from dls_ik.core.types import Array
from dls_ik.solver.calls import solve_pose
from dls_ik.solver.problem import largest_errors
from dls_ik.solver.result import IkResult, Status

if TYPE_CHECKING:
    from dls_ik.model.joint import JointValues
    from dls_ik.model.pose import PoseLike
    from dls_ik.solver.search import Search
    from dls_ik.solver.stack_problem import StackProblem

NUM_STACK_STARTS = (
    8  # number of starts without a seed; fewer if all levels are reached or time is up
)
MAX_STACK_ITERATIONS = 300  # maximum number of iterations from one start

_search_levels = compat.EntryPoint(search_levels)


class _Candidate(NamedTuple):
    """Result of the search from one start."""

    q: Array  # (n,) joint positions [rad or m]
    e: Array  # (m,) scaled errors of all rows
    cost: Array  # (l,) costs of the levels, see `search_levels`
    iterations: int


class Improved(NamedTuple):
    """Local minimum of the levels, found from one start configuration."""

    result: IkResult
    cost: Array  # (l,) costs of the levels, to compare minima by priority


class StackSearch:
    """Searches configurations for a stack of tasks.

    From each start, the levels are minimised by priority until no small step improves them. Without
    a seed, several starts are tried, and the best result by priority is returned. With a seed, only
    the result that the seed leads to is returned, so that neighbouring calls have neighbouring
    answers.

    Args:
        problem: The stack as structs.
        starts_at_tips: Whether the tips are in the first level, so that starts are solutions of
            their task.
    """

    def __init__(self, problem: StackProblem, starts_at_tips: bool) -> None:
        self._problem, self._starts_at_tips = problem, starts_at_tips
        self._box = boxed(problem.params)

    @property
    def num_levels(self) -> int:
        """Number of levels of the stack."""
        return len(self._problem.params.ends)

    def improve(self, search: Search, T: Array, q: Array) -> Improved:
        """Return the local minimum of the levels that is found from a start configuration.

        Args:
            search: Search for the task of the tips, within the current scene.
            T: (k, 4, 4) desired poses of the tips.
            q: (n,) start [rad or m].
        """
        begin = time.perf_counter()
        found = self._minimise(self._problem.poses(T), q)
        return Improved(self._result(search, found, found.iterations, 0, begin), found.cost)

    def solve(
        self, search: Search, T: PoseLike, seed: JointValues | None, timeout: float, begin: float
    ) -> IkResult:
        """Return the best result of a call of :meth:`dls_ik.IkSolver.solve`.

        Args:
            search: Search for the task of the tips, within the current scene.
            T: Desired poses of the tips.
            seed: Start configuration; None if the caller gave no seed.
            timeout: Maximum duration [s].
            begin: Time of the call on the clock of `time.perf_counter` [s].
        """
        poses, _ = search.checked(T, seed)
        targets = self._problem.poses(poses[0])
        iterations, restarts = 0, -1
        starts = self._starts(search, T, seed, timeout, begin)
        first = next(starts)
        best = self._minimise(targets, first.q, 0)
        if self._starts_at_tips and not first.success:
            return first._replace(level_errors=self._level_errors(best.e))
        for start in itertools.chain((first,), starts):
            restarts += 1
            iterations += start.iterations
            if self._starts_at_tips and not start.success:
                continue
            found = self._minimise(targets, start.q)
            iterations += found.iterations
            if search.snapshot is not None and search.snapshot.in_collision(found.q[None])[0]:
                continue
            if compare_levels(found.cost, best.cost) > 0:
                best = found
            if self._is_reached(best) or time.perf_counter() - begin > timeout:
                break
        return self._result(search, best, iterations, restarts, begin)

    def _starts(
        self,
        search: Search,
        T: PoseLike,
        seed: JointValues | None,
        timeout: float,
        begin: float,
    ) -> Iterator[IkResult]:
        """Yield results with start configurations.

        These are solutions of the tips' task if the tips are in the first level.

        The arguments are those of :meth:`solve`.
        """
        robot, rng = search.robot, np.random.default_rng(search.options.random_seed)
        count = 1 if seed is not None else NUM_STACK_STARTS
        for number in range(count):
            at = seed if seed is not None or number == 0 else robot.random(rng=rng)
            if self._starts_at_tips:
                left = max(0.0, timeout - (time.perf_counter() - begin))
                yield solve_pose(search, T, at, left, time.perf_counter())
            else:
                q = search.middle[0] if at is None else robot.validated_one(at)
                yield IkResult(
                    False, Status.MAX_RESTARTS, robot.clip(q), math.inf, math.inf, 0, 0, 0.0, robot
                )

    def _minimise(
        self, targets: Array, start: Array, iterations: int = MAX_STACK_ITERATIONS
    ) -> _Candidate:
        """Return the result of the search from a start (n,), for frames' targets (k, 4, 4)."""
        params = self._problem.params
        q, e = start.copy(), np.empty(len(params.kind))
        cost = np.empty(len(params.ends))
        made = _search_levels(self._box, targets, q, iterations, e, cost)
        return _Candidate(q, e, cost, int(made))

    def _is_reached(self, found: _Candidate) -> bool:
        """Return whether all levels are reached, so that no other start can be better."""
        if (self._problem.params.kind == ROW_OBJECTIVE).any():
            return False
        return bool(np.linalg.norm(found.e) <= 2.0 * LEVEL_TOLERANCE)

    def _result(
        self, search: Search, found: _Candidate, iterations: int, restarts: int, begin: float
    ) -> IkResult:
        """Return the result of a call: success if the tips reach their task."""
        params, goal = self._problem.params, search.problem.goal
        of_tips = params.task.tip < self._problem.tips
        is_frame = params.kind == ROW_FRAME
        task = params.task._replace(
            tip=params.task.tip[of_tips],
            component=params.task.component[of_tips],
            weight=params.task.weight[of_tips],
        )
        e = np.zeros(len(params.task.tip))
        e[params.number[is_frame]] = found.e[is_frame]
        position, rotation = largest_errors(task, e[of_tips]).tolist()
        success = position <= goal.position_tolerance and rotation <= goal.rotation_tolerance
        status = Status.SUCCESS if success else Status.MAX_RESTARTS
        success = success or search.approximate
        if search.snapshot is not None and search.snapshot.in_collision(found.q[None])[0]:
            success, status = False, Status.IN_COLLISION
        return IkResult(
            success, status, found.q, position, rotation, iterations, restarts,
            time.perf_counter() - begin, search.robot, search.snapshot,
            level_errors=self._level_errors(found.e),
        )  # fmt: skip

    def _level_errors(self, e: Array) -> tuple[float, ...]:
        """Return the norm of the scaled error of each level; NaN for levels of objectives only."""
        params, errors, start = self._problem.params, [], 0
        for end in params.ends.tolist():
            rows = e[start:end][params.kind[start:end] != ROW_OBJECTIVE]
            errors.append(float(np.linalg.norm(rows)) if len(rows) else math.nan)
            start = end
        return tuple(errors)
