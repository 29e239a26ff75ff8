"""Every option of the solver and of the controller, and names of methods."""

from contextlib import suppress
from dataclasses import fields
from typing import Any

import numpy as np

from dls_ik import IkSolver, RobotModel
from dls_ik.errors import DlsIkError
from dls_ik.servo import Controller
from dls_ik.servo.options import ControllerOptions, split_options
from dls_ik.solver.method import ROOMS, method_names, parse_method
from dls_ik.solver.options import SolverOptions, solver_options
from fuzz.anything import anything, numbers
from fuzz.guard import Run
from fuzz.source import Source
from fuzz.targets.checks import require, require_inside

SOLVER = {f.name: f for f in fields(SolverOptions)}
CONTROLLER = {f.name: f for f in fields(ControllerOptions)}
PARTS = sorted({part for name in method_names() for part in name.split("+")})
# How much work is done may be asked for; here it is bounded.
WORK = {
    "timeout": 0.0,
    "max_iterations": 10,
    "max_restarts": 2,
    "num_candidates": 2,
    "long_attempt_every": 0,
}
ROBOTS = (RobotModel.from_name("planar_2r"), RobotModel.wam())


def build() -> Run:
    """Make the target; every method once."""
    for name in method_names():
        for robot in ROBOTS:
            with suppress(DlsIkError):
                IkSolver(robot, name, **WORK).solve(np.eye(4), np.zeros(robot.n))
    return run


def run(source: Source) -> None:
    """Check options; now and then make a solver, or a controller, of them, and solve."""
    name, kind = method_name(source), source.below(64)
    table = CONTROLLER if 56 <= kind < 62 else SOLVER
    given = {key: value_of(source, table, key) for key in _keys(source, table)}
    robot = source.pick(ROBOTS)
    try:
        if kind < 56:
            solver_options(parse_method(name), given)
        elif kind < 62:
            checked = split_options(robot, given)[0]
            if kind == 61 and not np.isfinite(checked.jerk).any():  # ruckig is no code of ours
                Controller(robot, None, **given).cycle(1.0, 0.01)
        else:
            solved(robot, name, given, source)
    except DlsIkError as error:
        require(str(error), "an error without words")


def solved(robot: RobotModel, name: str, given: dict[str, Any], source: Source) -> None:
    """What is solved with these options keeps the limits."""
    solver_options(parse_method(name), given)
    solver = IkSolver(robot, name, **{**given, **WORK})
    q = robot.random(np.random.default_rng(source.below(256)))
    result = solver.solve(robot.fk(q), robot.clip(q + 0.1))
    if solver.options.error_gain < 1e3 and solver.options.mu < 10.0:  # far beyond use they overflow
        require(np.isfinite(result.q).all(), "an answer that is not finite", name, given)
    if result.success:
        require_inside(robot, result.q)


def method_name(source: Source) -> str:
    """A name that there is, parts put together, or anything."""
    kind = source.below(8)
    if kind < 3:
        return source.pick(method_names())
    if kind < 7:
        return "+".join(source.pick(PARTS) for _ in range(1 + source.below(4)))
    return source.pick(("", "+", "auto+svf", "SVF + sd", "kdl", "kdl_lma", *ROOMS, source.word()))


def _keys(source: Source, table: dict[str, Any]) -> list[str]:
    keys = [source.pick(list(table)) for _ in range(1 + source.below(4))]
    return [*keys, source.word()] if source.one_in(32) else keys


def value_of(source: Source, table: dict[str, Any], key: str) -> Any:
    """A value such as it takes, or anything."""
    about = table[key].metadata if key in table else {}
    if source.one_in(4) or not about:
        return anything(source)
    if "choices" in about:
        return source.pick(about["choices"])
    if "range" in about:
        low, high = about["range"]
        return source.pick((low, high, table[key].default, source.number(), source.whole()))
    return numbers(source, source.pick((1, 2, 3, 6, 7)), 1.0)
