# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Redundancy settings of the arms on the page: levels below the tip's task, frozen joints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from dls_ik.errors import OptionError
from dls_ik.model.robot import RobotModel
from dls_ik.solver.level_steps import check_first_level
from dls_ik.solver.options import SolverOptions
from dls_ik.solver.stack_problem import build_stack, elbow_points
from dls_ik.solver.task import Task, Tasks
from dls_ik.solver.task_stack import (
    OBJECTIVES,
    ObjectiveTask,
    PostureTask,
    StackTask,
    SwivelTask,
    TaskStack,
    split_stack,
)

SWIVEL_NAME, POSTURE_NAME = "swivel angle", "posture"

Level = tuple[StackTask, ...]


class Redundancy(NamedTuple):
    """Levels below the task of the tips, with postures by joint name, and frozen joints."""

    levels: tuple[Level, ...] = ()  # the most important first
    frozen: tuple[str, ...] = ()  # names of joints

    def with_tips(self, tips: Tasks) -> Tasks | TaskStack:
        """Return the task of an arm: the tasks of the tips, above the levels if there are any."""
        if not self.levels:
            return tips
        first: Any = Task() if tips is None else tips
        return TaskStack(first if isinstance(first, Task) else [*first], *map(list, self.levels))

    @classmethod
    def of(cls, task: Tasks | TaskStack, robot: RobotModel) -> tuple[Tasks, Redundancy]:
        """Return the tasks of the tips and the levels below them, with postures by joint name.

        Args:
            task: Task of the tips, or a stack.
            robot: Robot of the task.

        Raises:
            OptionError, ChainError: If the first level of a stack is not the task of the tips
                alone, or a task does not fit the robot.
        """
        stack, tips = split_stack(task)
        if stack is None:
            return tips, cls()
        check_first_level(stack)
        build_stack(robot, stack, SolverOptions())  # raises an error if a task does not fit
        whole = cls(stack.levels[1:])
        return tips, whole.with_posture({}, robot.joint_names)

    def has_form_of(self, other: Redundancy) -> bool:
        """Return whether at most the swivel angle and the positions of postures differ."""
        mine = tuple(tuple(map(_without_target, level)) for level in self.levels)
        its = tuple(tuple(map(_without_target, level)) for level in other.levels)
        return mine == its and self.frozen == other.frozen

    @property
    def swivel(self) -> float | None:
        """Desired swivel angle [rad]; None without one."""
        angles = (t.angle for t in self._tasks() if isinstance(t, SwivelTask))
        return next(angles, None)

    def posture(self, joint_names: Sequence[str]) -> dict[str, float]:
        """Return the desired positions [rad or m] of the joints that have one, by name."""
        found: dict[str, float] = {}
        for task in self._tasks():
            if isinstance(task, PostureTask):
                found |= _positions(task, joint_names)
        return found

    def with_swivel(self, angle: float) -> Redundancy:
        """Return a copy with another swivel angle [rad]."""
        return self._changed(
            lambda task: replace(task, angle=angle) if isinstance(task, SwivelTask) else task
        )

    def with_posture(self, values: Mapping[str, float], joint_names: Sequence[str]) -> Redundancy:
        """Return a copy in which joints of postures have other desired positions.

        Args:
            values: Desired positions by joint name [rad or m].
            joint_names: Names of all joints, in the order of the robot.
        """

        def changed(task: StackTask) -> StackTask:
            if not isinstance(task, PostureTask):
                return task
            before = _positions(task, joint_names)
            given = {name: values.get(name, value) for name, value in before.items()}
            return PostureTask(given, _weights(task))

        return self._changed(changed)

    def moved(self, index: int, by: int) -> Redundancy:
        """Return a copy in which a level is exchanged with the level `by` places below."""
        levels, to = list(self.levels), index + by
        if not (0 <= index < len(levels) and 0 <= to < len(levels)):
            return self
        levels[index], levels[to] = levels[to], levels[index]
        return self._replace(levels=tuple(levels))

    def without_level(self, index: int) -> Redundancy:
        """Return a copy without a level."""
        return self._replace(levels=self.levels[:index] + self.levels[index + 1 :])

    def with_level(self, task: StackTask) -> Redundancy:
        """Return a copy with a task as the last level.

        Raises:
            OptionError: If there is a level of a kind that is possible only once.
        """
        single = isinstance(task, SwivelTask) and self.swivel is not None
        if single or (task,) in self.levels:
            raise OptionError("this level exists already; change it, or remove it first")
        return self._replace(levels=(*self.levels, (task,)))

    def with_frozen(self, name: str, is_frozen: bool) -> Redundancy:
        """Return a copy in which a joint is frozen or free."""
        others = tuple(each for each in self.frozen if each != name)
        return self._replace(frozen=(*others, name) if is_frozen else others)

    def _tasks(self) -> list[StackTask]:
        return [task for level in self.levels for task in level]

    def _changed(self, change: Any) -> Redundancy:
        return self._replace(levels=tuple(tuple(map(change, level)) for level in self.levels))


def _positions(task: PostureTask, joint_names: Sequence[str]) -> dict[str, float]:
    """Return the positions of a posture by joint name [rad or m]."""
    given: Any = task.positions
    is_named = bool(given) and isinstance(given[0], tuple)
    return dict(given if is_named else zip(joint_names, given, strict=False))


def _weights(task: PostureTask) -> Any:
    given: Any = task.weights
    return dict(given) if isinstance(given, tuple) else given


def _without_target(task: StackTask) -> StackTask:
    """Return a copy with zero as the target that can change without restarting the motion."""
    if isinstance(task, SwivelTask):
        return replace(task, angle=0.0)
    if isinstance(task, PostureTask):
        return PostureTask(dict.fromkeys(_positions(task, ()), 0.0), _weights(task))
    return task


def has_swivel(robot: RobotModel) -> bool:
    """Return whether a robot has a swivel angle: one tip and seven revolute joints."""
    try:
        return bool(elbow_points(robot))
    except OptionError:
        return False


def level_names(robot: RobotModel) -> tuple[str, ...]:
    """Return the names of the levels that a person can add for a robot."""
    return (*([SWIVEL_NAME] if has_swivel(robot) else []), POSTURE_NAME, *OBJECTIVES)


def new_level(name: str, posture: Mapping[str, float]) -> StackTask:
    """Return the task of a level that a person adds.

    Args:
        name: One of :func:`level_names`.
        posture: Positions for a posture, by joint name [rad or m].
    """
    if name == SWIVEL_NAME:
        return SwivelTask(0.0)
    return PostureTask(posture) if name == POSTURE_NAME else ObjectiveTask(name)
