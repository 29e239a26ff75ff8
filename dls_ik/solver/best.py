"""The nearest that an arm comes to a pose that it does not reach."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dls_ik.core.fast.packed import pack
from dls_ik.core.search import FOUND, STEPS
from dls_ik.core.types import Array, Rows
from dls_ik.model.chain import build_arm
from dls_ik.solver.problem import Problem
from dls_ik.solver.request import Request
from dls_ik.solver.rows import errors, found, new_rows
from dls_ik.solver.table import no_table

if TYPE_CHECKING:
    from dls_ik.solver.solver import IkSolver

TRIES = 8  # the best so far, and random starts, where the nearest is to be an answer; else 1
STEPS_EACH, SLOW, SLOW_STEPS = 100, 0.999, 3  # an attempt ends where the error stays as it is


def approach_poses(
    solver: IkSolver, problem: Problem, request: Request, poses: Array, seeds: Array, rows: Rows
) -> None:
    """Come nearer to poses than the search has, which gives up where the error falls slowly.

    Its steps are counted, its attempts are no restarts. From the best so far, or from the seeds
    where answers must not be far from them.

    Args:
        poses: (b, k, 4, 4), seeds: (b, n) or (1, n), rows: in and out, of poses not reached; some
            of them may be in the end.
    """
    b, n = rows.best.shape
    tried = new_rows(b, n, solver.options.random_seed)
    patient = patient_problem(solver, problem)
    starts = seeds if request.narrows else np.ascontiguousarray(rows.best)
    tries = TRIES if request.approximate else 1
    solver.search(patient, poses, starts, tries, tried, request)
    weights = np.array([1.0, problem.goal.rotation_weight])
    ours, before = (np.linalg.norm(errors(r) * weights, axis=1) for r in (tried, rows))
    nearer = found(tried) | (ours < before)
    rows.best[nearer], rows.figures[nearer] = tried.best[nearer], tried.figures[nearer]
    rows.counts[nearer, FOUND] = tried.counts[nearer, FOUND]
    rows.counts[:, STEPS] += tried.counts[:, STEPS]


def patient_problem(solver: IkSolver, problem: Problem) -> Problem:
    """The same problem, its attempts going on while they come nearer at all."""
    goal = problem.goal._replace(
        max_iterations=STEPS_EACH, stall_ratio=SLOW, stall_count=SLOW_STEPS
    )
    if problem.packed is None:
        return problem._replace(goal=goal)
    structs = build_arm(solver.robot.chain), no_table(solver.robot.n), problem.method, goal
    return problem._replace(goal=goal, packed=pack(*structs, problem.starts), has_table=False)
