"""All solutions of a pose, or as many as are wanted of a redundant arm's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from dls_ik.core.fast.table import LEAF
from dls_ik.core.search import ATTEMPTS, FIRST, NEAREST, unwind
from dls_ik.core.types import WIDEST, Array
from dls_ik.errors import OptionError
from dls_ik.model.joint import checked_configuration
from dls_ik.solver.poses import checked_poses
from dls_ik.solver.problem import Problem
from dls_ik.solver.request import Request
from dls_ik.solver.rows import found, new_rows
from dls_ik.text import quoted

if TYPE_CHECKING:
    from dls_ik.solver.solver import IkSolver

DISTINCT = 0.1  # by which some joint differs, in the joint metric [rad or m]
STARTS, IN_VAIN, ROUNDS = 64, 16, 200  # of a round; rounds without a new one; at most


def solve_all(
    solver: IkSolver, problem: Problem, T: ArrayLike, count: int, seed: ArrayLike | None
) -> Array:
    """As :meth:`dls_ik.IkSolver.solve_all`."""
    if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 0:
        raise OptionError(f"count is a whole number from 0, not {quoted(count)}")
    poses = checked_poses(T, len(solver.robot.tips))[None]
    near = solver.middle
    if seed is not None:
        near = checked_configuration(seed, solver.robot.joint_names)[None]
    metric = np.sqrt(problem.starts.joint_weights)
    kept = _distinct(metric, near[:0], _nearest(solver, problem, poses, near))
    if len(kept) == 0 and solver.reach.proves_beyond(problem, poses[0]):
        return kept
    if len(kept) < count and problem.has_table:
        kept = _distinct(metric, kept, _solutions(solver, problem, poses, None, near))
    rng = np.random.default_rng(solver.options.random_seed)
    in_vain = 0
    for _ in range(ROUNDS):
        if len(kept) >= count or in_vain >= IN_VAIN:
            break
        starts = rng.uniform(*_bounds(solver, near), (STARTS, solver.robot.n))
        more = _distinct(metric, kept, _solutions(solver, problem, poses, starts, near))
        in_vain = 0 if len(more) > len(kept) else in_vain + 1
        kept = more
    distances = ((kept - near) ** 2) @ problem.starts.joint_weights
    return kept[np.argsort(distances, kind="stable")[:count]]


def _nearest(solver: IkSolver, problem: Problem, poses: Array, near: Array) -> Array:
    """(0 or 1, n) the nearest solution, as the solver finds it."""
    row, request = new_rows(1, solver.robot.n, solver.options.random_seed), solver.request
    request = request._replace(kind=NEAREST)
    solver.search(problem, poses, near, request.compared, row, request)
    return _within(solver, request, row.best[found(row)], near)


def _bounds(solver: IkSolver, near: Array) -> tuple[Array, Array]:
    """Of random starts, (1, n) each: the limits, and no farther from `near` than answers may be."""
    robot, change = solver.robot, solver.request.change
    low, high = np.maximum(robot.lower, near - change), np.minimum(robot.upper, near + change)
    lower, upper = robot.finite_limits()
    wide = ~(high - low <= WIDEST)
    low, high = np.where(wide, lower, low), np.where(wide, upper, high)
    return low + 0.0, np.maximum(low, high) + 0.0  # NumPy draws nothing from 0.0 to -0.0


def _solutions(
    solver: IkSolver, problem: Problem, poses: Array, starts: Array | None, near: Array
) -> Array:
    """(s, n) solutions that attempts from some starts (b, n) end in, or from the table's."""
    b = LEAF if starts is None else len(starts)
    rows = new_rows(b, solver.robot.n, solver.options.random_seed)
    anywhere = solver.request._replace(kind=FIRST, change=np.full(solver.robot.n, np.inf))
    Ts = np.repeat(poses, b, axis=0)
    if starts is None:
        rows.counts[:, ATTEMPTS] = np.arange(b)  # each as if it had used the starts before
        solver.search(problem, Ts, near, 1, rows, anywhere, seeded=False)
    else:
        solver.search(problem, Ts, starts, 1, rows, anywhere)
    solved, robot = rows.best[found(rows)], solver.robot
    for q in solved:
        unwind(problem.starts.turning, robot.lower, robot.upper, near[0], q)
    return _within(solver, solver.request, solved, near)


def _within(solver: IkSolver, request: Request, q: Array, near: Array) -> Array:
    """Those of q (s, n) that keep the limits, and are near enough."""
    inside = solver.robot.within_limits(q) & (np.abs(q - near) <= request.change).all(axis=1)
    return q[inside]


def _distinct(metric: Array, kept: Array, more: Array) -> Array:
    """`kept` (s, n), and those of `more` (b, n) that are like none before; metric: (n,)."""
    for q in more:
        if ((metric * np.abs(kept - q)).max(axis=1, initial=0.0) > DISTINCT).all():
            kept = np.vstack([kept, q])
    return kept
