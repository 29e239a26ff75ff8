# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Solve the pairs of a study, in chunks: some pairs of one robot and case by all variants."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.types import Array
from dls_ik.errors import MethodError, OptionError
from dls_ik.model.robot import RobotModel
from dls_ik.model.tree import Tree
from dls_ik.solver.dexterity import dexterity
from dls_ik.solver.solver import IkSolver
from dls_ik.solver.task import Task
from dls_ik.study.definition import STUDY_TIMEOUT, Study, StudyMethod
from dls_ik.study.pairs import study_pairs

PAIRS_PER_CHUNK = 25
LIMIT_TOLERANCE = 1e-9  # [rad or m] excess over a joint limit that counts as rounding
# Columns of a solve: type and meaning
COLUMNS: dict[str, tuple[type, str]] = {
    "applicable": (np.bool_, "whether the method supports the robot"),
    "solved": (np.bool_, "within the tolerances and the joint limits"),
    "inside": (np.bool_, "answer within the joint limits"),
    "status": (np.int8, "value of dls_ik.Status"),
    "iterations": (np.int32, "steps of all attempts"),
    "restarts": (np.int32, "attempts after the first"),
    "time": (np.float64, "processor time [s]"),
    "position_error": (np.float64, "[m]"),
    "rotation_error": (np.float64, "[rad]"),
    "distance": (np.float64, "2-norm of the joint motion from the start [rad or m]"),
    "isotropy": (np.float64, "smallest / largest singular value of the scaled Jacobian"),
    "margin": (np.float64, "smallest relative distance of a joint from a limit"),
}


class Part(NamedTuple):
    """Pairs that are solved as one chunk."""

    robot: int  # index
    case: str
    first: int  # first pair
    last: int  # last pair plus 1


@dataclass(frozen=True)
class StudyJob:
    """Study and its robots, sent to workers; jobs of equal studies are equal."""

    study: Study
    trees: tuple[Tree, ...] = field(compare=False, repr=False)

    @property
    def chunks(self) -> int:
        """Number of chunks."""
        per_case = -(-self.study.pairs // PAIRS_PER_CHUNK)
        return len(self.study.robots) * len(self.study.cases) * per_case

    def part(self, chunk: int) -> Part:
        """Return the pairs of a chunk."""
        study = self.study
        per_case = -(-study.pairs // PAIRS_PER_CHUNK)
        of_case, block = divmod(chunk, per_case)
        robot, case = divmod(of_case, len(study.cases))
        first = block * PAIRS_PER_CHUNK
        return Part(robot, study.cases[case], first, min(first + PAIRS_PER_CHUNK, study.pairs))

    def robot(self, number: int) -> RobotModel:
        """Return the model of a robot, built from its tree in this process.

        Arrays that a worker has received are of another type for Numba, which would compile all
        kernels again.
        """
        given = self.study.robots[number]
        return RobotModel.from_tree(self.trees[number], given.base, given.tip)


def new_job(study: Study) -> StudyJob:
    """Return the job of a study.

    Raises:
        OptionError: If a method supports none of the robots; the message gives the reason.
    """
    job = StudyJob(study, tuple(robot.load().tree for robot in study.robots))
    for i, variant in enumerate(study.variants):
        found = [_bench(job, r).solvers[i] for r in range(len(study.robots))]
        reasons = [each for each in found if isinstance(each, str)]
        if len(reasons) == len(found):
            raise OptionError(f"{variant.label} supports none of the robots: {reasons[0]}")
    return job


class _Bench(NamedTuple):
    """Robot with the solvers of all variants, and all pairs."""

    robot: RobotModel
    task: Task
    solvers: list[IkSolver | str]  # Otherwise the reason why a variant does not support the robot
    pairs: dict[str, tuple[Array, Array, Array]]  # starts, goals and target poses by case


def study_task(name: str) -> Task:
    """Return the task with a name of STUDY_TASKS: pose, position or pointing."""
    tasks = {"pose": Task.pose(), "position": Task.position_only(), "pointing": Task.pointing("z")}
    return tasks[name]


@lru_cache(maxsize=16)  # a worker solves chunks of several robots in turns
def _bench(job: StudyJob, number: int) -> _Bench:
    """Return the solvers and pairs of a robot, after a first solve that loads the kernels."""
    study, robot = job.study, job.robot(number)
    task = study_task(study.task)
    pairs = {}
    for case in study.cases:
        starts, goals = study_pairs(robot, case, study.pairs, study.seed)
        pairs[case] = starts, goals, robot.fk(goals)
    solvers = [_solver(robot, variant, task) for variant in study.variants]
    starts, _, Ts = pairs[study.cases[0]]
    for solver in solvers:
        if isinstance(solver, IkSolver):
            solver.solve(Ts[0], starts[0])
    return _Bench(robot, task, solvers, pairs)


def _solver(robot: RobotModel, variant: StudyMethod, task: Task) -> IkSolver | str:
    """Return a solver, or the reason why the method does not support the robot."""
    options = {"timeout": STUDY_TIMEOUT, **dict(variant.options)}
    try:
        return IkSolver(robot, variant.method, task=task, **options)
    except MethodError as error:
        return str(error)


def solve_chunk(job: StudyJob, chunk: int) -> dict[str, NDArray[Any]]:
    """Solve some pairs by all variants, and return the columns of :data:`COLUMNS`.

    The variants take turns at each pair in a rotating order, so that other load on the machine
    affects all of them. Times are processor times of the thread.

    Returns:
        Arrays (p, v) by name, for p pairs and v variants.
    """
    part = job.part(chunk)
    bench = _bench(job, part.robot)
    starts, _, Ts = bench.pairs[part.case]
    count, variants = part.last - part.first, len(bench.solvers)
    found: dict[str, NDArray[Any]] = {
        name: np.zeros((count, variants), kind) for name, (kind, _) in COLUMNS.items()
    }
    answers = np.full((count, variants, bench.robot.n), np.nan)
    for i in range(count):
        for turn in range(variants):
            v = (i + turn) % variants
            solver = bench.solvers[v]
            if isinstance(solver, IkSolver):
                k = part.first + i
                answers[i, v] = _measure(solver, Ts[k], starts[k], found, (i, v))
    _measure_answers(bench, starts[part.first : part.last], answers, found)
    return found


def _measure(
    solver: IkSolver, T: Array, start: Array, found: dict[str, NDArray[Any]], at: tuple[int, int]
) -> Array:
    """Solve one pose, write its figures to `found`, and return the answer (n,)."""
    begin = time.thread_time_ns()
    result = solver.solve(T, start)
    duration = 1e-9 * (time.thread_time_ns() - begin)
    values = {
        "applicable": True,
        "solved": result.success,
        "inside": solver.robot.within_limits(result.q, LIMIT_TOLERANCE),
        "status": int(result.status),
        "iterations": result.iterations,
        "restarts": result.restarts,
        "time": duration,
        "position_error": result.position_error,
        "rotation_error": result.rotation_error,
    }
    for name, value in values.items():
        found[name][at] = value
    return result.q


def _measure_answers(
    bench: _Bench, starts: Array, answers: Array, found: dict[str, NDArray[Any]]
) -> None:
    """Write the metrics of the answers (p, v, n) to `found`; NaN where there is no answer.

    Args:
        bench: Robot and task.
        starts: (p, n) starts [rad or m].
        answers: (p, v, n) answers [rad or m].
        found: Columns (p, v), written.
    """
    found["distance"][:] = np.linalg.norm(answers - starts[:, None], axis=2)
    there = np.isfinite(answers).all(axis=2)
    weight = next(
        (s.options.rotation_weight for s in bench.solvers if isinstance(s, IkSolver)), 1.0
    )
    values = dexterity(bench.robot, bench.task, weight, answers[there])
    for name in ("isotropy", "margin"):
        found[name][:] = np.nan
        found[name][there] = getattr(values, name)
