# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Comparison of methods by single steps, toward one target and along a path of targets.

Along a path, each step takes a fixed time. The method alone makes the steps: there are no
controller limits, no restarts and no fallback method.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.errors import OptionError
from dls_ik.model.robot import RobotModel
from dls_ik.solver.hard_paths import PosePath
from dls_ik.solver.level_steps import LevelSteps
from dls_ik.solver.method import parse_method
from dls_ik.solver.stepper import Stepper, paced_stepper
from dls_ik.solver.task import Task
from dls_ik.solver.task_stack import TaskStack, split_stack

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from dls_ik.solver.options import SolverKeywords

MAX_COMPARED_STEPS = 250  # default maximum number of steps toward one target
MIN_SINGULAR_VALUE = 1e-9  # smaller singular values count as zero, such as those of a planar arm


class MethodRun(NamedTuple):
    """Configurations and figures of one method that makes s steps from a start configuration."""

    q: Array  # (s + 1, n) [rad or m]
    error: Array  # (s + 1,) norm of the scaled task error before each step and after the last [m]
    position_error: Array  # (s + 1,) distance from the target, at the start and after each step [m]
    step: Array  # (s,) largest joint change [rad or m]
    condition: Array  # (s + 1,) condition number of the scaled task Jacobian at q
    margin: Array  # (s + 1,) smallest distance of a joint from a limit [rad or m], inf if unlimited
    # Norm (s + 1, l) of the scaled error of each level of a stack; NaN at the start and for
    # objectives, (s + 1, 0) without a stack
    level_errors: Array


class Peaks(NamedTuple):
    """Summary of one method: number of steps to a target, and extreme values along a path.

    Speed and errors along a path are those of its second lap (`PosePath.first_counted`), which does
    not begin at the start configuration; condition and margin are those of the whole path.
    """

    iterations: int | None  # steps to the target; None if it is not reached
    largest_step: float  # largest joint change in a step toward the target [rad or m]
    fastest_joint: float  # largest joint velocity along the path [rad/s or m/s]
    largest_error: float  # largest position error along the path [m]
    rms_error: float  # root mean square of the position error along the path [m]
    condition: float  # largest condition number along the path
    margin: float  # smallest distance from a limit along the path [rad or m], negative if exceeded
    # Root mean square along the path of the error of each level of a stack; () without a stack
    levels: tuple[float, ...] = ()


class PathComparison(NamedTuple):
    """Runs of several methods, each toward a target and along a path.

    The target is the pose of the path that is farthest from the first pose.
    """

    robot: RobotModel
    path: PosePath
    task: Task | None
    tolerance: float  # scaled error at which the target counts as reached [m]
    at_target: dict[str, MethodRun]  # runs by method, cut after the step that reached the target
    along: dict[str, MethodRun]  # runs along the path, by method

    def peaks(self) -> dict[str, Peaks]:
        """Return the summary of each method, by method name."""
        return {name: self._peaks(name) for name in self.along}

    def _peaks(self, name: str) -> Peaks:
        """Return the summary of the method with a name."""
        first, run = self.at_target[name], self.along[name]
        is_there = first.error[-1] <= self.tolerance
        first_counted = self.path.first_counted
        errors = run.position_error[1 + first_counted :]
        return Peaks(
            len(first.step) if is_there else None,
            float(first.step.max()),
            float(run.step[first_counted:].max()) / self.path.dt,
            float(errors.max()),
            float(np.sqrt(np.mean(errors**2))),
            float(run.condition.max()),
            float(run.margin.min()),
            tuple(np.sqrt(np.mean(run.level_errors[1 + first_counted :] ** 2, axis=0)).tolist()),
        )


def compare_on_path(
    robot: RobotModel,
    methods: Sequence[str],
    path: PosePath,
    task: Task | TaskStack | None = None,
    steps: int = MAX_COMPARED_STEPS,
    **options: Unpack[SolverKeywords],
) -> PathComparison:
    """Run each method twice from the start of a path: to the farthest pose, and along the path.

    The farthest pose is the pose of the path with the largest distance from the first pose. Along
    the path, each method makes one step per pose.

    Args:
        robot: Robot model.
        methods: Names from :func:`dls_ik.method_names`, or combinations of parts. KDL methods are
            not supported, because KDL offers no single steps.
        path: Targets and start; see :func:`dls_ik.solver.hard_paths.singular_path`.
        task: Part of the pose that must be reached; None stands for the full pose. The first level
            of a :class:`dls_ik.TaskStack` must be the task of the tip; each method makes steps for
            this level. The motion of the lower levels in its null space is added, within the
            position limits and the velocity that the steps leave unused.
        steps: Maximum number of steps toward the farthest pose.
        options: Options of :class:`dls_ik.IkSolver` for all methods. The default of `Delta` is the
            distance that the slowest joint moves in a time step at its velocity limit.

    Raises:
        MethodError: If a method is unknown or does not support the robot.
        OptionError: If no method is given, the path has fewer than two poses, or an option is not
            valid.
    """
    if not methods:
        raise OptionError("methods is empty; give at least one method to compare")
    if len(path.Ts) < 2:
        raise OptionError(f"a path must have at least 2 poses; got {len(path.Ts)}")
    away = np.linalg.norm(path.Ts[:, :3, 3] - path.Ts[0, :3, 3], axis=1)
    turned = 3.0 - np.einsum("tij,ij->t", path.Ts[:, :3, :3], path.Ts[0, :3, :3])
    far = path.Ts[int(np.argmax(away if away.max() > 1e-9 else turned))]
    at_target, along, tolerance = {}, {}, 0.0
    stack, of_tip = split_stack(task)
    if not isinstance(of_tip, Task | None):
        raise OptionError(
            "methods are compared on a robot with one tip; give one Task, not one for each tip; "
            f"got {of_tip!r}"
        )
    for name in dict.fromkeys(parse_method(method).name for method in methods):
        stepper = paced_stepper(robot, name, path.start, path.dt, of_tip, options)
        tolerance = max(tolerance, stepper.options.position_tolerance)
        levels = None
        if stack is not None:
            levels = LevelSteps(robot, stack, stepper.options, robot.velocity)
        walk = _MethodWalk(stepper, levels, path.dt)
        to_target = walk.run(np.repeat(far[None], steps, axis=0))
        at_target[name] = _cut_at_target(to_target, tolerance)
        stepper.reset(path.start)
        along[name] = walk.run(path.Ts)
    return PathComparison(robot, path, of_tip, tolerance, at_target, along)


class _MethodWalk(NamedTuple):
    """A method that makes steps, and the lower levels that move with it."""

    stepper: Stepper
    levels: LevelSteps | None
    dt: float  # [s] duration of a step

    def run(self, Ts: Array) -> MethodRun:
        """Make one step toward each of the targets Ts (s, 4, 4), and return the run."""
        if self.levels is None:
            trace = self.stepper.run(Ts, len(Ts))
            return _measured(self.stepper, Ts, trace.q, trace.error, np.zeros((len(Ts) + 1, 0)))
        stepper, levels = self.stepper, self.levels
        levels.restart()
        q, errors = [stepper.q.copy()], [np.full(len(levels.residuals), np.nan)]
        for T in Ts:
            stepper.step(T)
            moved = stepper.q.copy()
            levels.add_motion(q[-1], moved, T[None], self.dt)
            stepper.q = moved
            q.append(moved.copy())
            errors.append(np.array(levels.residuals))
        goals = np.concatenate([Ts, Ts[-1:]])  # target of the step after each q
        e = []
        for stepper.q, T in zip(q, goals, strict=True):
            e.append(stepper.error(T))
        return _measured(stepper, Ts, np.array(q), np.array(e), np.array(errors))


def _measured(stepper: Stepper, Ts: Array, q: Array, e: Array, levels: Array) -> MethodRun:
    """Return a run with its figures.

    Args:
        stepper: Method that made the steps.
        Ts: (s, 4, 4) targets.
        q: (s + 1, n) configurations [rad or m].
        e: (s + 1, r) scaled errors of the task.
        levels: (s + 1, l) errors of the levels.
    """
    robot, goals = stepper.robot, np.concatenate([Ts[:1], Ts])  # goals: target at each q
    position = np.linalg.norm(robot.fk(q)[:, :3, 3] - goals[:, :3, 3], axis=1)
    s = np.linalg.svd(_jacobians(stepper, q, goals), compute_uv=False)
    rank = max(1, int((s.max(axis=0) > MIN_SINGULAR_VALUE).sum()))
    condition = s[:, 0] / np.maximum(s[:, rank - 1], np.finfo(float).tiny)
    step = np.abs(np.diff(q, axis=0)).max(axis=1)
    margin = np.minimum(q - robot.lower, robot.upper - q).min(axis=1)
    error = np.linalg.norm(e, axis=1)
    return MethodRun(q, error, position, step, condition, margin, levels)


def _jacobians(stepper: Stepper, q: Array, Ts: Array) -> Array:
    """Return the scaled task Jacobians (b, r, n) at q (b, n) for targets Ts (b, 4, 4)."""
    rows, J = stepper.details.task, stepper.robot.jacobian(q)
    turns = np.count_nonzero(rows.component >= 3)
    if rows.exact_derivative[0] or turns == 1:  # rows differ from those of the geometric Jacobian
        before, found = stepper.q, []
        for stepper.q, T in zip(q, Ts, strict=True):
            found.append(stepper.jacobian(T))
        stepper.q = before
        return np.array(found)
    if rows.in_target[0]:
        R = Ts[:, :3, :3].swapaxes(1, 2)
        J = np.concatenate([R @ J[:, :3], R @ J[:, 3:6]], axis=1)
    return np.asarray(rows.weight[:, None] * J[:, rows.component])


def _cut_at_target(run: MethodRun, tolerance: float) -> MethodRun:
    """Return the run without the steps after the one that reaches the target.

    The target is reached when the norm of the scaled error is at most `tolerance` [m].
    """
    there = np.flatnonzero(run.error <= tolerance)
    last = max(1, int(there[0])) if len(there) else len(run.step)
    return MethodRun(
        *(each[: last + (name != "step")] for name, each in zip(run._fields, run, strict=True))
    )
