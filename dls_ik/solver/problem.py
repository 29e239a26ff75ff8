# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Parameter structs of a solver for the kernels, and start configurations of attempts.

The structs combine a validated robot, method, options and task. The first attempt for a pose starts
at the seed, and further attempts (restarts) at random configurations. The kernels for the full pose
of one tip can also start at configurations from a table that is indexed by tip poses, see
:mod:`dls_ik.core.fast.table`. Attempts of plug-ins and of KDL methods, which are provided for
comparison, run in Python instead of the kernels.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.core import damping_policies, limits, objectives
from dls_ik.core.fast.packed import Packed, pack
from dls_ik.core.fast.table import LEAF_ROWS, fill
from dls_ik.core.se3 import is_pose
from dls_ik.core.search import uniform
from dls_ik.core.search_rows import POSE_TOLERANCE
from dls_ik.core.selection import (
    ATTEMPTS_COLUMN,
    FOUND_ALL,
    FOUND_COLUMN,
    RANDOM_STATE_COLUMN,
    STEPS_COLUMN,
    count_pair,
)
from dls_ik.core.step import error_and_jacobian
from dls_ik.core.types import (
    Array,
    ChainTable,
    GeneralProblem,
    Method,
    MethodParams,
    Rows,
    SerialChain,
    Starts,
    StopCriteria,
    TaskParams,
)
from dls_ik.core.workspace import new_memory
from dls_ik.errors import MethodError, OptionError
from dls_ik.model.chain import build_arm, typical_link_length
from dls_ik.model.kdl import kdl_chain, kdl_frame, pykdl
from dls_ik.model.robot import RobotModel
from dls_ik.solver.method import MethodChoice
from dls_ik.solver.options import SolverOptions
from dls_ik.solver.plugins import MEMORY, StepState, checked_step
from dls_ik.solver.task import VECTOR_ERROR, Tasks, build_task, is_full_pose, strict_goal
from dls_ik.text import quoted

if TYPE_CHECKING:
    from dls_ik.scene.snapshot import SceneSnapshot

MIN_JOINT_WEIGHT = 1e-9  # minimum weight, because inverses of weights are computed
# Depth of the tree of a start table; 11 levels would save 10 % of the steps, but take 1 s to build
TABLE_LEVELS = 9
TABLE_SEED = 1
LMA_ROTATION_WEIGHT = 0.01  # [m/rad] weight of the rotation in the error norm of KDL's LMA
MIN_KDL_JOINTS = 6  # KDL aborts the process for arms with fewer joints
_RANGE_OBJECTIVES = ("limits", "centring")  # objectives that ignore joints without limits


class Problem(NamedTuple):
    """Parameter structs of a solver for one task.

    Exactly one of `packed`, `details` and `kdl` is not None; it determines how attempts run.
    """

    method: Method
    goal: StopCriteria
    starts: Starts
    packed: Packed | None  # struct of the fast kernels, for the full pose of one tip
    details: GeneralProblem | None  # struct of the general kernels
    kdl: SeededAttempts | None  # attempts in Python, for KDL methods and plug-ins
    has_table: bool  # whether the first attempt may start at a configuration of the table


def build_problem(
    robot: RobotModel, choice: MethodChoice, options: SolverOptions, task: Tasks
) -> Problem:
    """Build the parameter structs for a robot, a method with its options, and a task.

    Raises:
        MethodError: If the method does not support the robot or the task; the message gives the
            reason.
        OptionError: If a task or an option does not fit the robot.
        DlsIkError: If the method needs PyKDL and PyKDL is not installed.
    """
    method, goal = options.method(choice), options.goal()
    starts = random_starts(robot, _joint_weights(options, robot.n), limits.clips(method))
    if choice.is_kdl:
        kdl = KdlAttempts(robot, choice.name, options, task)
        return Problem(method, goal, starts, None, None, kdl, False)
    if choice.plugin is not None:
        own = PluginAttempts(robot, choice, options, task)
        return Problem(method, goal, starts, None, None, own, False)
    is_quick = choice.is_quick and options.policy == "constant"
    is_quick &= options.rotation_error == VECTOR_ERROR and method.limits != limits.JC_AS_RUN
    if not is_quick or not is_full_pose(robot, task):
        details = build_details(robot, choice, options, task)
        goal = goal._replace(error_tolerance=options.error_tolerance)  # task rows are in metres
        return Problem(method, strict_goal(goal, details.task), starts, None, details, None, False)
    check_service(robot, choice, options, 6)
    method = method._replace(lambda_=options.lambda_ * options.length_unit)
    # Narrowed limits belong to one request, which takes less time than building a table.
    has_table = options.starts == "table" and robot.whole is None
    table = start_table(robot, goal.rotation_weight) if has_table else no_table(robot.n)
    packed = pack(build_arm(robot.chain), table, method, goal, starts)
    return Problem(method, goal, starts, packed, None, None, has_table)


def build_details(
    robot: RobotModel, choice: MethodChoice, options: SolverOptions, task: Tasks
) -> GeneralProblem:
    """Build the parameter struct of the general kernels, which implement all methods and tasks.

    Raises:
        MethodError: If the method does not support the robot or the task.
        OptionError: If a task or an option does not fit the robot.
    """
    measures = options.rotation_weight, options.length_unit, options.rotation_error
    rows = build_task(robot, task, *measures)
    r, unit = len(rows.weight), options.length_unit
    check_service(robot, choice, options, r)
    middle = np.where(robot.limited, np.mean(robot.finite_limits(), axis=0), 0.0)
    direction = _vector("direction", options.direction, np.eye(r)[-1], "row of the task")
    length = float(np.linalg.norm(direction))
    if length == 0.0:
        raise OptionError(f"direction must not be a zero vector; got {options.direction}")
    slides = np.ones(robot.n, np.bool_)  # true for variables that move prismatic joints only
    slides[robot.chain.variable[~robot.chain.prismatic]] = False
    return GeneralProblem(
        task=rows,
        params=_method_params(robot, choice, options),
        direction=direction / length,
        reference=_vector("reference", options.reference, middle, "joint"),
        obstacle=unit * _vector("obstacle", options.obstacle, np.zeros(3), "coordinate"),
        joint_weights=_joint_weights(options, robot.n),
        bias=_bias(options, robot.n),
        largest_step=np.full(robot.n, options.largest_change),
        translational=slides,
    )


def _method_params(robot: RobotModel, choice: MethodChoice, options: SolverOptions) -> MethodParams:
    """Return the parameters of a method as a struct for the kernels.

    Most fields have the name and the value of an option; names of choices become integer ids, and
    lengths are in the length unit of the robot.
    """
    others: dict[str, Any] = {
        "policy": damping_policies.POLICY_IDS[options.policy],
        "reach": choice.reach,
        "by_approach": options.adaptive_by == "approach",
        "objective": objectives.OBJECTIVE_IDS[options.objective],
        "influence": options.influence * options.length_unit,
        "least_bias": float(np.min(options.bias)),
        "D_max": clamp_bound(robot, options),
    }
    named = {name: getattr(options, name) for name in MethodParams._fields if name not in others}
    return MethodParams(**named, **others)


def clamp_bound(robot: RobotModel, options: SolverOptions) -> float:
    """Return the bound `D_max` of the error of a tip [m].

    If the option is None, the bound is half the length of a typical link (Buss & Kim 2004, section
    3), or infinite if all joints and tips coincide.
    """
    if options.D_max is not None:
        return options.D_max
    return 0.5 * typical_link_length(robot.chain) / options.length_unit or math.inf


def check_service(robot: RobotModel, choice: MethodChoice, options: SolverOptions, r: int) -> None:
    """Check that a method with its options supports a robot, and a task with `r` rows.

    Raises:
        MethodError: If the method does not support the robot or the task; the message gives the
            reason.
    """
    about = f"method {choice.name!r} on {robot.name!r}"
    _bias(options, robot.n)
    if choice.limits == limits.TA and robot.n <= r:
        raise MethodError(
            f"{about}: ta adds a row to the task and needs a redundant arm; {robot.n} joints and "
            f"{r} rows leave no redundancy"
        )
    has_objective = choice.limits in (limits.GP, limits.TA, limits.SRTP)
    to_obstacle = has_objective and options.objective == "obstacle"
    if (to_obstacle or choice.limits == limits.AVOID) and options.obstacle is None:
        what = "objective 'obstacle'" if to_obstacle else "avoid"
        raise MethodError(
            f"{about}: {what} needs the position of the obstacle: give obstacle=(x, y, z)"
        )
    if choice.is_gp and options.form == 22 and options.policy != "constant":
        raise MethodError(
            f"{about}: form 22 is damped by alpha1 and alpha2 and needs policy='constant'; got "
            f"{options.policy!r}"
        )
    by_limits = choice.limits in (limits.JC, limits.JW, limits.TP, limits.CTP, limits.GWLN)
    by_limits |= choice.limits in (limits.IDV, limits.CNS)
    by_limits |= has_objective and options.objective in _RANGE_OBJECTIVES
    if by_limits and not robot.limited.any():
        raise MethodError(
            f"{about}: the method needs a joint with both a lower and an upper limit, but this "
            "robot has none; choose a method that does not depend on joint limits"
        )


def _vector(name: str, given: tuple[float, ...] | None, default: Array, entry: str) -> Array:
    """Return the value of a vector option, or its default, as an array.

    Args:
        name: Name of the option.
        given: Value of the option; None stands for the default.
        default: Default value, which has the required length.
        entry: What one number belongs to, such as "joint", for the message.

    Raises:
        OptionError: If the value has another length than the default.
    """
    if given is None:
        return np.array(default, np.float64)
    if len(given) != len(default):
        raise OptionError(
            f"{name} must have one number for each {entry} ({len(default)}); got {len(given)}: "
            f"{given}"
        )
    return np.array(given, np.float64)


def _bias(options: SolverOptions, n: int) -> Array:
    """Return the option `bias` as an array (n,).

    Raises:
        OptionError: If the number of values is not n.
    """
    if isinstance(options.bias, tuple):
        return _vector("bias", options.bias, np.ones(n), "joint")
    return np.full(n, options.bias)


def _joint_weights(options: SolverOptions, n: int) -> Array:
    """Return the option `joint_weights` as an array (n,); ones if the option is None.

    Raises:
        OptionError: If a weight is below `MIN_JOINT_WEIGHT`, or the number of weights is not n.
    """
    weights = _vector("joint_weights", options.joint_weights, np.ones(n), "joint")
    if not (weights >= MIN_JOINT_WEIGHT).all():
        given = quoted(options.joint_weights)
        raise OptionError(f"joint_weights must be at least {MIN_JOINT_WEIGHT:g}; got {given}")
    return weights


# Starts


def random_starts(robot: RobotModel, joint_weights: Array, keeps_limits: bool) -> Starts:
    """Return a struct with the bounds of random starts and the joint metric.

    The bounds are the joint limits; the range of an unlimited joint is 2 pi [rad or m].

    Args:
        robot: Robot model.
        joint_weights: (n,) weights of the joint metric.
        keeps_limits: Whether the method enforces the joint limits. If not, limited joints must not
            be shifted by full turns, because the shift would hide answers outside the limits.
    """
    chain, turning = robot.chain, np.ones(robot.n, np.int64)  # 1 if a full turn changes no pose
    turning[chain.variable[chain.prismatic | (chain.scale % 1.0 != 0.0)]] = 0
    return Starts(
        *robot.finite_limits(), turning * (keeps_limits | robot.continuous), joint_weights
    )


def no_table(n: int) -> ChainTable:
    """Return an empty start table for n joints, with which all starts are random."""
    return ChainTable(
        levels=0,
        first_turns=False,
        last_turns=False,
        by=np.zeros(1, np.int64),
        cut=np.zeros(1),
        features=np.zeros((0, 9, LEAF_ROWS)),
        middle=np.zeros((0, 3, 4)),
        q=np.zeros((0, n)),
    )


@lru_cache(maxsize=16)
def start_table(robot: RobotModel, rotation_weight: float) -> ChainTable:
    """Build a start table: random configurations within the limits, sorted by tip pose.

    The construction takes 0.1 s; the tables of recent robots are cached.

    Args:
        robot: Robot with one tip.
        rotation_weight: Weight w of the rotation in the error metric [m/rad].
    """
    arm, rows = build_arm(robot.chain), LEAF_ROWS << TABLE_LEVELS
    q = robot.random(rows, np.random.default_rng(TABLE_SEED))
    first_turns, last_turns = _rotates(arm, 0), len(arm.variable) > 1 and _rotates(arm, -1)
    features, middle = np.empty((rows, 9)), np.empty((rows, 3, 4))
    fixed = _without_end_rotations(arm, first_turns, last_turns)
    fill(fixed, first_turns, last_turns, q, rotation_weight, middle, features)
    order, by, cut = _build_tree(features)
    return ChainTable(
        levels=TABLE_LEVELS,
        first_turns=first_turns,
        last_turns=last_turns,
        by=by,
        cut=cut,
        features=features[order].reshape(-1, LEAF_ROWS, 9).transpose(0, 2, 1).copy(),
        middle=middle[order],
        q=q[order],
    )


def _rotates(arm: SerialChain, k: int) -> bool:
    """Return whether joint element k is revolute and no other element mimics it."""
    alone = np.count_nonzero(arm.variable == arm.variable[k]) == 1
    return bool(alone and arm.turn[k, 0] != 0.0)


def _without_end_rotations(arm: SerialChain, first_turns: bool, last_turns: bool) -> SerialChain:
    """Return a copy of an arm in which the first joint, the last joint or both are fixed at 0.

    If the last joint is fixed, the translation from this joint to the tip is removed, too.

    Args:
        arm: Arm.
        first_turns: Whether the first joint is fixed.
        last_turns: Whether the last joint is fixed.
    """
    turn, link = arm.turn.copy(), arm.link.copy()
    if first_turns:
        turn[0] = 0.0
    if last_turns:
        turn[-1], link[-1, :3] = 0.0, 0.0
    return arm._replace(turn=turn, link=link)


def _build_tree(features: Array) -> tuple[NDArray[np.intp], NDArray[np.int64], Array]:
    """Build a balanced k-d tree over the rows of a table.

    Each node is split at the median of the feature that has the widest range in the node.

    Args:
        features: (rows, 9) features of the tip pose of each row.

    Returns:
        The indices of the rows sorted by leaf, and the split feature and split value of each node.
    """
    order, columns = np.arange(len(features)), np.ascontiguousarray(features.T)
    by, cut = np.zeros(1 << TABLE_LEVELS, np.int64), np.zeros(1 << TABLE_LEVELS)
    for level in range(TABLE_LEVELS):
        nodes, count = slice(1 << level, 2 << level), 1 << level
        rows = order.reshape(count, -1)  # (nodes, rows of the node)
        values = columns[:, rows]  # (9, nodes, rows)
        by[nodes] = (values.max(axis=2) - values.min(axis=2)).argmax(axis=0)
        widest = values[by[nodes], np.arange(count)]  # (nodes, rows)
        half = rows.shape[1] // 2
        sides = np.argpartition(widest, half, axis=1)
        cut[nodes] = widest[np.arange(count), sides[:, half]]
        order = np.take_along_axis(rows, sides, axis=1).ravel()
    return order, by, cut


# Attempts in Python: KDL methods and plug-ins


class SeededAttempts(ABC):
    """Base class of attempts in Python.

    The attempts start at the seeds and random configurations at which those of the kernels start.
    """

    _robot: RobotModel

    def search(
        self,
        Ts: Array,
        seeds: Array,
        attempts: int,
        rows: Rows,
        snapshot: SceneSnapshot | None = None,
    ) -> None:
        """Make more attempts for every pose; skip rows whose pose or seed is not valid.

        The attempts for a pose end when a solution is found.

        Args:
            Ts: (b, k, 4, 4) desired poses.
            seeds: (b, n) seeds, or (1, n) for all poses [rad or m].
            attempts: Maximum number of attempts per pose in this call.
            rows: State of the searches, read and written.
            snapshot: Scene in which solutions must be collision-free; None for no scene.

        Raises:
            MethodError: If a plug-in fails; see :func:`dls_ik.solver.plugins.checked_step`.
        """
        for i in range(len(Ts)):
            seed = seeds[min(i, len(seeds) - 1)]
            if all(is_pose(T, POSE_TOLERANCE) for T in Ts[i]) and np.isfinite(seed).all():
                row = Rows._make(array[i] for array in rows)
                self._search_row(Ts[i], seed, attempts, row, snapshot)

    def _search_row(
        self, T_d: Array, seed: Array, attempts: int, row: Rows, snapshot: SceneSnapshot | None
    ) -> None:
        """Make up to `attempts` more attempts for one pose T_d (k, 4, 4).

        The other arguments are those of :meth:`search`, for one row.
        """
        for _ in range(attempts):
            is_first = row.counts[ATTEMPTS_COLUMN] == 0
            start = seed if is_first else random_start(self._robot.finite_limits(), row)
            row.counts[ATTEMPTS_COLUMN] += 1
            q, errors, steps, is_reached = self._attempt(T_d, start)
            row.counts[STEPS_COLUMN] += steps
            pair = snapshot.first_touching(q) if is_reached and snapshot is not None else None
            if pair is not None:
                count_pair(row.counts, pair)
                is_reached = False
            if is_first or is_reached or errors[0] + errors[1] < row.figures[:2].sum():
                row.best[:], row.figures[:2] = q, errors
            if is_reached:
                row.counts[FOUND_COLUMN] = FOUND_ALL
                return

    @abstractmethod
    def _attempt(self, T_d: Array, start: Array) -> tuple[Array, Sequence[float], int, bool]:
        """Make one attempt from `start` (n,) to reach the poses T_d (k, 4, 4).

        Returns:
            The last configuration (n,) [rad or m], its position error [m] and rotation error [rad],
            the number of steps, and whether T_d is reached.
        """

    def without_steps(self) -> SeededAttempts | None:
        """Return attempts of 0 steps, which return the errors of their starts; None for KDL."""
        return None


# KDL


class KdlAttempts(SeededAttempts):
    """Attempts of a solver of KDL.

    The solvers have a single tolerance. ``kdl_nr`` (Newton-Raphson) and ``kdl_nr_jl``
    (Newton-Raphson clipped to the joint limits) compare each of six error components with it.
    ``kdl_lma`` (Levenberg-Marquardt) compares an error norm with it, in which 1 rad weighs as much
    as 0.01 m. The tolerance is set such that a solution is within both `position_tolerance` and
    `rotation_tolerance`. The number of steps in a result is 0, because KDL does not report it.

    Raises:
        MethodError: If KDL does not support the robot or the task.
        DlsIkError: If PyKDL is not installed.
    """

    def __init__(self, robot: RobotModel, method: str, options: SolverOptions, task: Tasks) -> None:
        self._robot, self._method, self._goal = robot, method, options.goal()
        if not is_full_pose(robot, task):
            raise MethodError(
                f"method {method!r} needs a task of the full pose of one tip: use another method, "
                "such as 'auto', for other tasks"
            )
        if robot.n < MIN_KDL_JOINTS:
            raise MethodError(
                f"method {method!r} needs at least {MIN_KDL_JOINTS} joints, because KDL aborts the "
                f"process with fewer; {robot.name!r} has {robot.n}"
            )
        self._kdl = pykdl()
        self._chain = kdl_chain(robot)
        self._fk = self._kdl.ChainFkSolverPos_recursive(self._chain)
        self._keep: tuple[Any, ...] = ()  # references to objects that KDL's solver uses
        self._solver = self._new_solver()

    def _attempt(self, T_d: Array, start: Array) -> tuple[Array, Sequence[float], int, bool]:
        out, goal, frame = (
            self._kdl.JntArray(self._robot.n),
            self._goal,
            kdl_frame(self._kdl, T_d[0]),
        )
        self._solver.CartToJnt(self._joints(start), frame, out)
        q = np.array([out[j] for j in range(self._robot.n)])
        position, rotation = self._errors(frame, q)
        is_reached = (
            position <= goal.position_tolerance
            and rotation <= goal.rotation_tolerance
            and math.hypot(position, goal.rotation_weight * rotation) <= goal.error_tolerance
        )
        return q, (position, rotation), 0, is_reached

    def _errors(self, frame: Any, q: Array) -> tuple[float, float]:
        """Return the position error [m] and rotation error [rad] at q (n,), computed by KDL.

        `frame` is the desired pose as a KDL frame.
        """
        if not np.isfinite(q).all():
            return math.inf, math.inf
        actual = self._kdl.Frame()
        self._fk.JntToCart(self._joints(q), actual)
        difference = self._kdl.diff(actual, frame)
        return difference.vel.Norm(), difference.rot.Norm()

    def _joints(self, q: Array) -> Any:
        """Convert joint positions (n,) [rad or m] to a KDL array."""
        joints = self._kdl.JntArray(self._robot.n)
        for j, value in enumerate(q):
            joints[j] = float(value)
        return joints

    def _new_solver(self) -> Any:
        """Create the KDL solver that belongs to the name of the method."""
        kdl, goal = self._kdl, self._goal
        max_iterations = goal.max_iterations
        tolerance = min(goal.position_tolerance, goal.rotation_tolerance)
        tolerance = min(tolerance, goal.error_tolerance / 2.0)
        if self._method == "kdl_lma":
            weighted = LMA_ROTATION_WEIGHT * tolerance
            return kdl.ChainIkSolverPos_LMA(self._chain, weighted, max_iterations, 1e-15)
        velocity = kdl.ChainIkSolverVel_wdls(self._chain)  # undamped: an SVD pseudoinverse
        tolerance /= math.sqrt(3.0)
        if self._method == "kdl_nr":
            self._keep = (velocity,)
            solver = kdl.ChainIkSolverPos_NR
            return solver(self._chain, self._fk, velocity, max_iterations, tolerance)
        bounds = [self._joints(limit) for limit in self._robot.finite_limits()]
        self._keep = (velocity, bounds)
        clipped = kdl.ChainIkSolverPos_NR_JL
        return clipped(self._chain, *bounds, self._fk, velocity, max_iterations, tolerance)


# Plug-ins


class PluginAttempts(SeededAttempts):
    """Attempts of a plug-in method.

    Raises:
        MethodError: If the method does not support the robot or the task.
        OptionError: If a task or an option does not fit the robot.
    """

    def __init__(
        self, robot: RobotModel, choice: MethodChoice, options: SolverOptions, task: Tasks
    ) -> None:
        if choice.plugin is None:
            raise MethodError(f"{choice.name!r} is not a plug-in")
        self._robot, self._plugin, self._goal = robot, choice.plugin, options.goal()
        self._details = build_details(robot, choice, options, task)
        self._memory = new_memory(robot.chain, options.method(choice), self._details)

    def without_steps(self) -> PluginAttempts:
        """Return attempts of 0 steps, which return the errors of their starts."""
        other = copy(self)
        other._goal = self._goal._replace(max_iterations=0)
        return other

    def _attempt(self, T_d: Array, start: Array) -> tuple[Array, Sequence[float], int, bool]:
        goal, task, r = self._goal, self._details.task, len(self._details.task.weight)
        e, J, q = np.empty(r), np.empty((r, self._robot.n)), np.array(start)
        memory = np.zeros(MEMORY)
        for steps in range(goal.max_iterations + 1):
            error_and_jacobian(self._robot.chain, self._details, self._memory, T_d, q, e, J)
            errors = largest_errors(task, e).tolist()
            if (
                errors[0] <= goal.position_tolerance
                and errors[1] <= goal.rotation_tolerance
                and np.linalg.norm(e) <= goal.error_tolerance
            ):
                return q, errors, steps, True
            if steps < goal.max_iterations:
                state = StepState(q.copy(), self._robot.lower, self._robot.upper, steps, memory)
                q = q + checked_step(self._plugin, J.copy(), e.copy(), state)
        return q, errors, goal.max_iterations, False


def largest_errors(task: TaskParams, e: Array) -> Array:
    """Return the largest position error [m] and the largest rotation error [rad] of all tips.

    Args:
        task: Struct of the task, with the tip, component and weight of each row.
        e: (r,) scaled error.

    Returns:
        Array (2,).
    """
    found = np.zeros((2, int(task.tip.max()) + 1))
    np.add.at(found, (task.component // 3, task.tip), (e / task.weight) ** 2)
    return np.asarray(np.sqrt(found.max(axis=1)))


def random_start(limits: tuple[Array, Array], row: Rows) -> Array:
    """Draw random joint positions (n,) [rad or m] as the kernels do.

    Args:
        limits: Lower and upper bounds, (n,) each.
        row: State of a search, whose random state is advanced.
    """
    lower, upper = limits
    state = row.counts[RANDOM_STATE_COLUMN:].view(np.uint64)
    return np.asarray(lower + (upper - lower) * [uniform(state) for _ in lower])
