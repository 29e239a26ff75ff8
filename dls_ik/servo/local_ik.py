# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Local motion: one step of an IK method toward the target in each cycle, within joint limits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dls_ik import compat
from dls_ik.core import damping, limits, step_bounds
from dls_ik.core.avoidance import follow_apart
from dls_ik.core.boxes import Boxed, boxed
from dls_ik.core.follow import follow, new_state, tip_errors, tip_pose
from dls_ik.core.near_pairs import NearRows
from dls_ik.core.stack_follow import errors_of_frames, poses_of_frames
from dls_ik.core.types import Array, Chain, FollowMethods, FollowState, GeneralProblem, Method
from dls_ik.errors import MethodError, OptionError
from dls_ik.model.joint import JointValues
from dls_ik.model.pose import PoseLike
from dls_ik.model.robot import RobotModel
from dls_ik.servo.followed_frames import tip_frames
from dls_ik.servo.lower_levels import LowerLevels
from dls_ik.servo.plugin_step import PluginStep
from dls_ik.servo.targets import checked_duration
from dls_ik.solver.method import AUTO_METHOD, parse_method
from dls_ik.solver.options import SolverOptions, solver_options
from dls_ik.solver.poses import checked_poses
from dls_ik.solver.problem import build_details
from dls_ik.solver.task import Tasks, checked_tasks, rotation_free
from dls_ik.solver.task_stack import TaskStack, split_stack
from dls_ik.text import did_you_mean, listing, quoted

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from dls_ik.solver.options import SolverKeywords

DEFAULT_METHOD, WITHOUT_LIMITS = "ctp+sd+svf", "svf+sd"  # default with and without joint limits
_DAMPED = (
    damping.JD,
    damping.SVF,
    damping.SVF_ED,
    damping.IED,
    damping.LM,
    damping.GDLS,
    damping.JF,
    damping.NF,
)


class ServoStep(NamedTuple):
    """Result of one step: joint positions, errors and singular values."""

    q: Array  # (n,) joint positions after the step [rad or m]
    position_error: float  # [m] error after the step; NaN without a target
    rotation_error: float  # [rad] error after the step; NaN without a target
    # Singular values of the scaled Jacobian before the step; NaN without a target.
    least_singular_value: float
    greatest_singular_value: float
    limit_activation: Array  # (n,) 0: joint is free, 1: joint is held at a limit


class LocalIk:
    """Moves joint positions toward a target by one step of an IK method per cycle.

    Each step starts at the result of the previous step. No step exceeds a position or velocity
    limit; a joint that starts outside its position limits returns at its velocity limit. Each step
    reduces the error. If the target is out of reach, the joint positions therefore settle at the
    closest configuration that the method finds.

    Args:
        robot: Chain to move.
        method: A name from :func:`dls_ik.method_names`, or a plug-in; default: ``ctp+sd+svf``, or
            ``svf+sd`` if no joint has limits.
        task: Part of the pose that must be reached, as for :class:`dls_ik.IkSolver`; None: the full
            pose. The first level of a :class:`dls_ik.TaskStack` must be the task of the tips; the
            lower levels move the arm in what this level leaves free.
        scale: Share of the velocity limits that steps may use, above 0.
        frozen_joints: Names of joints that do not move.
        acceleration: (n,) acceleration limits, of which the lower levels of a stack use a part
            [rad/s^2 or m/s^2]; None: no limits.
        options: Options as for :class:`dls_ik.IkSolver`. The bound `Delta` of the optimal damping
            factor (``odls``) has another default: the largest step of the slowest joint in a cycle.
            The option `joint_weights` weights the joints for every method: steps have the minimum
            weighted norm, so that a joint with the weight 4 moves about a quarter as far as it
            would with the weight 1.

    Attributes:
        frames: The tips, which follow targets.
        near: Distance constraints of the next steps; None without a scene.
        limiting_pair: Index of a pair of links or objects whose distance constraint changed the
            last step, the first in the list of active constraints; -1 if none changed the step.

    Raises:
        MethodError: If the method is unknown, does not suit the robot or cannot follow a target.
        OptionError: If an option is unknown or out of range.
    """

    def __init__(
        self,
        robot: RobotModel,
        method: str | None = None,
        *,
        task: Tasks | TaskStack = None,
        scale: float = 1.0,
        frozen_joints: Sequence[str] = (),
        acceleration: Array | None = None,
        **options: Unpack[SolverKeywords],
    ) -> None:
        choice = parse_method(method or default_method(robot))
        if choice.follows_no_target:
            raise MethodError(
                f"method {choice.name!r} solves single poses and follows no target; choose a "
                f"method that computes steps, such as {DEFAULT_METHOD!r}"
            )
        self.robot = robot
        self._chain = robot.chain._replace(velocity=scale * robot.velocity)
        self._arm = boxed(self._chain)
        self.method = choice.name
        self.options = solver_options(choice, options, robot.joint_names)
        stack, task = split_stack(task)
        tasks = checked_tasks(robot, task)
        self._position_only = rotation_free(tasks)
        self.frames = tip_frames(robot, tasks)
        self._is_single = len(self.frames) == 1
        self._counted = np.array([[f.has_position, f.has_rotation] for f in self.frames])
        self._bases = np.full(len(self.frames), -1)
        self._mobility = joint_mobility(robot, self.options.joint_weights, frozen_joints)
        self._lower: LowerLevels | None = None
        if stack is not None and len(stack.levels) > 1:
            velocity = np.where(self._mobility > 0.0, scale * robot.velocity, 0.0)
            highest = np.full(robot.n, np.inf) if acceleration is None else acceleration
            self._lower = LowerLevels(robot, stack, self.options, velocity, highest)
        method_kernel = self.options.method(choice)
        self._method = method_kernel._replace(following=True)
        self._details = build_details(robot, choice, self.options, task)
        # Largest step of each joint, and velocity limit, for steps before `mobility` scales them
        moving = np.where(self._mobility > 0.0, self._mobility, 1.0)
        self._largest_change = self.options.largest_change / moving
        self._velocity = scale * robot.velocity / moving
        self._slowest = math.inf  # [rad/s or m/s] smallest velocity limit, if it determines `Delta`
        if self.options.policy == "optimal" and "Delta" not in options:
            self._slowest = scale * float(robot.velocity.min())
        self._descending, self._plain = _fallback_method(robot, self.options, task)
        self._criteria = self.options.goal()
        self._plugin_step: PluginStep | None = None
        # If a step of the plug-in does not reduce the error, a step of the kernels replaces it.
        if choice.plugin is not None:
            self._plugin_step = PluginStep(
                robot, choice.plugin, method_kernel, self._details, self._mobility
            )
            self._method, self._details = self._descending._replace(following=True), self._plain
        self._follow = compat.EntryPoint(follow)
        self._follow_apart = compat.EntryPoint(follow_apart)
        self._tip_errors = compat.EntryPoint(tip_errors)
        self._tip_pose = compat.EntryPoint(tip_pose)
        self._frame_errors = compat.EntryPoint(errors_of_frames)
        self._frame_poses = compat.EntryPoint(poses_of_frames)
        self._state = new_state(robot.chain, self._method, self._details)
        self._followed = boxed(self._state)
        self._methods = boxed(self._follow_methods(self._details))
        self._bounds_step = limits.bounds_step(self._method)
        self.near: NearRows | None = None
        # The last value of `near`, and a box of it.
        self._constraints: tuple[NearRows, Boxed[NearRows]] | None = None
        self.limiting_pair = -1
        self.restart(robot.clip(np.zeros(robot.n)))

    def __repr__(self) -> str:
        """Return the names of the robot and of the method."""
        return f"LocalIk({self.robot.name}, {self.method})"

    @property
    def q(self) -> Array:
        """Joint positions after the last step (n,) [rad or m]; a copy."""
        return self._state.q.copy()

    @property
    def singularity_note(self) -> str:
        """Text about how the method moves along the direction that is lost in a singularity."""
        if self._plugin_step is not None:
            return f"method {self.method} determines the motion along the lost direction"
        if self._method.damping in _DAMPED:
            return "motion along the lost direction is damped"
        if self._method.damping == damping.TPINV:
            return "motion along the lost direction is suppressed"
        if self._method.step in (step_bounds.SD, step_bounds.SDLS):
            return "motion along the lost direction is bounded"
        return f"{self.method} does not damp motion along the lost direction; joints may move fast"

    def is_reached(self, position_error: float, rotation_error: float) -> bool:
        """Return whether both errors are within the tolerances for a reached target.

        Args:
            position_error: Position error, in the robot's unit of length.
            rotation_error: Rotation error [rad].
        """
        return (
            position_error <= self._criteria.position_tolerance
            and rotation_error <= self._criteria.rotation_tolerance
        )

    def errors_at(self, q: Array, T_d: Array) -> tuple[float, float]:
        """Return the distance [m] and the angle [rad] between the tip and a desired pose.

        With several tips, the result is the largest distance and the largest angle, without the
        parts of poses that do not count. With one tip, tolerances and restrictions of the task are
        ignored.

        Args:
            q: (n,) joint positions [rad or m].
            T_d: (4, 4) desired T_base_tip, or (k, 4, 4) for k tips.
        """
        if not self._is_single:
            position, rotation = self.frame_errors(q, T_d).max(axis=0).tolist()
            return position, rotation
        q, T_d = np.ascontiguousarray(q, dtype=float), np.ascontiguousarray(T_d, dtype=float)
        errors: tuple[float, float] = self._tip_errors(self._arm, q, T_d)
        return errors

    def frame_errors(self, q: Array, T_d: Array) -> Array:
        """Return the position and rotation error of each tip (k, 2) [m, rad] at q (n,).

        Errors of parts of a pose that do not count are zero.

        Args:
            q: (n,) joint positions [rad or m].
            T_d: (k, 4, 4) desired poses of the tips.
        """
        errors: Array = self._frame_errors(self._arm, self._bases, T_d, q)
        return np.asarray(errors * self._counted)

    def pose_at(self, q: Array) -> Array:
        """Return the pose T_base_tip (4, 4) of the tip, or (k, 4, 4) of k tips.

        Args:
            q: (n,) joint positions [rad or m].
        """
        q = np.ascontiguousarray(q, dtype=float)
        pose: Array = (
            self._tip_pose(self._arm, q)
            if self._is_single
            else self._frame_poses(self._arm, self._bases, q)
        )
        return pose

    def reset(self, q: JointValues) -> None:
        """Start a new motion at joint positions (n,) [rad or m], which may be outside the limits.

        Raises:
            JointValueError: If the length is wrong or a value is not finite.
        """
        self.restart(self.robot.validated_one(q))

    def step(self, T_d: PoseLike | None, dt: float) -> ServoStep:
        """Take one step toward a target pose.

        If an error is raised, the joint positions do not change.

        Args:
            T_d: (4, 4) desired T_base_tip, or (k, 4, 4) for k tips; None: take no step.
            dt: Time since the last cycle [s].

        Raises:
            PoseError: If the pose is invalid.
            OptionError: If `dt` is not positive and finite.
            MethodError: If a plug-in fails.
        """
        elapsed = checked_duration(dt)
        if T_d is None:
            return self.stay()
        return self.advance(checked_poses(T_d, len(self.robot.tips), self._position_only), elapsed)

    def restart(self, q: Array) -> None:
        """Start a new motion at joint positions (n,) [rad or m], without validation."""
        if self._plugin_step is not None:
            self._plugin_step.restart()
        if self._lower is not None:
            self._lower.restart()
        state, memory = self._state, self._state.work.memory
        for array in (*memory, state.observed, state.limit_activation, state.motion):
            array.fill(0)
        memory.remaining.fill(math.nan)
        state.motion[self.robot.n :] = 1.0  # factors by which the steps of joints are shortened
        state.q[:] = q

    def continue_from(self, q: Array) -> None:
        """Set the joint positions q (n,) at which the next step starts, without a restart."""
        self._state.q[:] = q

    @property
    def lower_levels(self) -> LowerLevels | None:
        """The lower levels of the stack; None without a stack."""
        return self._lower

    def stay(self) -> ServoStep:
        """Return the result of a cycle without a step: unchanged joint positions, NaN errors."""
        nan = math.nan
        return ServoStep(self.q, nan, nan, nan, nan, np.zeros(self.robot.n))

    def advance(self, T_d: Array, dt: float) -> ServoStep:
        """Take a step of `dt` [s] toward target poses (k, 4, 4), without validation."""
        if self._lower is None:
            return self._first_level_step(T_d, dt)
        before = self.q
        step = self._first_level_step(T_d, dt)
        self._lower.add(before, self._state.q, T_d, dt, self.near)
        return step._replace(q=self.q)

    def _first_level_step(self, T_d: Array, dt: float) -> ServoStep:
        """Take a step as :meth:`advance`, without the lower levels of a stack."""
        T_d = np.ascontiguousarray(T_d, dtype=float)  # usually makes no copy
        is_inside = self._plugin_step is not None and bool(self.robot.within_limits(self._state.q))
        if self._plugin_step is not None and is_inside:
            found = self._plugin_step.advance(self.q, T_d, dt, self.near)
            if found is not None:
                self.limiting_pair = self._plugin_step.limiting_pair
                self._state.q[:], (position, rotation, least, greatest) = found
                free = np.zeros(self.robot.n)
                return ServoStep(self.q, position, rotation, least, greatest, free)
        if math.isfinite(self._slowest):
            params = self._details.params._replace(Delta=self._slowest * dt)
            self._methods = boxed(self._follow_methods(self._details._replace(params=params)))
        self.prepare(dt)
        structs = (self._arm, self._methods, self._followed)
        if self.near is not None:
            if self._constraints is None or self._constraints[0] is not self.near:
                self._constraints = self.near, boxed(self.near)
            pair = self._follow_apart(*structs, self._constraints[1], T_d, dt)
            self.limiting_pair = int(pair)
        else:
            self._follow(*structs, T_d, dt)
            self.limiting_pair = -1
        position, rotation, least, greatest = self._state.observed.tolist()
        activation = self._state.limit_activation.copy()
        return ServoStep(self.q, position, rotation, least, greatest, activation)

    @property
    def is_direct(self) -> bool:
        """Return whether :class:`.DirectCycle` can make the steps: one call of one kernel each."""
        has_fixed_bound = not math.isfinite(self._slowest)
        has_one_level = self._plugin_step is None and self._lower is None
        return self._is_single and has_one_level and has_fixed_bound

    def records(self) -> tuple[Chain, FollowMethods, FollowState]:
        """Return the structs that the kernels of a step read and write."""
        return self._chain, self._follow_methods(self._details), self._state

    def prepare(self, dt: float) -> None:
        """Set the largest steps of the joints in a cycle of `dt` [s], for methods that use them."""
        if self._bounds_step:
            self._details.largest_step[:] = np.minimum(self._largest_change, self._velocity * dt)

    def _follow_methods(self, details: GeneralProblem) -> FollowMethods:
        """Return the methods of local motion for kernels.

        The methods are the chosen method, and the fallback that computes the step if the chosen
        method does not reduce the error.

        Args:
            details: Task and parameters of the chosen method.
        """
        fallback = self._descending, self._plain, self._criteria, self._mobility
        return FollowMethods(self._method, details, *fallback)


def joint_mobility(
    robot: RobotModel, weights: tuple[float, ...] | None, frozen_joints: Sequence[str]
) -> Array:
    """Return the mobility (n,) of the joints: 1 / sqrt(weight), at most 1; 0 for frozen joints.

    Args:
        robot: Chain to move.
        weights: (n,) joint weights, of which only the ratios matter; None: equal weights.
        frozen_joints: Names of joints that do not move.

    Raises:
        OptionError: If a frozen joint is unknown, or all joints are frozen.
    """
    given = np.ones(robot.n) if weights is None else np.array(weights, float)
    mobility = np.sqrt(given.min() / given)
    for name in frozen_joints:
        if name not in robot.joint_names:
            hint = did_you_mean(name, robot.joint_names, "; {}")
            raise OptionError(
                f"unknown joint {quoted(name)} in frozen_joints; joints are "
                f"{listing(robot.joint_names)}{hint}"
            )
        mobility[robot.joint_names.index(name)] = 0.0
    if not mobility.any():
        raise OptionError(f"all {robot.n} joints are frozen; leave at least one joint free")
    return np.asarray(mobility)


def default_method(robot: RobotModel) -> str:
    """Return the name of the default method for following targets with a robot."""
    return DEFAULT_METHOD if robot.limited.any() else WITHOUT_LIMITS


def _fallback_method(
    robot: RobotModel, given: SolverOptions, task: Tasks
) -> tuple[Method, GeneralProblem]:
    """Return the method that replaces steps that do not reduce the error, with its parameters.

    It is the solver's default method (error damping with an active set), because this method
    reduces the error at almost all configurations.

    Args:
        robot: Chain to move.
        given: Options of the replaced method; its `rotation_weight` and `length_unit` are used.
        task: Part of the pose that must be reached; None: the full pose.
    """
    auto = parse_method(AUTO_METHOD)
    metric = ("rotation_weight", "length_unit")
    options = solver_options(auto, {name: getattr(given, name) for name in metric})
    return options.method(auto), build_details(robot, auto, options, task)
