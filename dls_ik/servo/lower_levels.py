# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Lower levels of a task stack in a stream: their targets, and their motion."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dls_ik.core.near_pairs import NearRows
from dls_ik.core.types import Array
from dls_ik.errors import OptionError
from dls_ik.model.joint import JointValues
from dls_ik.model.robot import RobotModel
from dls_ik.servo.near_constraints import near_constraints
from dls_ik.solver.level_steps import LevelSteps
from dls_ik.solver.options import SolverOptions
from dls_ik.solver.stack_problem import StackProblem
from dls_ik.solver.task_stack import SwivelTask, TaskStack
from dls_ik.text import listing, quoted

ACCELERATION_SHARE = 0.5  # share of the acceleration limits for the motion of the lower levels


class StackValues:
    """Values of a stack that change while the arm moves: targets of tasks, errors of levels.

    Args:
        robot: Chain to move.
        problem: Arrays of the stack.

    Attributes:
        errors: (l,) norm of the scaled error of each level; NaN before the first cycle.
    """

    def __init__(self, robot: RobotModel, problem: StackProblem) -> None:
        self._robot, self._problem = robot, problem
        self._given = problem.params.swivel.copy(), problem.params.value.copy()
        self.errors: Array = np.full(len(problem.params.ends), np.nan)

    @property
    def residuals(self) -> tuple[float, ...]:
        """Norm of the scaled error of each level after the last step; NaN before the first."""
        return tuple(self.errors.tolist())

    def take_over(self, other: StackValues) -> None:
        """Take the swivel angle and the posture that were set in `other` since it was created.

        Each is taken only if both stacks were created with the same value of it.
        """
        mine, its = self._problem.params, other._problem.params
        if np.array_equal(self._given[0], other._given[0]):
            mine.swivel[:] = its.swivel
        same = np.array_equal(self._given[1], other._given[1])
        if same and self._problem.posture == other._problem.posture:
            mine.value[:] = its.value

    def set_swivel(self, angle: float) -> None:
        """Change the desired swivel angle [rad].

        Raises:
            OptionError: If the angle is not finite, or the stack has no swivel angle.
        """
        if not self._problem.has_swivel:
            raise OptionError("the stack has no SwivelTask whose angle could be changed")
        self._problem.params.swivel[0] = SwivelTask(angle).angle

    def set_posture(self, positions: JointValues) -> None:
        """Change the desired posture.

        Args:
            positions: Joint positions (n,), or by name [rad or m]. Joints without a position keep
                their desired position; joints outside the posture of the stack are ignored if all
                n positions are given.

        Raises:
            OptionError: If the stack has no posture, or a joint is not part of it.
            JointValueError: If a position is not finite, or there are not n positions.
        """
        rows, names = self._problem.posture, self._robot.joint_names
        if not rows:
            raise OptionError("the stack has no PostureTask whose positions could be changed")
        if isinstance(positions, Mapping):
            unknown = [name for name in positions if name not in rows]
            if unknown:
                raise OptionError(
                    f"joint {quoted(unknown[0])} is not part of the posture; its joints are "
                    f"{listing(rows)}"
                )
            given = {**dict.fromkeys(names, 0.0), **positions}
            values = dict(zip(names, self._robot.validated_one(given).tolist(), strict=True))
            values = {name: values[name] for name in positions}
        else:
            q = self._robot.validated_one(positions).tolist()
            values = {name: value for name, value in zip(names, q, strict=True) if name in rows}
        for name, value in values.items():
            self._problem.params.value[rows[name]] = value


class LowerLevels(StackValues):
    """Adds the motion of the lower levels of a stream, whose targets can change.

    The lower levels move within the null space of the first level, so that the axes of the tip that
    count do not move. The motion starts and ends gently: its acceleration is limited, and errors
    decrease exponentially.

    Args:
        robot: Chain to move.
        stack: The tasks; the first level must be the task of the tips.
        options: Solver options; the weight and kind of rotation errors and the length unit are
            used.
        velocity: (n,) velocity limits of the whole motion; 0 for frozen joints [rad/s or m/s].
        acceleration: (n,) acceleration limits of the whole motion [rad/s^2 or m/s^2].

    Raises:
        OptionError, ChainError: If a task does not fit the robot, or the first level of the stack
            is not the task of the tips alone.
    """

    def __init__(
        self,
        robot: RobotModel,
        stack: TaskStack,
        options: SolverOptions,
        velocity: Array,
        acceleration: Array,
    ) -> None:
        self._steps = LevelSteps(robot, stack, options, velocity, ACCELERATION_SHARE * acceleration)
        super().__init__(robot, self._steps.problem)
        self.errors = self._steps.errors

    def restart(self) -> None:
        """Set the added velocity to zero."""
        self._steps.restart()

    def add(self, before: Array, q: Array, T_d: Array, dt: float, near: NearRows | None) -> None:
        """Add the motion of one cycle to a step of the first level.

        Args:
            before: (n,) joint positions before the step [rad or m].
            q: (n,) joint positions after the step, changed [rad or m].
            T_d: (k, 4, 4) desired poses of the tips.
            dt: Duration of the cycle [s].
            near: Distance constraints; None without a scene.
        """
        rows = None if near is None else near_constraints(near, before, q - before, dt)[:2]
        self._steps.add_motion(before, q, T_d, dt, rows)
