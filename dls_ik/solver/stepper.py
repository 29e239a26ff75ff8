# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Single steps of a method, for teaching, comparison and reproduction of published figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dls_ik.core import damping, damping_policies, limits, linalg
from dls_ik.core.damping_policies import accuracy_weight, law_damping, weight_columns
from dls_ik.core.linalg import singular_values
from dls_ik.core.optimal_damping import search_plain
from dls_ik.core.step import StepRecord, error_and_jacobian, run_steps
from dls_ik.core.types import MAX_POSE_COORDINATE, Array, Memory
from dls_ik.core.workspace import new_memory
from dls_ik.errors import MethodError, OptionError, PoseError
from dls_ik.model.joint import JointValues, real_array
from dls_ik.model.pose import PoseLike
from dls_ik.model.robot import RobotModel, checked_robot
from dls_ik.solver.method import parse_method
from dls_ik.solver.options import checked_count, solver_options
from dls_ik.solver.plugins import MEMORY, Plugin, StepState, checked_step
from dls_ik.solver.poses import batch_poses, checked_poses
from dls_ik.solver.problem import build_details
from dls_ik.solver.task import Tasks, checked_tasks, rotation_free
from dls_ik.text import quoted

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from dls_ik.solver.options import SolverKeywords


class Trace(NamedTuple):
    """Configurations, errors and damping factors of s successive steps."""

    q: Array  # (s + 1, n) joint positions [rad or m]
    error: Array  # (s + 1, r) scaled error at q, relative to the target of the following step
    lambda2: Array  # (s,) squared damping factor
    searches: Array  # (s,) number of iterations of the search for the optimal damping factor


class Inverse(NamedTuple):
    """Damped inverse P of the scaled Jacobian J at one configuration.

    With the singular value decomposition J = sum_i s_i u_i v_i^T it is
    P = sum_i gain_i v_i u_i^T.
    """

    P: Array  # (n, r)
    s: Array  # (r,) singular values of J, descending
    gain: Array  # (r,) gain_i, in place of 1 / s_i of the pseudoinverse


class Stepper:
    """Configuration that a method moves step by step; the attribute `q` is the configuration.

    Args:
        robot: Robot model.
        method: Name of a method; KDL methods are not supported, because they have no single steps.
        q: (n,) start [rad or m]; None stands for the middle of the joint limits.
        task: As for :class:`dls_ik.IkSolver`.
        options: Options of :class:`dls_ik.IkSolver`.

    Raises:
        MethodError: If the method is unknown or does not support the robot or the task.
        OptionError: If an option is not valid.
        JointValueError: If the start configuration is not valid.
    """

    def __init__(
        self,
        robot: RobotModel,
        method: str,
        q: JointValues | None = None,
        *,
        task: Tasks = None,
        **options: Unpack[SolverKeywords],
    ) -> None:
        choice = parse_method(method)
        if choice.is_kdl:
            raise MethodError(
                f"method {choice.name!r} has no single steps; choose a method that is not KDL's"
            )
        self.robot = checked_robot(robot)
        self.method = choice.name
        self.options = solver_options(choice, options, robot.joint_names)
        self.details = build_details(robot, choice, self.options, task)
        self._method = self.options.method(choice)
        self._plugin = choice.plugin
        self._position_only = rotation_free(checked_tasks(robot, task))
        self.reset(0.5 * np.sum(robot.finite_limits(), axis=0) if q is None else q)

    def __repr__(self) -> str:
        """Return the robot and the method."""
        return f"Stepper({self.robot.name}, {self.method})"

    @property
    def rows(self) -> int:
        """Number of task rows, r."""
        return len(self.details.task.weight)

    def reset(self, q: JointValues) -> None:
        """Restart at q (n,) [rad or m], and clear the memory of earlier steps.

        Raises:
            JointValueError: If q has another length, or values are not finite.
        """
        self.q = self.robot.validated_one(q).copy()
        self._memory = new_memory(self.robot.chain, self._method, self.details)
        self._own_memory, self._own_steps = np.zeros(MEMORY), 0

    def step(self, T: PoseLike, J: ArrayLike | None = None) -> Array:
        """Make one step toward a pose, and return the joint motion dq (n,) [rad or m].

        Args:
            T: Desired pose (4, 4), or (k, 4, 4) for k tips [m].
            J: (r, n) scaled Jacobian that replaces the Jacobian at q.

        Raises:
            PoseError: If the pose is not valid.
            OptionError: If J is not valid.
        """
        before = self.q
        if J is None:
            self.run(T, 1)
            return self.q - before
        dq = self.step_for(self.error(T), J, T)
        self.q = before + dq
        if limits.clips(self._method):
            self.q = self.robot.clip(self.q)
        self._memory.remaining[:] = self.error(T)
        return self.q - before

    def run(self, Ts: PoseLike, steps: int) -> Trace:
        """Make several steps, and return the trace of these steps.

        Args:
            Ts: Desired pose (4, 4), or (k, 4, 4) for k tips [m]; or a sequence of poses, one for
                each step. If there are fewer poses than steps, further steps use the last pose.
            steps: Number of steps.

        Raises:
            PoseError: If a pose is not valid, or the array has another shape.
            OptionError: If the number of steps is negative or not an integer.
        """
        steps = checked_count("steps", steps, 0)
        qs = np.empty((steps + 1, self.robot.n))
        qs[0] = self.q
        targets = self._targets(Ts)
        if self._plugin is not None:
            return self._run_plugin(self._plugin, targets, steps)
        record = self._run_steps(targets, qs)
        self.q = qs[-1].copy()
        return Trace(qs, record.errors, record.damping[:, 0], record.damping[:, 1])

    def _run_steps(self, targets: Array, qs: Array, given: Array | None = None) -> StepRecord:
        """Make steps from the first row of `qs` (s + 1, n), write the other rows, and return more.

        The target poses `targets` (t, k, 4, 4) and the error and Jacobian `given` are those of
        :func:`dls_ik.core.step.run_steps`.
        """
        n, steps = self.robot.n, len(qs) - 1
        errors = np.empty((steps + 1, self.rows))
        record = StepRecord(errors, np.empty((steps, 2)), np.empty(n))
        structs = self.robot.chain, self._method, self.details, self._memory
        given = np.empty((0, 1 + n)) if given is None else given
        run_steps(*structs, targets, given, qs, record)
        return record

    def _run_plugin(self, plugin: Plugin, targets: Array, steps: int) -> Trace:
        """Make several steps of a plug-in, and return their trace.

        `targets` (t, k, 4, 4) has the target poses; further steps use the last one.
        """
        qs, errors = [self.q.copy()], []
        for i in range(steps + 1):
            e, J = self._error_and_jacobian(targets[min(i, len(targets) - 1)])
            errors.append(e)
            if i < steps:
                self.q = self.q + self._plugin_step(plugin, J, e)
                qs.append(self.q.copy())
        return Trace(np.array(qs), np.array(errors), np.zeros(steps), np.zeros(steps))

    def _plugin_step(self, plugin: Plugin, J: Array, e: Array) -> Array:
        """Return the step (n,) [rad or m] of a plug-in for a scaled Jacobian and error.

        The step counter is incremented; q does not change.
        """
        limits = self.robot.lower, self.robot.upper
        state = StepState(self.q.copy(), *limits, self._own_steps, self._own_memory)
        self._own_steps += 1
        return checked_step(plugin, J.copy(), e.copy(), state)

    def rate(
        self, x_dot: ArrayLike, dt: float, T: PoseLike | None = None, gain: float = 0.0
    ) -> Array:
        """Compute the joint velocity for a task velocity, and move q at it for a duration.

        With a gain K_p, the error of the pose is fed back: the task velocity is x_dot + K_p e,
        where e is the error from the target pose T (Deo & Walker 1993, section 2).

        Args:
            x_dot: (r,) velocity of the task rows [m/s, rad/s].
            dt: Duration [s].
            T: Target pose, used with a gain, or if the frame of the task is ``"target"``; None
                stands for the current tip pose.
            gain: Feedback gain K_p of the error [1/s].

        Returns:
            (n,) joint velocity [rad/s or m/s].

        Raises:
            OptionError: If an argument has another shape, or is not finite or larger than 1e9; or
                if the gain is negative, or is positive and T is None.
            PoseError: If the pose is not valid.
        """
        velocity = _finite_array(x_dot, (self.rows,), "x_dot")
        duration = _finite_array(dt, (), "dt")
        scaled = velocity * self.details.task.weight
        feedback = float(_finite_array(gain, (), "gain"))
        if feedback < 0.0 or (feedback > 0.0 and T is None):
            raise OptionError(
                "gain must be at least 0 [1/s], and a positive gain needs the target pose T whose "
                f"error it feeds back; got gain {feedback:g}, T {quoted(T)}"
            )
        if feedback > 0.0 and T is not None:
            scaled = scaled + feedback * self.error(T)
        q_dot = self.step_for(scaled, self.jacobian(T), T)
        self.q = self.q + duration * q_dot
        return q_dot

    def error(self, T: PoseLike) -> Array:
        """Return the scaled error (r,) of the task at q, for a target pose T in any form."""
        return self._look(T)[0]

    def jacobian(self, T: PoseLike | None = None) -> Array:
        """Return the scaled Jacobian (r, n) of the task at q.

        T is the target pose, used if the frame of the task is ``"target"``; None stands for the
        current tip pose.
        """
        return self._look(T)[1]

    def step_for(self, e: ArrayLike, J: ArrayLike, T: PoseLike | None = None) -> Array:
        """Return the step dq (n,) [rad or m] for a given error and Jacobian; q does not change.

        Args:
            e: (r,) scaled error.
            J: (r, n) scaled Jacobian.
            T: Target pose, used if the frame of the task is ``"target"``; None stands for the
                current tip pose.

        Raises:
            OptionError: If an array has another shape, or a number is not finite or larger than
                1e9.
        """
        error = _finite_array(e, (self.rows,), "e")
        J_given = _finite_array(J, (self.rows, self.robot.n), "J")
        if self._plugin is not None:
            return self._plugin_step(self._plugin, J_given, error)
        qs, given = np.stack([self.q, self.q]), np.column_stack([error, J_given])
        return self._run_steps(self._target(T)[None], qs, given).dq

    def inverse(self, T: PoseLike) -> Inverse:
        """Return the damped inverse at q that the method uses for the error to a target pose.

        The damping law and the policy of the method determine the inverse; the limit strategy and
        the step bound have no effect. If a policy depends on the previous step, the last step of
        this stepper is used. Policy `accuracy` weights J and the error by a matrix W: s and gain
        are then those of W J, and P = sum_i gain_i v_i u_i^T W.

        Raises:
            PoseError: If the pose is not valid.
        """
        error, J = self._look(T)
        if self._plugin is not None:
            return self._plugin_inverse(self._plugin, J, error)
        method, params = self._method, self.details.params
        strength, W = self._strength(error, J), np.eye(self.rows)
        if params.policy == damping_policies.POLICY_ACCURACY:
            weight = accuracy_weight(params, singular_values(J), self.robot.n)
            weight_columns(J, self.details.direction, weight)
            W += (weight - 1.0) * np.outer(self.details.direction, self.details.direction)
        Ut, s, Vt = np.empty(W.shape), np.empty(self.rows), np.empty(J.shape)
        linalg.svd(J, Ut, s, Vt)
        gain = np.empty(self.rows)
        damping.gains(method, params, s, min(J.shape), strength, gain)
        return Inverse(Vt.T @ (gain[:, None] * Ut) @ W, s, gain)

    def _plugin_inverse(self, plugin: Plugin, J: Array, error: Array) -> Inverse:
        """Return the inverse of a plug-in, which is determined from several of its steps.

        For each left singular vector of J, the step is computed for an error in this direction. Its
        norm is that of `error`, because the step of a plug-in need not be linear in the error.
        """
        U, s, Vt = np.linalg.svd(J, full_matrices=False)
        length = max(float(np.linalg.norm(error)), 1e-12)
        count, memory = self._own_steps, self._own_memory.copy()
        found = []
        for u in U.T:
            self._own_steps, self._own_memory = count, memory.copy()
            found.append(self._plugin_step(plugin, J, length * u) / length)
        self._own_steps, self._own_memory = count, memory
        steps = np.array(found).T  # (n, r)
        gain = np.abs(np.einsum("ij,ji->i", Vt, steps))
        return Inverse(steps @ U.T, s, gain)

    def _strength(self, error: Array, J: Array) -> float:
        """Return the damping that the damping law computes for a scaled error and Jacobian.

        For the Jacobian transpose, return the step length. The memory of previous steps does not
        change.
        """
        method, params = self._method, self.details.params
        memory = Memory._make(array.copy() for array in self._memory)
        if method.damping == damping.JT:
            return float(damping.jt_step_length(J, np.zeros(self.robot.n), error))
        if params.policy != damping_policies.POLICY_OPTIMAL:
            return float(law_damping(method, params, J, error, memory))
        Ut, s = np.empty((self.rows, self.rows)), np.empty(self.rows)
        linalg.svd(J, Ut, s, np.empty(J.shape))
        return float(search_plain(params, s, Ut @ error, memory.lambda2[0])[0])

    @property
    def lambda2(self) -> float:
        """Squared damping factor lambda^2 of the last step."""
        return float(self._memory.lambda2[0])

    @property
    def searches(self) -> int:
        """Number of iterations of the search for the damping factor in the last step.

        Only the policy `optimal` searches; with other methods the number is 0.
        """
        return int(self._memory.steps[1])

    def _look(self, T: PoseLike | None) -> tuple[Array, Array]:
        """Return the scaled error (r,) and Jacobian (r, n) at q for a pose in any form."""
        return self._error_and_jacobian(self._target(T))

    def _error_and_jacobian(self, target: Array) -> tuple[Array, Array]:
        """Return the scaled error (r,) and Jacobian (r, n) at q for a target (k, 4, 4)."""
        e, J = np.empty(self.rows), np.empty((self.rows, self.robot.n))
        structs = self.robot.chain, self.details, self._memory
        error_and_jacobian(*structs, target, self.q, e, J)
        return e, J

    def _target(self, T: PoseLike | None) -> Array:
        """Return a pose in any form as an array (k, 4, 4); None is the current pose of the tips."""
        k = len(self.robot.tips)
        return checked_poses(self.robot.fk(self.q) if T is None else T, k, self._position_only)

    def _targets(self, Ts: PoseLike) -> Array:
        """Return targets (t, k, 4, 4) from any form that :meth:`run` accepts.

        Raises:
            PoseError: If a pose is not valid, or the array has another shape.
        """
        k, free = len(self.robot.tips), self._position_only
        try:
            given = real_array(Ts)
        except (TypeError, ValueError, OverflowError):
            given = np.empty(0)
        if given.shape[-2:] != (4, 4):
            try:
                return checked_poses(Ts, k, free)[None]
            except PoseError as error:
                try:
                    rows = batch_poses(Ts, k, free)
                except PoseError:
                    message = f"targets must be poses, one per tip and step: {error}"
                    raise PoseError(message) from None
                return np.array([checked_poses(T, k) for T in rows])
        if given.shape[-2:] == (4, 4) and given.ndim in (2, 3, 4):
            if not given.size:
                raise PoseError(f"there are no targets; got an array of shape {given.shape}")
            per_tip = given.reshape(-1, k, 4, 4) if given.size % (16 * k) == 0 else None
            if per_tip is not None and given.ndim <= (3 if k == 1 else 4):
                return np.array([checked_poses(T, k) for T in per_tip])
        raise PoseError(
            f"targets must be poses (4, 4), one per tip and step; got shape {given.shape}"
        )


def paced_stepper(
    robot: RobotModel,
    method: str,
    q: JointValues,
    dt: float,
    task: Tasks = None,
    options: Mapping[str, Any] | None = None,
) -> Stepper:
    """Return a stepper for steps of a fixed duration.

    With the policy `optimal`, the default of the step bound `Delta` is the distance that the
    slowest joint moves in this duration at its velocity limit, as in the servo controller.

    Args:
        robot: Robot model.
        method: Name of a method.
        q: (n,) start [rad or m].
        dt: Duration of a step [s].
        task: As for :class:`Stepper`.
        options: Solver options by name.
    """
    given: dict[str, Any] = dict(options or {})
    policy = dict(parse_method(method).defaults).get("policy", given.get("policy"))
    slowest = float(robot.velocity.min())
    if policy == "optimal" and np.isfinite(slowest):
        given.setdefault("Delta", slowest * dt)
    return Stepper(robot, method, q, task=task, **given)


def _finite_array(values: Any, shape: tuple[int, ...], name: str) -> Array:
    """Validate an array of numbers, and return a copy.

    Args:
        values: Values given.
        shape: Required shape.
        name: Name of the argument, with which the message starts.

    Raises:
        OptionError: If the shape differs, or a number is not finite or larger than
            `MAX_POSE_COORDINATE`.
    """
    try:
        given = real_array(values).copy()
    except (TypeError, ValueError, OverflowError):
        given = np.array(np.nan)
    if given.shape != shape or not (np.abs(given) <= MAX_POSE_COORDINATE).all():
        valid = f"finite numbers of shape {shape}, at most {MAX_POSE_COORDINATE:g}"
        raise OptionError(f"{name} must be {valid}; got {quoted(values)}")
    return given
