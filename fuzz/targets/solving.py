# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Targets of solvers, robots, tasks, steppers and controllers: public methods in any order.

The values of an argument depend on its name.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields
from inspect import signature
from typing import Any

import numpy as np

from dls_ik import IkSolver, RobotModel, Stepper, Task
from dls_ik.servo import Controller, ServoOutput
from dls_ik.servo.options import ControllerOptions, split_options
from dls_ik.solver.method import PART_KINDS, method_names, parse_method
from dls_ik.solver.options import SolverOptions, solver_options
from fuzz.guard import ROOT, refusals, require, require_inside
from fuzz.source import Source, anything, numbers

WAM = RobotModel.wam()
PLANAR = RobotModel.from_name("planar_2r")
TWO = RobotModel.from_urdf(ROOT / "urdf" / "y_shape.urdf", tip=("E0", "E1"))
BOUNDED: dict[str, Any] = {"max_restarts": 2, "max_iterations": 25, "num_candidates": 3}  # work

# Arguments


def pose(source: Source, robot: RobotModel) -> Any:
    """Draw a pose of the robot, sometimes with changed numbers or in another form; or anything."""
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


def poses(source: Source, robot: RobotModel) -> Any:
    """Draw a list of poses, or an argument as for one pose."""
    if source.one_in(8):
        return pose(source, robot)
    return [pose(source, robot) for _ in range(source.below(4))]


def configuration(source: Source, robot: RobotModel) -> Any:
    """Draw joint positions, or anything, or None."""
    kind = source.below(6)
    if kind == 0:
        return None
    if kind == 1:
        return anything(source)
    if kind == 2:
        return numbers(source, robot.n, 3.0)
    q = robot.random(rng=np.random.default_rng(source.below(256)))
    if kind == 3:
        q[source.below(robot.n)] = source.number(3.0)
    return q


def vector(source: Source, robot: RobotModel) -> Any:
    """Draw a number, a value for each joint or coordinate, or anything."""
    count = source.pick((1, robot.n, 6 * len(robot.tips), 3, 4))
    if source.one_in(4):
        return anything(source)
    return source.number(3.0) if source.one_in(4) else numbers(source, count)


def task(source: Source, robot: RobotModel) -> Any:
    """Draw a task."""
    kinds = (Task, Task, Task, Task.pointing, Task.box, Task.cylinder, Task.ball)
    return call(source, source.pick(kinds), robot)


def tasks(source: Source, robot: RobotModel) -> Any:
    """Draw tasks, one for each tip or more."""
    return [task(source, robot) for _ in range(1 + source.below(2))]


def one_of(*values: Any) -> Callable[[Source, RobotModel], Any]:
    """Return a function that draws one of the values, and rarely another word or number."""
    return lambda source, _: source.pick((*values, *values, source.word(), source.number()))


nothing = lambda source, robot: None  # noqa: E731
axes = one_of("", "x", "y", "z", "xy", "zx", "yz", "xyz", "xx", "w", None)
DRAWS: Mapping[str, Callable[[Source, RobotModel], Any]] = {
    **dict.fromkeys(("T", "T_d", "offset"), pose),
    "Ts": poses,
    **dict.fromkeys(("q", "seed", "seeds", "near", "velocity", "positions"), configuration),
    **dict.fromkeys(("lower", "upper", "x_dot", "V", "max_joint_change", "weights"), vector),
    **dict.fromkeys(("position_tolerance", "rotation_tolerance"), vector),
    **dict.fromkeys(("e", "J"), lambda source, _: anything(source)),
    **dict.fromkeys(("x", "y", "z", "radius", "half_length"), lambda source, _: source.number()),
    **dict.fromkeys(("tolerance", "max_joint_step"), lambda source, _: source.number()),
    "dt": one_of(0.5, 0.01, 0.0, True, None),
    "link": lambda source, robot: source.pick((*robot.link_names, source.word())),
    "others": lambda source, robot: {
        source.pick((*robot.tree.joint, "x")): source.number() for _ in range(source.below(3))
    },
    "timeout": one_of(0.0, 0.001, None, True),
    "task": lambda source, robot: source.pick((nothing, nothing, task, tasks))(source, robot),
    "solve_type": one_of("speed", "distance", "manipulability", "clearance", None),
    "approximate": one_of(True, False, None, 1),
    "count": lambda source, _: source.pick((1, 2, 3, 0, -1, "2", None, 1.5, True)),  # bounds work
    "threads": lambda source, _: source.pick((1, 1, 1, 2, 0, None, "1")),
    "progress": nothing,
    **dict.fromkeys(("position", "rotation", "round", "axis"), axes),
    **dict.fromkeys(("frame", "angles"), one_of("base", "target", "vector", "euler")),
    "R": lambda source, _: anything(source) if source.one_in(8) else source.pick((None, np.eye(3))),
    "age": one_of(0.0, 0.1, -0.05, 10.0),
    "period": one_of(0.1, 0.001),
    "reason": lambda source, _: source.word(),
    **dict.fromkeys(
        ("tip", "reference"),
        lambda source, robot: source.pick((None, *robot.tips, source.word())),
    ),
}


def call(source: Source, function: Callable[..., Any], robot: RobotModel, **known: Any) -> Any:
    """Call a function with given and drawn arguments; optional arguments are sometimes omitted."""
    given = {}
    for name, parameter in signature(function).parameters.items():
        if name in known:
            given[name] = known[name]
        elif parameter.default is parameter.empty or source.one_in(3):
            given[name] = DRAWS[name](source, robot)
    return function(**given)


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
SEARCHES = (*["solve"] * 12, "solve_batch", "solve_path", "solve_all")
STEPS = ("step", "rate", "step_for", "error", "jacobian")


def fuzz_poses(source: Source) -> None:
    """Solve for a pose, a batch, a path or all solutions; or make a step of a method."""
    solver, name = source.pick(SOLVERS), source.pick((*SEARCHES, "step"))
    with refusals():
        if name == "step":
            stepper = Stepper(solver.robot, source.pick(("svf", "sdls", "odls")))
            call(source, getattr(stepper, source.pick(STEPS)), solver.robot)
            require(np.isfinite(stepper.q).all(), "a step that is not finite", stepper.q)
            return
        found = call(source, getattr(solver, name), solver.robot)
        if name == "solve":
            is_solved = found.success and found.status == 0
            require(np.isfinite(found.position_error) or not is_solved, "no error", found)
            if is_solved or (solver.search.keeps_limits and found.status != 4):
                require_inside(solver.robot, found.q)
        elif name == "solve_all":
            require_inside(solver.robot, found)
        elif name == "solve_batch" and solver.search.keeps_limits:
            require_inside(solver.robot, found.q[found.success])


def fuzz_tasks(source: Source) -> None:
    """Create a task, and solve for poses with valid tasks."""
    with refusals():
        task(source, source.pick((WAM, TWO)))


# Options

SOLVER = {f.name: f for f in fields(SolverOptions)}
CONTROLLER = {f.name: f for f in fields(ControllerOptions)}
PARTS = sorted({part for name in method_names() for part in name.split("+")})
NO_WORK = {**BOUNDED, "timeout": 0.0, "long_attempt_every": 0}


def fuzz_options(source: Source) -> None:
    """Check options, and sometimes create and use a solver or a controller with them."""
    name, kind = method_name(source), source.below(64)
    table = CONTROLLER if 56 <= kind < 62 else SOLVER
    keys = [source.pick((*table, source.word())) for _ in range(1 + source.below(4))]
    given = {key: _option_value(source, table, key) for key in keys}
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
    """Solve with a solver, and require finite answers inside the limits."""
    solver_options(parse_method(name), given)
    solver = IkSolver(robot, name, **{**given, **NO_WORK})
    q = robot.random(rng=np.random.default_rng(source.below(256)))
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

MAX_VALUE = 1e6  # [rad or m] maximum joint positions for which poses must be finite
CALLS = ("fk", "jacobian", "clip", "within_limits", "narrowed", "link_pose", "with_tip")


def fuzz_values(source: Source) -> None:
    """Call a function of a robot."""
    robot, name = source.pick((WAM, PLANAR, TWO)), source.pick(CALLS)
    q = configuration(source, robot)
    with refusals():
        found = call(source, getattr(robot, name), robot, q=q)
        if name == "clip":
            require(np.all(robot.within_limits(found)), "clipped outside", q)
        elif name in ("fk", "jacobian") and (np.abs(robot.validated(q)) <= MAX_VALUE).all():
            require(np.isfinite(found).all(), "not finite", q)
        elif name == "narrowed":
            require((found.lower <= found.upper).all(), "crossed", found.lower, found.upper)
            wider = (found.lower < robot.lower) & ~robot.continuous
            require(not wider.any(), "wider", found.lower)
            require(found.within_limits(found.random(rng=np.random.default_rng(0))), "outside")
        elif name == "with_tip":
            require(len(found.tips) == len(robot.tips) + 1, "tips", found.tips)


# Controller

PERIODS = (0.01, 0.01, 0.002, 1e-6, 0.3, 10.0, 1e6)
TIMES = (0.0, 0.01, 1.0, -1.0, 1e9)  # added to the time; the last one is another clock
OPERATIONS = 32
COMMANDS = (
    *["follow_pose", "follow_twist", "follow_trajectory"] * 2,
    *["follow_joint_velocity", "follow_joint_position"] * 2,
    *("pause", "resume", "reset", "refuse", "seed"),
)


CONTROLLERS = (  # reset before each input
    Controller(WAM, when_stuck="hold"),
    Controller(WAM, when_stuck="hold", acceleration=8.0, supervised=True),
    Controller(PLANAR, when_stuck="hold", acceleration=4.0, feed_forward=True),
    Controller(PLANAR, when_stuck="joint_motion", when_stream_ends="finish"),
)


def fuzz_controller(source: Source) -> None:
    """Send targets, measurements, pauses, bad input and jumps of time in any order."""
    controller = source.pick(CONTROLLERS)
    robot, now = controller.robot, 100.0
    controller.reset()
    controller.seed(robot.clip(np.zeros(robot.n)))
    for _ in range(OPERATIONS):
        if not source.has_more:
            break
        dt, is_cycle = source.pick(PERIODS), source.below(2)
        now += (source.pick(TIMES) if source.one_in(16) else dt) if is_cycle else 0.0
        with refusals():
            if is_cycle:
                _cycle(source, controller, now, dt)
            else:
                call(source, getattr(controller, source.pick(COMMANDS)), robot, now=now)


def require_slow(robot: RobotModel, output: ServoOutput) -> None:
    """Require a command that is finite and within the velocity limits."""
    require(np.isfinite(output.q).all() and np.isfinite(output.velocity).all(), "not finite")
    slow = np.abs(output.velocity) <= robot.velocity * (1.0 + 1e-6) + 1e-9
    require(slow.all(), "too fast", output.velocity)


def _cycle(source: Source, controller: Controller, now: float, dt: float) -> None:
    robot, before = controller.robot, controller.command
    measured = configuration(source, robot) if source.one_in(4) else None
    if source.one_in(32):
        controller.cycle(anything(source), anything(source), measured)
    output = controller.cycle(now, dt, measured)
    require_slow(robot, output)
    known = np.array([before, before if measured is None else robot.validated(measured)])
    low, high = np.minimum(robot.lower, known.min(0)), np.maximum(robot.upper, known.max(0))
    require(((output.q >= low) & (output.q <= high)).all(), "beyond the limits", output.q)
