"""Joint values along a path of poses, from the start that goes on best."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.types import Array
from dls_ik.solver.result import IkPathResult, Status
from dls_ik.solver.solver import IkSolver
from dls_ik.solver.task import Task

STARTS = 8  # solutions of the first pose that are tried where a path breaks


def solved_path(
    solver: IkSolver,
    poses: Array,
    seed: Array | None,
    task: Task | None,
    jump: float,
    progress: Callable[[int, int], None],
) -> IkPathResult:
    """Solve poses (b, 4, 4) one after the other; without a seed, from where most goes through.

    Where the first solution of the first pose leads to poses that are not reached, or to jumps,
    its other solutions are tried.
    """
    best = solver.solve_path(poses, seed, task, jump=jump, progress=progress)
    if seed is not None or _flaws(best) == (0, 0):
        return best
    for start in solver.solve_all(poses[0], STARTS, task=task):
        other = solver.solve_path(poses, start, task, jump=jump, progress=progress)
        best = min(best, other, key=_flaws)
        if _flaws(best) == (0, 0):
            break
    return best


def missed(result: IkPathResult) -> NDArray[np.int64]:
    """Which poses are not reached, approximations among them."""
    return np.flatnonzero(result.status != Status.SUCCESS)


def steps(q: Array) -> Array:
    """(b, n) how far joints move to each pose from the one before, 0 to the first."""
    return np.abs(np.diff(q, axis=0, prepend=q[:1]))


def _flaws(result: IkPathResult) -> tuple[int, int]:
    return len(missed(result)), int(result.jumps.sum())
