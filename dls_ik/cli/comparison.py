"""Several solvers on the same poses, in turn, so that what slows the machine slows them all."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dls_ik.core.types import Array

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dls_ik.model.robot import RobotModel
    from dls_ik.solver import IkSolver

WARM_UP = 3  # solves that do not count
REPEATS, ENOUGH = 9, 0.3  # batches at most, and the time from which they are enough [s]
TOLERANCE = 1e-9  # [rad or m] beyond a limit

Told = Callable[[int, int], None]


@dataclass
class Comparison:
    """m methods on k poses; rows are filled in as poses are finished."""

    robot: RobotModel
    methods: Sequence[str]
    poses: Array  # (k, 4, 4)
    seeds: Array  # (k, n)
    finished: int = 0  # poses that every method was asked for
    success: NDArray[np.bool_] = field(init=False)  # (m, k)
    inside: NDArray[np.bool_] = field(init=False)  # (m, k) the answer is within the limits
    iterations: NDArray[np.int64] = field(init=False)  # (m, k)
    restarts: NDArray[np.int64] = field(init=False)  # (m, k)
    duration: Array = field(init=False)  # (m, k) [s]
    batch: list[float | None] = field(init=False)  # m times [s] for a batch of all poses

    def __post_init__(self) -> None:
        """Make room."""
        shape = len(self.methods), len(self.poses)
        self.success, self.inside = np.zeros(shape, bool), np.zeros(shape, bool)
        self.iterations, self.restarts = np.zeros(shape, int), np.zeros(shape, int)
        self.duration = np.zeros(shape)
        self.batch = [None] * len(self.methods)


def new_comparison(
    robot: RobotModel, methods: Sequence[str], samples: int, seed: int
) -> Comparison:
    """Random reachable poses, each with another random configuration to begin from."""
    rng = np.random.default_rng(seed)
    poses = robot.fk(robot.random(rng, samples))
    return Comparison(robot, methods, poses, robot.random(rng, samples))


def run(found: Comparison, solvers: Sequence[IkSolver], tell: Told) -> None:
    """Ask every method for every pose, one after the other, then for all of them at once."""
    for solver in solvers:
        for k in range(WARM_UP):
            i = k % len(found.poses)
            solver.solve(found.poses[i], found.seeds[i])
    total = len(found.poses) * len(solvers)
    for i in range(len(found.poses)):
        for turn in range(len(solvers)):
            m = (i + turn) % len(solvers)  # nobody always comes after the same one
            _solve(found, m, i, solvers[m])
        found.finished = i + 1
        tell(found.finished * len(solvers), total)
    for m, solver in enumerate(solvers):
        found.batch[m] = _batch_time(found, solver)


def _solve(found: Comparison, m: int, i: int, solver: IkSolver) -> None:
    begin = time.perf_counter()
    result = solver.solve(found.poses[i], found.seeds[i])
    found.duration[m, i] = time.perf_counter() - begin
    found.success[m, i] = result.success
    found.inside[m, i] = found.robot.within_limits(result.q, TOLERANCE)
    found.iterations[m, i], found.restarts[m, i] = result.iterations, result.restarts


def _batch_time(found: Comparison, solver: IkSolver) -> float:
    times: list[float] = []
    while len(times) < REPEATS and sum(times) < ENOUGH:
        begin = time.perf_counter()
        solver.solve_batch(found.poses, found.seeds)
        times.append(time.perf_counter() - begin)
    return float(np.median(times))


def figures(found: Comparison, reference: str) -> list[dict[str, Any]]:
    """A row of figures for each method; times in [s], `faster` against the reference method."""
    done = slice(0, found.finished)
    medians = np.median(found.duration[:, done], axis=1)
    base = float(medians[list(found.methods).index(reference)])
    rows = []
    for m, name in enumerate(found.methods):
        p95 = float(np.percentile(found.duration[m, done], 95.0))
        iterations = float(found.iterations[m, done].mean())
        batch = found.batch[m]
        rows.append(
            {
                "method": name,
                "solved": float(found.success[m, done].mean()),
                "inside_limits": float(found.inside[m, done].mean()),
                "restarts": float(found.restarts[m, done].mean()),
                "iterations": None if name.startswith("kdl") else iterations,
                "median_time": float(medians[m]),
                "p95_time": p95,
                "batch_rate": None if batch is None else len(found.poses) / batch,
                "faster": base / float(medians[m]),
            }
        )
    return rows
