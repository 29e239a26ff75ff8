"""What kernels read of a robot, a method, its options and a task, put together and checked."""

from typing import Any, NamedTuple

import numpy as np

from dls_ik.core import damping_policies, limits, objectives
from dls_ik.core.fast.packed import Packed, pack
from dls_ik.core.types import Array, Details, Goal, Method, Settings, Starts
from dls_ik.errors import MethodError, OptionError
from dls_ik.model.chain import build_arm
from dls_ik.model.robot import RobotModel
from dls_ik.solver.method import MethodChoice
from dls_ik.solver.options import SolverOptions
from dls_ik.solver.slack import strict_goal
from dls_ik.solver.starts import random_starts
from dls_ik.solver.table import no_table, start_table
from dls_ik.solver.task import Tasks, build_task, is_full_pose
from dls_ik.text import quoted

LIGHTEST = 1e-9  # weight of a joint, whose inverse counts too
_BY_RANGE = ("limits", "centring")  # objectives that say nothing about a joint without limits


class Problem(NamedTuple):
    """The structs of a solver for one task; `packed` or `details` is None."""

    method: Method
    goal: Goal
    starts: Starts
    packed: Packed | None  # the full pose of one tip, by a method of the quick path
    details: Details | None  # anything else
    has_table: bool  # whether the first start may come from a table


def build_problem(
    robot: RobotModel, choice: MethodChoice, options: SolverOptions, task: Tasks
) -> Problem:
    """Put together what a solver hands to the kernels.

    Raises:
        MethodError: a method that cannot serve this robot and this task, with the reason.
        OptionError: a task or an option that does not fit the robot.
    """
    method, goal = options.method(choice), options.goal()
    starts = random_starts(robot, _weights(options, robot.n), limits.clips(method))
    quick = choice.is_quick and options.policy == "constant"
    if not quick or not is_full_pose(robot, task):
        details = build_details(robot, choice, options, task)
        goal = goal._replace(error_tolerance=options.error_tolerance)  # of rows that are in metres
        return Problem(method, strict_goal(goal, details.task), starts, None, details, False)
    method = method._replace(lambda_=options.lambda_ * options.length_unit)
    check_service(robot, choice, options, 6)
    is_whole = (
        robot.whole is None
    )  # a table takes longer to make than poses of one request to solve
    has_table = options.starts == "table" and is_whole
    table = start_table(robot, goal.rotation_weight) if has_table else no_table(robot.n)
    packed = pack(build_arm(robot.chain), table, method, goal, starts)
    return Problem(method, goal, starts, packed, None, has_table)


def build_details(
    robot: RobotModel, choice: MethodChoice, options: SolverOptions, task: Tasks
) -> Details:
    """Return the struct of the general step.

    Raises:
        MethodError, OptionError: as :func:`build_problem`.
    """
    rows = build_task(robot, task, options.rotation_weight, options.length_unit)
    r, unit = len(rows.weight), options.length_unit
    check_service(robot, choice, options, r)
    lower, upper = robot.finite_limits()
    middle = np.where(robot.limited, 0.5 * (lower + upper), 0.0)
    last = np.eye(r)[-1]
    direction = _vector("direction", options.direction, last, "row of the task")
    length = float(np.linalg.norm(direction))
    if length == 0.0:
        raise OptionError("direction is a vector that is not zero")
    return Details(
        task=rows,
        settings=_settings(choice, options),
        direction=direction / length,
        reference=_vector("reference", options.reference, middle, "joint"),
        obstacle=unit * _vector("obstacle", options.obstacle, np.zeros(3), "coordinate"),
        joint_weights=_weights(options, robot.n),
        translational=_translational(robot),
    )


def _settings(choice: MethodChoice, options: SolverOptions) -> Settings:
    ids: dict[str, Any] = {
        "policy": damping_policies.IDS[options.policy],
        "reach": choice.reach,
        "objective": objectives.IDS[options.objective],
        "published": options.bug_compatible,
    }
    others = {name: getattr(options, name) for name in Settings._fields if name not in ids}
    others["influence"] *= options.length_unit
    return Settings(**ids, **others)


def check_service(robot: RobotModel, choice: MethodChoice, options: SolverOptions, r: int) -> None:
    """Refuse a method on a robot that it cannot serve.

    Args:
        r: rows of the task.
    """
    redundancy = robot.n - r
    about = f"method {choice.name!r} on {robot.name!r}"
    if choice.limits == limits.TA and redundancy <= 0:
        raise MethodError(
            f"{about}: ta adds a row to the task and needs redundancy; {robot.n} joints and "
            f"{r} rows leave none"
        )
    by_limits = choice.limits in (limits.JC, limits.JW, limits.TP, limits.CTP)
    has_objective = choice.limits in (limits.GP, limits.TA)
    if has_objective and options.objective in _BY_RANGE:
        by_limits = True
    if has_objective and options.objective == "obstacle" and options.obstacle is None:
        raise MethodError(
            f"{about}: objective 'obstacle' needs to know where it is: obstacle=(x, y, z)"
        )
    if choice.is_gp and options.form == 22 and options.policy != "constant":
        raise MethodError(f"{about}: form 22 damps by alpha1 and alpha2 and takes no other policy")
    if by_limits and not robot.limited.any():
        raise MethodError(
            f"{about}: it works by the joint limits, and no joint of this robot has both"
        )


def _vector(name: str, given: tuple[float, ...] | None, default: Array, what: str) -> Array:
    if given is None:
        return np.array(default, np.float64)
    if len(given) != len(default):
        raise OptionError(
            f"{name} has a number for each {what}, {len(default)}, not {len(given)}: {given}"
        )
    return np.array(given, np.float64)


def _weights(options: SolverOptions, n: int) -> Array:
    weights = _vector("joint_weights", options.joint_weights, np.ones(n), "joint")
    if not (weights >= LIGHTEST).all():
        raise OptionError(
            f"joint_weights are numbers from {LIGHTEST:g}, not {quoted(options.joint_weights)}"
        )
    return weights


def _translational(robot: RobotModel) -> np.ndarray:
    """(n,) which joints only slide."""
    turns = np.zeros(robot.n, np.bool_)
    turns[robot.chain.variable[~robot.chain.prismatic]] = True
    return ~turns
