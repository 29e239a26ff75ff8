"""Several problems for one solver, of which the first that is solved is the answer."""

import time
from collections.abc import Callable, Generator, Sequence
from typing import NamedTuple

from dls_ik.core.types import Array
from dls_ik.exceptions import MethodError, OptionError, PoseError
from dls_ik.ros.services.codes import Code, RequestError
from dls_ik.solver import IkResult, IkSolver
from dls_ik.solver.method import AUTO
from dls_ik.solver.task import Task

FEW = 50  # restarts in which nearly all that can be solved is
SHORTEST = 1e-6  # [s]


class Stage(NamedTuple):
    """Where the k tips are to be."""

    targets: Array  # (k, 4, 4) T_base_tip
    tasks: tuple[Task, ...]  # (k,)
    is_relaxed: bool  # not the poses as they were asked for


Slices = Generator[None, None, tuple[IkResult, Stage]]


def solve_stages(
    make: Callable[..., IkSolver], stages: Sequence[Stage], seed: Array, timeout: float
) -> Slices:
    """The first stage that is solved, else the last one tried; in slices.

    Each of several has a few restarts, by which the answer does not depend on the clock; those
    that have none then share what is left of the time.

    Raises:
        RequestError: a method that does not serve the tasks, or poses that are not valid.
    """
    begin = time.perf_counter()
    deadline = begin + timeout
    solver = _made(make)
    if len(stages) > 1 and solver.method == AUTO:
        hasty = make(max_restarts=FEW)
        found = yield from _in_turn(hasty, stages, seed, deadline, shares=False)
        if found[0].success or time.perf_counter() >= deadline:
            return _timed(found, begin)
    return _timed((yield from _in_turn(solver, stages, seed, deadline, shares=True)), begin)


def _made(make: Callable[..., IkSolver]) -> IkSolver:
    try:
        return make()
    except (MethodError, OptionError) as error:
        raise RequestError(Code.NO_IK_SOLUTION, f"constraints: {error}") from error


def _in_turn(
    solver: IkSolver, stages: Sequence[Stage], seed: Array, deadline: float, shares: bool
) -> Slices:
    for i, stage in enumerate(stages):
        left = deadline - time.perf_counter()
        share = left / (len(stages) - i) if shares else left
        result = yield from _solve(solver, stage, seed, max(share, SHORTEST))
        if result.success or left <= 0.0:
            break
    return result, stage


def _solve(
    solver: IkSolver, stage: Stage, seed: Array, timeout: float
) -> Generator[None, None, IkResult]:
    T = stage.targets if len(stage.targets) > 1 else stage.targets[0]
    try:
        return (yield from solver.slices(T, seed, timeout, stage.tasks))
    except PoseError as error:
        raise RequestError(Code.GOAL_STATE_INVALID, str(error)) from error
    except (MethodError, OptionError) as error:
        raise RequestError(Code.NO_IK_SOLUTION, f"constraints: {error}") from error


def _timed(found: tuple[IkResult, Stage], begin: float) -> tuple[IkResult, Stage]:
    """With the time of all stages as the duration."""
    result, stage = found
    return result._replace(duration=time.perf_counter() - begin), stage
