# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Motion of the lower levels of a task stack, added to single steps of the first level."""

from __future__ import annotations

import numpy as np

from dls_ik import compat
from dls_ik.core.boxes import boxed
from dls_ik.core.stack_motion import StackLimits, StackState, add_levels
from dls_ik.core.types import Array
from dls_ik.errors import OptionError
from dls_ik.model.robot import RobotModel
from dls_ik.solver.options import SolverOptions
from dls_ik.solver.stack_labels import level_label
from dls_ik.solver.stack_problem import build_stack
from dls_ik.solver.task import Task
from dls_ik.solver.task_stack import TaskStack

LEVEL_RATE = 5.0  # [1/s] rate of the exponential decrease of the error of a lower level
UNLIMITED_ACCELERATION = 1e6  # [rad/s^2 or m/s^2] stands for no limit


def check_first_level(stack: TaskStack) -> None:
    """Check that a stack can follow targets.

    Raises:
        OptionError: If its first level is not the task of the tips alone.
    """
    if not all(isinstance(task, Task) for task in stack.levels[0]):
        raise OptionError(
            "the first level of a stack that follows targets must be the task of the tip alone; "
            f"got {level_label(stack.levels[0])}"
        )


class LevelSteps:
    """Adds the motion of the lower levels to the steps of the first level.

    The lower levels move within the null space of the first level, so that they do not disturb the
    task of the tips. Errors of the lower levels decrease exponentially.

    Args:
        robot: Chain to move; its joint limits apply to the motion of the lower levels.
        stack: The tasks; the first level must be the task of the tips.
        options: Options with the weight and the kind of rotation errors, and the length unit.
        velocity: (n,) velocity limits of the whole motion [rad/s or m/s]; None: no limits.
        acceleration: (n,) acceleration limits of the motion of the lower levels [rad/s^2 or m/s^2];
            None: no limits.

    Attributes:
        problem: Arrays of the stack.
        errors: (l,) norm of the scaled error of each level; NaN before the first step.

    Raises:
        OptionError, ChainError: If a task does not fit the robot, or the first level of the stack
            is not the task of the tips alone.
    """

    def __init__(
        self,
        robot: RobotModel,
        stack: TaskStack,
        options: SolverOptions,
        velocity: Array | None = None,
        acceleration: Array | None = None,
    ) -> None:
        check_first_level(stack)
        self.problem = build_stack(robot, stack, options)
        unlimited = np.full(robot.n, np.inf)
        share = np.minimum(
            unlimited if acceleration is None else acceleration, UNLIMITED_ACCELERATION
        )
        fastest = unlimited if velocity is None else velocity
        limits = StackLimits(robot.lower, robot.upper, fastest, share, LEVEL_RATE)
        self.errors: Array = np.full(len(self.problem.params.ends), np.nan)
        self._state = StackState(np.zeros(robot.n), self.errors)
        self._boxes = boxed(self.problem.params), boxed(limits), boxed(self._state)
        self._add_levels = compat.EntryPoint(add_levels)
        self._no_rows = np.empty((0, robot.n)), np.empty(0)

    @property
    def residuals(self) -> tuple[float, ...]:
        """Norm of the scaled error of each level after the last step; NaN before the first."""
        return tuple(self.errors.tolist())

    def restart(self) -> None:
        """Set the added velocity to zero."""
        self._state.velocity.fill(0.0)

    def add_motion(
        self,
        before: Array,
        q: Array,
        T_d: Array,
        dt: float,
        rows: tuple[Array, Array] | None = None,
    ) -> None:
        """Add the motion of one cycle to a step of the first level.

        Args:
            before: (n,) joint positions before the step [rad or m].
            q: (n,) joint positions after the step, changed [rad or m].
            T_d: (k, 4, 4) desired poses of the tips.
            dt: Duration of the cycle [s].
            rows: Distance constraints of :func:`dls_ik.core.stack_motion.add_levels`; None: none.
        """
        poses = self.problem.poses(T_d)
        self._add_levels(*self._boxes, poses, before, q, dt, rows or self._no_rows)
