"""Tasks: axes, frames, weights, slacks; and what is solved for with them."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from dls_ik import IkSolver, Task
from dls_ik.errors import DlsIkError
from fuzz.anything import anything, numbers
from fuzz.guard import Run
from fuzz.source import Source
from fuzz.targets.checks import require
from fuzz.targets.poses import TWO, WAM, WORK, check

SOLVERS = (IkSolver(WAM, **WORK), IkSolver(WAM, "svf", **WORK), IkSolver(TWO, "sdls", **WORK))
AXES = ("", "x", "y", "z", "xy", "zx", "yz", "xyz", "xx", "w")
FIELDS = ("position", "rotation", "frame", "weights", "position_tolerance", "rotation_tolerance")
NAMES = (*FIELDS, "round", "angles")


def build() -> Run:
    """Make the target, kernels loaded."""
    for solver in SOLVERS:
        T = solver.robot.fk(np.full(solver.robot.n, 0.2))
        for task in (Task(), Task.box(0.1, 0.1, 0.1), Task(rotation="x", weights=[1.0] * 4)):
            solver.solve(T, task=task)
    return run


def run(source: Source) -> None:
    """Make a task, now and then solve for it."""
    try:
        tasks: Any = [_task(source) for _ in range(1 + source.below(2))]
        if not source.one_in(16):
            return
        solver = source.pick(SOLVERS)
        tasks = tasks[0] if source.below(2) else tasks
        T = solver.robot.fk(solver.robot.random(np.random.default_rng(source.below(256))))
        result = solver.solve(T, np.zeros(solver.robot.n), task=tasks)
    except DlsIkError as error:
        require(str(error), "an error without words")
    else:
        check(solver, result)


def _task(source: Source) -> Task:
    kind = source.below(8)
    if kind == 0:
        return Task.pointing(source.pick((*AXES, None)))
    if kind == 1:
        return Task.box(*(source.number() for _ in range(3)))
    if kind == 2:
        return Task.cylinder(source.number(), source.number())
    given = {source.pick(NAMES): None for _ in range(source.below(5))}
    return Task(**{name: _value(source, name) for name in given})


def _value(source: Source, name: str) -> Any:
    if source.one_in(6):
        return anything(source)
    if name in ("position", "rotation", "round"):
        return source.pick(AXES)
    if name in ("frame", "angles"):
        return source.pick(("base", "target", "vector", "euler"))
    found: Iterable[float] = numbers(source, source.pick((3, 3, 6, 6, 4, 2)), 1.0)
    return [abs(x) for x in found] if source.below(2) else found
