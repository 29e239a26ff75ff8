# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Local motion by all levels of a task stack, for several tips and relative poses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dls_ik import compat
from dls_ik.core.boxes import boxed
from dls_ik.core.near_pairs import NearRows
from dls_ik.core.stack_follow import (
    LevelLimits,
    LevelState,
    errors_of_frames,
    follow_levels,
    poses_of_frames,
)
from dls_ik.core.stack_motion import StackLimits, StackState
from dls_ik.core.types import Array
from dls_ik.errors import MethodError
from dls_ik.model.robot import RobotModel
from dls_ik.servo.followed_frames import stack_frames
from dls_ik.servo.local_ik import ServoStep, joint_mobility
from dls_ik.servo.lower_levels import StackValues
from dls_ik.servo.near_constraints import near_constraints
from dls_ik.solver.level_steps import LEVEL_RATE
from dls_ik.solver.method import parse_method
from dls_ik.solver.options import solver_options
from dls_ik.solver.stack_problem import build_stack
from dls_ik.solver.task import checked_tasks
from dls_ik.solver.task_stack import FrameTask, TaskStack

METHOD = "levels"  # name of the motion by levels of least squares
# Share of the acceleration limits that steps use. The limiter needs the rest to catch up.
STEP_ACCELERATION_SHARE = 0.7
NO_LIMIT = 1e6  # [rad/s^2] replaces infinite acceleration limits
MAX_JUMP = 1e-2  # [rad or m] larger changes by `continue_from` restart the motion


def moves_by_levels(robot: RobotModel, stack: TaskStack | None) -> bool:
    """Return whether all levels of a stack follow targets, not only its first level.

    The result is true for stacks of robots with several tips, and for stacks whose first level is
    not the task of the tip.
    """
    return stack is not None and (len(robot.tips) > 1 or stack.tip_level > 0)


class LevelIk:
    """Moves joint positions toward the targets of all levels of a stack, one step per cycle.

    It replaces :class:`.LocalIk`, whose IK method solves a single level. Every level is solved in
    the least-squares sense among the solutions of the levels above. The step keeps the velocity and
    acceleration limits, so that a command without jerk limits follows it exactly.

    Args:
        robot: Robot with k tips.
        stack: The tasks. Each :class:`dls_ik.FrameTask` of a tip, without a point, follows a target
            of its own.
        scale: Share of the velocity limits that steps may use, above 0.
        frozen_joints: Names of joints that do not move.
        acceleration: (n,) acceleration limits [rad/s^2 or m/s^2].
        method: Must be None: the levels are solved by least squares.
        options: Options as for :class:`dls_ik.IkSolver`; those of methods have no effect.

    Attributes:
        frames: Frames that follow targets, the tips first.
        near: Distance constraints of the next steps; None without a scene.
        limiting_pair: Always -1.

    Raises:
        MethodError: If a method is given.
        OptionError: If an option is unknown or out of range, or a task does not fit the robot.
        ChainError: If the robot does not move the link of a task.
    """

    lower_levels: StackValues

    def __init__(
        self,
        robot: RobotModel,
        stack: TaskStack,
        *,
        scale: float = 1.0,
        frozen_joints: Sequence[str] = (),
        acceleration: Array,
        method: str | None = None,
        **options: Any,
    ) -> None:
        if method is not None:
            raise MethodError(
                f"the levels of a stack with several tips, or with levels above the tip, are "
                f"solved by least squares; got method {method!r}, which solves one level: leave "
                "the method out, or give a Task for each tip instead of a stack"
            )
        self.robot, self.method = robot, METHOD
        self.options = solver_options(parse_method("svf"), options, robot.joint_names)
        self._problem = build_stack(robot, stack, self.options)
        given = [
            task.task
            for level in stack.levels
            for task in level
            if isinstance(task, FrameTask) and task.point is None
        ]
        tasks = checked_tasks(robot, stack.tip_tasks)
        self.frames, numbers = stack_frames(robot, tasks, self._problem, given)
        self._numbers, self._of_frame = (np.array(each) for each in zip(*numbers, strict=True))
        # Index of the frame of the stack that gives the error of each followed frame: the last one,
        # because a task of a free tip in another level replaces its first task.
        places = {frame: number for number, frame in numbers}
        self._places = np.array([places[k] for k in range(len(self.frames))])
        self._counted = np.array([[f.has_position, f.has_rotation] for f in self.frames])
        self._criteria = self.options.goal()
        self.lower_levels = StackValues(robot, self._problem)
        mobility = joint_mobility(robot, self.options.joint_weights, frozen_joints)
        velocity = np.where(mobility > 0.0, scale * robot.velocity, 0.0)
        share = np.minimum(STEP_ACCELERATION_SHARE * acceleration, NO_LIMIT)
        # A tiny rate means that no velocity limit follows from the acceleration limit.
        motion = StackLimits(robot.lower, robot.upper, velocity, share, 1e-9)
        params, n = self._problem.params, robot.n
        self._state = LevelState(
            StackState(np.zeros(n), self.lower_levels.errors),
            np.zeros(len(params.kind)),
            np.zeros(1),
            np.zeros((len(self._problem.targets), 2)),
            np.zeros(n),
        )
        limits = LevelLimits(motion, mobility, LEVEL_RATE)
        self._boxes = boxed(params), boxed(limits), boxed(self._state)
        self._arm, self._reference = boxed(params.frames), params.reference
        self._follow = compat.EntryPoint(follow_levels)
        self._errors, self._poses = (
            compat.EntryPoint(errors_of_frames),
            compat.EntryPoint(poses_of_frames),
        )
        self._targets = self._problem.targets.copy()
        self._no_rows = np.empty((0, n)), np.empty(0)
        self._q = robot.clip(np.zeros(n))
        self.near: NearRows | None = None
        self.limiting_pair = -1
        self.restart(self._q)

    def __repr__(self) -> str:
        """Return the name of the robot, and the frames that follow targets."""
        return f"LevelIk({self.robot.name}, {', '.join(frame.name for frame in self.frames)})"

    @property
    def q(self) -> Array:
        """Joint positions after the last step (n,) [rad or m]; a copy."""
        return self._q.copy()

    @property
    def singularity_note(self) -> str:
        """Text about how the motion near a singularity is limited."""
        return "motion along the lost direction is damped"

    def is_reached(self, position_error: float, rotation_error: float) -> bool:
        """Return whether both errors are within the tolerances for a reached target."""
        return (
            position_error <= self._criteria.position_tolerance
            and rotation_error <= self._criteria.rotation_tolerance
        )

    def frame_errors(self, q: Array, T_d: Array) -> Array:
        """Return the position and rotation error of each frame (s, 2) [m, rad] at q (n,).

        Args:
            q: (n,) joint positions [rad or m].
            T_d: (s, 4, 4) targets of the frames.
        """
        errors: Array = self._errors(self._arm, self._reference, self._desired(T_d), q)
        return np.asarray(errors[self._places] * self._counted)

    def errors_at(self, q: Array, T_d: Array) -> tuple[float, float]:
        """Return the largest position error and the largest rotation error of all frames."""
        position, rotation = self.frame_errors(q, T_d).max(axis=0).tolist()
        return position, rotation

    def pose_at(self, q: Array) -> Array:
        """Return the poses (s, 4, 4) of all frames, each in the frame of its targets."""
        poses: Array = self._poses(self._arm, self._reference, q)
        return np.asarray(poses[self._places])

    def restart(self, q: Array) -> None:
        """Start a new motion at joint positions (n,) [rad or m], at rest."""
        self._q[:] = q
        self._state.motion.velocity.fill(0.0)
        self._state.known[0] = 0.0

    def continue_from(self, q: Array) -> None:
        """Set the joint positions q (n,) at which the next step starts; a jump is a new start."""
        if np.abs(q - self._q).max() > MAX_JUMP:
            self.restart(q)
        else:
            self._q[:] = q

    def stay(self) -> ServoStep:
        """Return the result of a cycle without a step: unchanged joint positions, NaN errors."""
        nan = math.nan
        return ServoStep(self.q, nan, nan, nan, nan, np.zeros(self.robot.n))

    def advance(self, T_d: Array, dt: float) -> ServoStep:
        """Take a step of `dt` [s] toward the targets (s, 4, 4) of all frames."""
        q, near = self._q, self._no_rows
        if self.near is not None:
            step = self._state.motion.velocity * dt
            near = near_constraints(self.near, q, step, dt)[:2]
        self._follow(*self._boxes, self._desired(T_d), q, dt, near)
        errors = self._state.frame_errors[self._places] * self._counted
        position, rotation = errors.max(axis=0).tolist()
        nan = math.nan
        return ServoStep(q.copy(), position, rotation, nan, nan, self._state.held.copy())

    def _desired(self, T_d: Array) -> Array:
        """Return the desired poses of all frames of the stack for the targets (s, 4, 4)."""
        self._targets[self._numbers] = T_d[self._of_frame]
        return self._targets
