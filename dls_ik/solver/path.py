"""A path of poses, each solved from the answer before."""

from __future__ import annotations

import math
import time
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dls_ik.core.search import FOUND, NEAREST, NOTHING
from dls_ik.errors import OptionError
from dls_ik.model.joint import checked_configuration
from dls_ik.solver.batch import Progress, Task, batch_poses, solve_chunk, succeeded
from dls_ik.solver.method import AUTO
from dls_ik.solver.poses import checked_poses
from dls_ik.solver.problem import Problem
from dls_ik.solver.result import IkPathResult, Status
from dls_ik.solver.rows import attempts, new_rows, some_rows, steps
from dls_ik.text import quoted

if TYPE_CHECKING:
    from dls_ik.solver.solver import IkSolver


def solve_path(
    solver: IkSolver,
    problem: Problem,
    Ts: ArrayLike,
    seed: ArrayLike | None,
    max_joint_step: Any,
    progress: Progress | None = None,
) -> IkPathResult:
    """As :meth:`dls_ik.IkSolver.solve_path`."""
    begin = time.perf_counter()
    largest = _checked_jump(max_joint_step)
    poses = batch_poses(Ts, len(solver.robot.tips))
    b, n = len(poses), solver.robot.n
    last = None if seed is None else checked_configuration(seed, solver.robot.joint_names)
    rows, status = new_rows(b, n, solver.options.random_seed), np.full(b, int(Status.REFUSED))
    jumps, success = np.zeros(b, np.bool_), np.zeros(b, np.bool_)
    for i in range(b):
        one = slice(i, i + 1)
        start = solver.middle if last is None else last[None]
        task = Task(
            solver, problem, solver.request, poses[one], start, last is not None,
            some_rows(rows, one), status[one],
        )  # fmt: skip
        jumps[i] = _solve_next(task, largest)
        success[i] = succeeded(task)[0]
        if status[i] == Status.SUCCESS:
            last = rows.best[i]
        if progress is not None:
            progress(i + 1, b)
    errors = rows.figures[:, 0], rows.figures[:, 1]
    restarts = np.maximum(attempts(rows) - 1, 0)
    duration = time.perf_counter() - begin
    return IkPathResult(success, status, rows.best, *errors, steps(rows), restarts, duration, jumps)


def _checked_jump(jump: Any) -> float:
    try:
        is_none = isinstance(jump, bool) or not isinstance(jump, Real)
        largest = math.nan if is_none else float(jump)
    except OverflowError:  # a whole number of hundreds of digits
        largest = math.copysign(math.inf, 1 if jump > 0 else -1)
    if not largest > 0.0:
        raise OptionError(f"max_joint_step is a number above 0 [rad or m], not {quoted(jump)}")
    return largest


def _solve_next(task: Task, jump: float) -> bool:
    """Solve a row, for the nearest solution where the first one is far; say whether it still is."""
    solve_chunk(task, slice(0, 1))
    if not task.seeded or task.status[0] != Status.SUCCESS:
        return False
    if _change(task) > jump and task.solver.method == AUTO:
        poses = checked_poses(task.poses[0], len(task.solver.robot.tips))[None]
        nearest = new_rows(1, task.solver.robot.n, task.solver.options.random_seed)
        request = task.request._replace(kind=NEAREST)
        task.solver.search(task.problem, poses, task.seeds, request.compared, nearest, request)
        if nearest.counts[0, FOUND] != NOTHING:
            for ours, found in zip(task.rows, nearest, strict=True):
                ours[:] = found
    return _change(task) > jump


def _change(task: Task) -> float:
    return float(np.abs(task.rows.best[0] - task.seeds[0]).max())
