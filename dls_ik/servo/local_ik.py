"""Local motion: one step of a method toward the target each cycle, never past a limit."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dls_ik import compat
from dls_ik.core import damping, step_bounds
from dls_ik.core.avoidance import follow_apart
from dls_ik.core.follow import follow
from dls_ik.core.types import Array, FollowState, GeneralProblem, Method
from dls_ik.core.workspace import new_memory
from dls_ik.errors import MethodError
from dls_ik.model.joint import JointValues
from dls_ik.model.pose import PoseLike
from dls_ik.model.robot import RobotModel
from dls_ik.servo.own_step import NearRows, OwnStep
from dls_ik.servo.targets import checked_duration
from dls_ik.solver.method import AUTO, parse_method
from dls_ik.solver.options import SolverOptions, solver_options
from dls_ik.solver.poses import checked_poses
from dls_ik.solver.problem import build_details
from dls_ik.solver.task import Tasks, checked_tasks, rotation_free

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from dls_ik.solver.options import SolverKeywords

DEFAULT_METHOD, WITHOUT_LIMITS = "ctp+sd+svf", "svf+sd"
_DAMPED = (damping.JD, damping.SVF, damping.SVF_ED, damping.IED, damping.JF, damping.NF)


class ServoStep(NamedTuple):
    """Joint values after one step, and its figures."""

    q: Array  # (n,) [rad or m]
    position_error: float  # [m] there; NaN without a target
    rotation_error: float  # [rad]
    least_singular_value: float  # of the scaled Jacobian before the step; NaN without a target
    greatest_singular_value: float
    limit_activation: Array  # (n,) 0 free to 1 held by its limit


class LocalIk:
    """Steps joint values toward a target, each step from the result of the last one.

    No step passes a position limit or is faster than the velocity limits; joint values beyond a
    limit at the start come back at that speed. Each step lowers the error, so that for a target out
    of reach the arm settles at the nearest configuration that its method finds.

    Args:
        robot: the chain to move.
        method: a name from :func:`dls_ik.method_names`, or a plug-in; default: ``ctp+sd+svf``, or
            ``svf+sd`` where no joint has limits.
        task: as for :class:`dls_ik.IkSolver`; default: full poses.
        scale: share of the velocity limits that is used, above 0.
        options: as for :class:`dls_ik.IkSolver`; the bound `Delta` of the optimal damping factor
            (``odls``) is that of the slowest joint in a cycle unless it is given.

    Raises:
        MethodError, OptionError: as :class:`dls_ik.IkSolver`.
    """

    def __init__(
        self,
        robot: RobotModel,
        method: str | None = None,
        *,
        task: Tasks = None,
        scale: float = 1.0,
        **options: Unpack[SolverKeywords],
    ) -> None:
        choice = parse_method(method or default_method(robot))
        if choice.follows_no_target:
            raise MethodError(f"method {choice.name!r} solves for poses and follows no target")
        self.robot = robot
        self._chain = robot.chain._replace(velocity=scale * robot.velocity)
        self.method = choice.name
        self.options = solver_options(choice, options, robot.joint_names)
        self._position_only = rotation_free(checked_tasks(robot, task))
        method_kernel = self.options.method(choice)
        self._method = method_kernel._replace(following=True)
        self._details = build_details(robot, choice, self.options, task)
        self._slowest = math.inf  # [rad/s or m/s]
        if self.options.policy == "optimal" and "Delta" not in options:
            self._slowest = scale * float(robot.velocity.min())
        self._descending, self._plain = _descending(robot, self.options, task)
        self._criteria = self.options.goal()
        self._own: OwnStep | None = None
        if choice.plugin is not None:  # where its steps lead away, kernels take their place
            self._own = OwnStep(robot, choice.plugin, method_kernel, self._details)
            self._method, self._details = self._descending._replace(following=True), self._plain
        self._follow: Callable[..., Any] | None = None  # for arguments of the types of a robot
        self._follow_apart: Callable[..., Any] | None = None
        self.near: NearRows | None = None  # what is kept apart
        self.hindrance = -1  # the pair that changed the last step most
        self.restart(robot.clip(np.zeros(robot.n)))

    def __repr__(self) -> str:
        """Return the robot and the method."""
        return f"LocalIk({self.robot.name}, {self.method})"

    @property
    def q(self) -> Array:
        """Joint values after the last step (n,) [rad or m]; a copy."""
        return self._state.q.copy()

    @property
    def singularity_note(self) -> str:
        """Describe how the method treats the direction of motion that is lost in a singularity."""
        if self._own is not None:
            return f"{self.method} decides about motion along the lost direction"
        if self._method.damping in _DAMPED:
            return "motion along the lost direction is damped"
        if self._method.damping == damping.TPINV:
            return "motion along the lost direction is left out"
        if self._method.step in (step_bounds.SD, step_bounds.SDLS):
            return "motion along the lost direction is bounded"
        return f"{self.method} does not damp motion along the lost direction; joints may be fast"

    def is_reached(self, position_error: float, rotation_error: float) -> bool:
        """Return whether errors [the robot's unit of length], [rad] are within the tolerances."""
        return (
            position_error <= self._criteria.position_tolerance
            and rotation_error <= self._criteria.rotation_tolerance
        )

    def reset(self, q: JointValues) -> None:
        """Start from these joint values (n,) [rad or m], inside the limits or not.

        Raises:
            JointValueError: for the wrong length, or values that are not finite.
        """
        self.restart(self.robot.validated_one(q))

    def step(self, T_d: PoseLike | None, dt: float) -> ServoStep:
        """Advance by one cycle.

        Args:
            T_d: (4, 4) desired ``T_base_tip`` [m], (k, 4, 4) for k tips; None to stand still.
            dt: time since the last cycle [s].

        Raises:
            PoseError: for a pose that is not valid; nothing moves.
            OptionError: for a dt that is not positive and finite.
            MethodError: for a plug-in that fails; nothing moves.
        """
        elapsed = checked_duration(dt)
        if T_d is None:
            return self.stay()
        return self.advance(checked_poses(T_d, len(self.robot.tips), self._position_only), elapsed)

    def restart(self, q: Array) -> None:
        """Start from joint values (n,), which are not checked."""
        n = self.robot.n
        if self._own is not None:
            self._own.restart()
        memory = new_memory(self.robot.chain, self._method, self._details)
        motion = np.repeat([0.0, 1.0], n)  # no step before, and full steps
        self._state = FollowState(q.copy(), motion, memory, np.zeros(4), np.zeros(n))

    def continue_from(self, q: Array) -> None:
        """Let the next step begin at joint values (n,), as a part of the same motion."""
        self._state.q[:] = q

    def stay(self) -> ServoStep:
        """Return the step of a cycle without a target."""
        nan = math.nan
        return ServoStep(self.q, nan, nan, nan, nan, np.zeros(self.robot.n))

    def advance(self, T_d: Array, dt: float) -> ServoStep:
        """Advance by `dt` [s] toward poses (k, 4, 4), neither of which is checked."""
        T_d = np.ascontiguousarray(T_d, dtype=float)  # nearly always as it is
        is_inside = self._own is not None and bool(self.robot.within_limits(self._state.q))
        if self._own is not None and is_inside:
            found = self._own.advance(self.q, T_d, dt, self.near)
            if found is not None:
                self.hindrance = self._own.hindrance
                self._state.q[:], (position, rotation, least, greatest) = found
                free = np.zeros(self.robot.n)
                return ServoStep(self.q, position, rotation, least, greatest, free)
        details = self._details
        if math.isfinite(self._slowest):
            params = details.params._replace(Delta=self._slowest * dt)
            details = details._replace(params=params)
        method, descending = (self._method, details), (self._descending, self._plain)
        args = (self._chain, *method, *descending, self._criteria, T_d, dt, self._state[:])
        if self.near is not None:
            both = (*args, *self.near)
            if self._follow_apart is None:
                self._follow_apart = compat.numba_entry(follow_apart, both)
            self.hindrance = int(self._follow_apart(*both))
        else:
            if self._follow is None:
                self._follow = compat.numba_entry(follow, args)
            self._follow(*args)
            self.hindrance = -1
        position, rotation, least, greatest = self._state.observed.tolist()
        activation = self._state.limit_activation.copy()
        return ServoStep(self.q, position, rotation, least, greatest, activation)


def default_method(robot: RobotModel) -> str:
    """Name the method that a robot is moved by when none is given."""
    return DEFAULT_METHOD if robot.limited.any() else WITHOUT_LIMITS


def _descending(
    robot: RobotModel, given: SolverOptions, task: Tasks
) -> tuple[Method, GeneralProblem]:
    """Return the solver's method: error damping and an active set descend almost everywhere."""
    auto = parse_method(AUTO)
    metric = ("rotation_weight", "length_unit")
    options = solver_options(auto, {name: getattr(given, name) for name in metric})
    return options.method(auto), build_details(robot, auto, options, task)
