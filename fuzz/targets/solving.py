"""Solving: options and names of methods, poses and seeds, joint values, tasks."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import fields
from typing import Any

import numpy as np

from dls_ik import IkSolver, RobotModel, Stepper, Task
from dls_ik.errors import DlsIkError
from dls_ik.servo import Controller
from dls_ik.servo.options import ControllerOptions, split_options
from dls_ik.solver.method import PART_KINDS, method_names, parse_method
from dls_ik.solver.options import SolverOptions, solver_options
from fuzz.guard import Run, refusals, require, require_inside
from fuzz.source import Source, anything, numbers
from fuzz.targets.robots import ROOT

WAM = RobotModel.wam()
PLANAR = RobotModel.from_name("planar_2r")
TWO = RobotModel.from_urdf(ROOT / "urdf" / "y_shape.urdf", tip=("E0", "E1"))
BOUNDED: dict[str, Any] = {"max_restarts": 2, "max_iterations": 25, "num_candidates": 3}  # work


def pose(source: Source, robot: RobotModel) -> Any:
    """Draw a pose of the robot, often with some numbers changed or in another form; or anything."""
    kind = source.below(8)
    if kind == 7:
        return anything(source)
    T = robot.fk(np.random.default_rng(source.below(256)).uniform(-2.0, 2.0, robot.n))
    T = np.ascontiguousarray(T)
    if kind >= 2:
        flat = T.reshape(-1)
        for _ in range(source.below(4)):
            flat[source.below(len(flat))] = source.number(2.0)
    if kind == 3:
        T[..., :3, 3] *= source.number(10.0)
    if kind == 4:
        T[..., :3, :3] += 1e-4 * source.unit()
    if kind == 5:
        with np.errstate(all="ignore"):
            return source.pick((T.tolist(), T.astype("f4"), T.astype("O"), np.asfortranarray(T)))
    return T[None] if kind == 6 else T


def configuration(source: Source, robot: RobotModel) -> Any:
    """Draw joint values, or anything, or None."""
    kind = source.below(6)
    if kind == 0:
        return None
    if kind == 1:
        return anything(source)
    if kind == 2:
        return numbers(source, robot.n, 3.0)
    q = robot.random(np.random.default_rng(source.below(256)))
    if kind == 3:
        q[source.below(robot.n)] = source.number(3.0)
    return q


def check(solver: IkSolver, result: Any) -> None:
    """Require the promises of an answer."""
    if result.success and result.status == 0:
        require_inside(solver.robot, result.q)
        require(np.isfinite(result.position_error), "no error", result)
    if solver.search.keeps_limits and result.status != 4:
        require_inside(solver.robot, result.q)


# Poses

SOLVERS = (
    IkSolver(WAM, **BOUNDED),
    IkSolver(WAM, "ctp+sd+svf", **BOUNDED),
    IkSolver(WAM, "svf", **BOUNDED),
    IkSolver(WAM, "jt", **BOUNDED),
    IkSolver(WAM, **BOUNDED, task=Task.pointing("z")),
    IkSolver(PLANAR, **BOUNDED, task=Task.position_only()),
    IkSolver(TWO, "sdls+clamp", **BOUNDED, task=Task.position_only()),
)
TYPES = ("speed", "distance", "manipulability")


def build_poses() -> Run:
    """Return the target of poses, seeds and times, for one pose, batches and paths."""
    for solver in SOLVERS:
        robot = solver.robot
        T = robot.fk(np.full(robot.n, 0.2))
        for each in (T, T + np.eye(4, k=3)):
            solver.solve(each, np.zeros(robot.n), approximate=True)
            solver.solve_batch(np.array([each, each]), approximate=True, threads=1)
            for kind in TYPES:
                solver.solve(each, solve_type=kind)
        solver.solve_all(T, 2)
    return _solve


def _solve(source: Source) -> None:
    solver, kind = source.pick(SOLVERS), source.below(16)
    T, seed = pose(source, solver.robot), configuration(source, solver.robot)
    with refusals():
        if kind < 13:
            check(solver, solver.solve(T, seed, **_solve_options(source)))
        elif kind == 13:
            Ts = T if source.one_in(4) else [T] * source.below(4)
            threads = source.pick((1, 1, 1, 2, 0, None, "1"))
            found = solver.solve_batch(Ts, seed, threads=threads)
            good = found.success & (solver.search.keeps_limits or False)
            require_inside(solver.robot, found.q[good])
        elif kind == 14:
            jump = source.number() if source.one_in(2) else 0.5
            solver.solve_path([T] * (1 + source.below(3)), seed, max_joint_step=jump)
        else:
            _rare(source, solver, T, seed)


def _rare(source: Source, solver: IkSolver, T: Any, seed: Any) -> None:
    if source.below(2):
        count = source.pick((1, 2, 3, 0, -1, "2", None, 1.5, True))
        require_inside(solver.robot, solver.solve_all(T, count, seed))
    else:
        stepper = Stepper(solver.robot, source.pick(("svf", "sdls", "odls")), seed)
        if source.one_in(3):
            x_dot = anything(source) if source.one_in(3) else numbers(source, stepper.rows)
            stepper.rate(x_dot, anything(source) if source.one_in(3) else source.unit())
        elif source.one_in(3):
            stepper.step_for(anything(source), anything(source))
        else:
            stepper.step(T)
        require(np.isfinite(stepper.q).all(), "a step that is not finite", stepper.q)


def _solve_options(source: Source) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if source.one_in(3):
        given["timeout"] = source.pick((0.0, 0.001, source.number(), anything(source, 1)))
    if source.one_in(4):
        given["solve_type"] = source.pick((*TYPES, None, source.word()))
    if source.one_in(4):
        given["max_joint_change"] = source.pick((0.0, 0.5, source.number(), anything(source, 1)))
    if source.one_in(4):
        given["approximate"] = source.pick((True, False, None, 1, "yes"))
    return given


# Options

SOLVER = {f.name: f for f in fields(SolverOptions)}
CONTROLLER = {f.name: f for f in fields(ControllerOptions)}
PARTS = sorted({part for name in method_names() for part in name.split("+")})
NO_WORK = {
    "timeout": 0.0,
    "max_iterations": 10,
    "max_restarts": 2,
    "num_candidates": 2,
    "long_attempt_every": 0,
}


def build_options() -> Run:
    """Return the target of options of the solver and the controller, every method used once."""
    for name in method_names():
        for robot in (PLANAR, WAM):
            with suppress(DlsIkError):
                IkSolver(robot, name, **NO_WORK).solve(np.eye(4), np.zeros(robot.n))
    return _check_options


def _check_options(source: Source) -> None:
    """Check options; sometimes make a solver or a controller of them, and use it."""
    name, kind = method_name(source), source.below(64)
    table = CONTROLLER if 56 <= kind < 62 else SOLVER
    given = {key: _option_value(source, table, key) for key in _keys(source, table)}
    robot = source.pick((PLANAR, WAM))
    with refusals():
        if kind < 56:
            solver_options(parse_method(name), given)
        elif kind < 62:
            checked = split_options(given)[0]
            if kind == 61 and not np.isfinite(checked.jerk).any():  # Ruckig is tested elsewhere
                Controller(robot, None, **given).cycle(1.0, 0.01)
        else:
            _solve_with(robot, name, given, source)


def _solve_with(robot: RobotModel, name: str, given: dict[str, Any], source: Source) -> None:
    """Require finite answers inside the limits."""
    solver_options(parse_method(name), given)
    solver = IkSolver(robot, name, **{**given, **NO_WORK})
    q = robot.random(np.random.default_rng(source.below(256)))
    result = solver.solve(robot.fk(q), robot.clip(q + 0.1))
    if solver.options.error_gain < 1e3 and solver.options.mu < 10.0:  # far beyond use they overflow
        require(np.isfinite(result.q).all(), "an answer that is not finite", name, given)
    if result.success:
        require_inside(robot, result.q)


def method_name(source: Source) -> str:
    """Draw the name of a method, a combination of parts, or anything."""
    kind = source.below(8)
    if kind < 3:
        return source.pick(method_names())
    if kind < 7:
        return "+".join(source.pick(PARTS) for _ in range(1 + source.below(4)))
    return source.pick(
        ("", "+", "auto+svf", "SVF + sd", "kdl", "kdl_lma", *PART_KINDS, source.word())
    )


def _keys(source: Source, table: dict[str, Any]) -> list[str]:
    keys = [source.pick(list(table)) for _ in range(1 + source.below(4))]
    return [*keys, source.word()] if source.one_in(32) else keys


def _option_value(source: Source, table: dict[str, Any], key: str) -> Any:
    """Draw a value of an option, or anything."""
    about = table[key].metadata if key in table else {}
    if source.one_in(4) or not about:
        return anything(source)
    if "choices" in about:
        return source.pick(about["choices"])
    if "range" in about:
        low, high = about["range"]
        return source.pick((low, high, table[key].default, source.number(), source.whole()))
    return numbers(source, source.pick((1, 2, 3, 6, 7)), 1.0)


# Functions of a robot

MAX_VALUE = 1e6  # [rad or m] of joints whose poses have to be finite


def build_values() -> Run:
    """Return the target of joint values, limits, links and offsets."""
    for robot in (WAM, PLANAR, TWO):
        robot.jacobian(np.zeros((2, robot.n)))
    return _call_robot


def _call_robot(source: Source) -> None:
    robot = source.pick((WAM, PLANAR, TWO))
    with refusals():
        source.pick(CALLS)(source, robot)


def _kinematics(source: Source, robot: RobotModel) -> None:
    q = configuration(source, robot)
    q = robot.validated([] if q is None else q)
    T, J = robot.fk(q), robot.jacobian(q)
    if (np.abs(q) <= MAX_VALUE).all():
        require(np.isfinite(T).all() and np.isfinite(J).all(), "not finite", q)


def _narrowed(source: Source, robot: RobotModel) -> None:
    ends = [_limit(source, robot) for _ in range(2)]
    near = configuration(source, robot) if source.one_in(3) else None
    narrow = robot.narrowed(*ends, near)
    require((narrow.lower <= narrow.upper).all(), "crossed", narrow.lower, narrow.upper)
    require((narrow.lower >= robot.lower).all() or robot.continuous.any(), "wider", ends)
    q = narrow.random(np.random.default_rng(0))
    require(narrow.within_limits(q), "outside", q)


def _limit(source: Source, robot: RobotModel) -> Any:
    kind = source.below(4)
    if kind == 0:
        return source.number(3.0)
    if kind == 1:
        return anything(source)
    return numbers(source, robot.n, 3.0)


def _link_pose(source: Source, robot: RobotModel) -> None:
    link = source.pick((*robot.link_names, source.word()))
    names = (*robot.tree.joint, source.word())
    others = {source.pick(names): source.number() for _ in range(source.below(3))}
    q = configuration(source, robot)
    T = robot.link_pose(link, np.zeros(robot.n) if q is None else q, others)
    require(T.shape == (4, 4), "no pose", T)


def _with_tip(source: Source, robot: RobotModel) -> None:
    link = source.pick((*robot.link_names, source.word()))
    offset = pose(source, PLANAR) if source.one_in(2) else None
    more = robot.with_tip(link, offset, {source.pick((*robot.tree.joint, "x")): source.number()})
    require(len(more.tips) == len(robot.tips) + 1, "tips", more.tips)


def _limits(source: Source, robot: RobotModel) -> None:
    q = configuration(source, robot)
    q = np.zeros(robot.n) if q is None else q
    require(np.all(robot.within_limits(robot.clip(q))), "clipped outside", q)
    robot.within_limits(q, abs(source.number()))


CALLS: tuple[Callable[[Source, RobotModel], None], ...] = (
    _kinematics, _narrowed, _narrowed, _link_pose, _with_tip, _limits,
)  # fmt: skip


# Tasks

TASK_SOLVERS = (
    IkSolver(WAM, **BOUNDED),
    IkSolver(WAM, "svf", **BOUNDED),
    IkSolver(TWO, "sdls", **BOUNDED),
)
AXES = ("", "x", "y", "z", "xy", "zx", "yz", "xyz", "xx", "w")
TASK_NAMES = (
    "position",
    "rotation",
    "frame",
    "weights",
    "position_tolerance",
    "rotation_tolerance",
    "round",
    "angles",
)


def build_tasks() -> Run:
    """Return the target of tasks: axes, frames, weights and tolerances."""
    for solver in TASK_SOLVERS:
        T = solver.robot.fk(np.full(solver.robot.n, 0.2))
        for task in (Task(), Task.box(0.1, 0.1, 0.1), Task(rotation="x", weights=[1.0] * 4)):
            solver.solve(T, task=task)
    return _use_task


def _use_task(source: Source) -> None:
    """Make a task, and sometimes solve for it."""
    with refusals():
        tasks: Any = [_task(source) for _ in range(1 + source.below(2))]
        if not source.one_in(16):
            return
        solver = source.pick(TASK_SOLVERS)
        tasks = tasks[0] if source.below(2) else tasks
        T = solver.robot.fk(solver.robot.random(np.random.default_rng(source.below(256))))
        check(solver, solver.solve(T, np.zeros(solver.robot.n), task=tasks))


def _task(source: Source) -> Task:
    kind = source.below(8)
    if kind == 0:
        return Task.pointing(source.pick((*AXES, None)))
    if kind == 1:
        return Task.box(*(source.number() for _ in range(3)))
    if kind == 2:
        return Task.cylinder(source.number(), source.number())
    given = {source.pick(TASK_NAMES): None for _ in range(source.below(5))}
    return Task(**{name: _task_value(source, name) for name in given})


def _task_value(source: Source, name: str) -> Any:
    if source.one_in(6):
        return anything(source)
    if name in ("position", "rotation", "round"):
        return source.pick(AXES)
    if name in ("frame", "angles"):
        return source.pick(("base", "target", "vector", "euler"))
    found: Iterable[float] = numbers(source, source.pick((3, 3, 6, 6, 4, 2)), 1.0)
    return [abs(x) for x in found] if source.below(2) else found
