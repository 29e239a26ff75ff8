# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Command-line options for the redundancy: task stack, swivel, posture, frozen joints, weights."""

from __future__ import annotations

from collections.abc import Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import numpy as np

from dls_ik.cli.options import (
    TASK_CHOICES,
    Command,
    joint_values,
    named_values,
    parse_numbers,
    parse_task,
)
from dls_ik.core.types import Array
from dls_ik.text import did_you_mean, listing, quoted

if TYPE_CHECKING:
    from dls_ik.model.robot import RobotModel
    from dls_ik.solver.task import Task
    from dls_ik.solver.task_stack import TaskStack

FULL_POSE = TASK_CHOICES[0]


class ChosenRedundancy(NamedTuple):
    """Options of the redundancy as given on the command line."""

    stack: str | None = None  # path of a YAML file
    swivel: float | None = None  # angle in [rad], in [deg] with --deg
    posture: tuple[str, ...] = ()
    frozen: tuple[str, ...] = ()
    weights: tuple[str, ...] = ()

    @property
    def stack_option(self) -> str:
        """Name of the first given option that asks for a task stack; empty without one."""
        given = {"--stack": self.stack, "--swivel": self.swivel, "--posture": self.posture or None}
        return next((name for name, value in given.items() if value is not None), "")

    def read_stack(self, robot: RobotModel, task: str | None, deg: bool) -> TaskStack | None:
        """Return the task stack of --stack, --swivel and --posture; None without these options.

        The levels of the options are the task of the tip, the swivel angle and the posture, in this
        order.

        Args:
            robot: Robot that the tasks must fit.
            task: Value of --task; None if it is not given.
            deg: Whether angles are in degrees.

        Raises:
            click.UsageError: If --stack is combined with another of these options.
            OptionError, ChainError: If the file is not a stack, or a task does not fit the robot.
        """
        if not self.stack_option:
            return None
        from dls_ik.solver.options import SolverOptions
        from dls_ik.solver.stack_problem import build_stack

        if self.stack is None:
            stack = self._stack_of_options(robot, task, deg)
        else:
            from dls_ik.solver.stack_file import load_stack

            self._check_single(task)
            stack = load_stack(self.stack)
        build_stack(robot, stack, SolverOptions())  # raises an error if a task does not fit
        return stack

    def _check_single(self, task: str | None) -> None:
        """Check that --stack is not combined with an option that the file replaces.

        Raises:
            click.UsageError: If --stack is combined with --swivel, --posture or --task.
        """
        given = {
            "--swivel": (self.swivel is not None, "{kind: swivel, angle: ...}"),
            "--posture": (bool(self.posture), "{kind: posture, positions: ...}"),
            "--task": (task not in (None, FULL_POSE), "{kind: tip, ...}"),
        }
        for name, (is_given, level) in given.items():
            if is_given:
                raise click.UsageError(
                    f"--stack and {name} cannot be combined; add the level {level} to the file"
                )

    def _stack_of_options(self, robot: RobotModel, task: str | None, deg: bool) -> TaskStack:
        """Return the stack of --swivel and --posture below the task of the tip."""
        from dls_ik.solver.task import Task
        from dls_ik.solver.task_stack import PostureTask, StackTask, SwivelTask, TaskStack

        levels: list[StackTask] = [parse_task(task or FULL_POSE) or Task()]
        if self.swivel is not None:
            levels.append(SwivelTask(float(np.radians(self.swivel)) if deg else self.swivel))
        if self.posture:
            positions = named_values(robot, self.posture, "--posture", deg)
            weights = self.joint_weights(robot)
            own = {name: weights[name] for name in positions if name in weights}
            levels.append(PostureTask(positions, own or 1.0))
        return TaskStack(*levels)

    def joint_weights(self, robot: RobotModel) -> dict[str, float]:
        """Return the weights of --weights by joint name; joints without a weight are missing.

        Raises:
            click.UsageError: If a joint is unknown, or the count of weights is wrong.
        """
        names = robot.joint_names
        try:
            if any("=" in words for words in self.weights):
                found = joint_values(None, None, self.weights)
            else:
                numbers = parse_numbers(" ".join(self.weights))
                if self.weights and len(numbers) != robot.n:
                    raise click.BadParameter(
                        f"expected {robot.n} weights ({listing(names)}); got {len(numbers)}"
                    )
                found = dict(zip(names, numbers, strict=False))
        except click.BadParameter as error:
            raise click.UsageError(f"--weights: {error.message}") from error
        _check_joints("--weights", found, names)
        return found

    def with_weights(self, robot: RobotModel, settings: dict[str, Any]) -> dict[str, Any]:
        """Return solver options to which the joint weights of --weights are added.

        Raises:
            click.UsageError: If the weights are not valid, or the options have joint weights.
        """
        if not self.weights:
            return settings
        if "joint_weights" in settings:
            raise click.UsageError("--weights and --set joint_weights are the same; give one")
        return {**settings, "joint_weights": self.joint_weights(robot)}

    def frozen_positions(
        self, robot: RobotModel, start: Array | None, deg: bool
    ) -> dict[str, float]:
        """Return the positions of the joints of --frozen [rad or m].

        A joint without a position in --frozen is frozen at its position in the start configuration.
        Without a start configuration, the joint is frozen at 0 or at the limit closest to 0.

        Args:
            robot: Robot.
            start: (n,) start configuration [rad or m], or None.
            deg: Whether given positions of revolute joints are in degrees.

        Raises:
            click.UsageError: If a joint is unknown or given twice, its position is outside its
                limits, or no joint is left.
        """
        names = robot.joint_names
        still = robot.clip(np.zeros(robot.n)) if start is None else start
        found: dict[str, float] = {}
        for words in " ".join(self.frozen).replace(",", " ").split():
            name, equals, _ = words.partition("=")
            _check_joints("--frozen", (name,), names)
            if name in found:
                raise click.UsageError(f"--frozen: joint {quoted(name)} is given twice")
            j = names.index(name)
            value = float(still[j])
            if equals:
                value = named_values(robot, (words,), "--frozen", deg)[name]
            if not robot.lower[j] <= value <= robot.upper[j]:
                raise click.UsageError(
                    f"--frozen: {name} at {value:g} {robot.units[j]} is outside its limits, "
                    f"{robot.lower[j]:g} to {robot.upper[j]:g}"
                )
            found[name] = value
        if len(found) == robot.n:
            raise click.UsageError(f"--frozen: all {robot.n} joints are frozen; leave one free")
        return found

    def freeze(self, robot: RobotModel, start: Array | None, deg: bool) -> RobotModel:
        """Return the robot with the limits of each frozen joint narrowed to a single position.

        The arguments are those of :meth:`frozen_positions`.
        """
        positions = self.frozen_positions(robot, start, deg)
        near = {**dict.fromkeys(robot.joint_names, 0.0), **positions}
        return robot.narrowed(positions, positions, near) if positions else robot


def _check_joints(
    option: str, given: Sequence[str] | dict[str, float], names: Sequence[str]
) -> None:
    """Check that joints are joints of the chain.

    Raises:
        click.UsageError: If a joint is not a joint of the chain.
    """
    for name in given:
        if name not in names:
            hint = did_you_mean(name, names, "; {}")
            raise click.UsageError(
                f"{option}: unknown joint {quoted(name)}; joints: {listing(names)}{hint}"
            )


def redundancy_options(command: Command) -> Command:
    """Add --stack, --swivel, --posture, --frozen and --weights to a command.

    The command receives them as one argument `freedom` of type ChosenRedundancy.
    """

    @click.option(
        "--stack",
        metavar="FILE.yaml",
        help="Task stack: levels of tasks in order of priority; see docs/redundancy.md.",
    )
    @click.option(
        "--swivel",
        type=float,
        metavar="ANGLE",
        help="Swivel angle of the elbow of an arm with seven joints [rad].",
    )
    @click.option(
        "--posture",
        metavar="POSITIONS",
        multiple=True,
        help="Joint positions to stay close to, in the format of --seed.",
    )
    @click.option(
        "--frozen",
        metavar="JOINTS",
        multiple=True,
        help="Joints that do not move, separated by commas: j1 (at the seed) or j1=0.1.",
    )
    @click.option(
        "--weights",
        metavar="WEIGHTS",
        multiple=True,
        help="Weights of all joints, or by name (j1=4); a joint with a larger weight moves less.",
    )
    @wraps(command)
    def run(
        stack: str | None,
        swivel: float | None,
        posture: tuple[str, ...],
        frozen: tuple[str, ...],
        weights: tuple[str, ...],
        **rest: Any,
    ) -> Any:
        return command(freedom=ChosenRedundancy(stack, swivel, posture, frozen, weights), **rest)

    return run


def level_facts(stack: TaskStack, errors: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the tasks and the error, or errors, of each level as JSON objects."""
    from dls_ik.solver.stack_labels import level_label

    return [
        {"tasks": level_label(level), "error": error}
        for level, error in zip(stack.levels, errors, strict=True)
    ]


def tip_task(stack: TaskStack | None, task: Task | None) -> Task | None:
    """Return the task of the only tip: that of a stack, or `task` without a stack."""
    from dls_ik.solver.task import Task

    found = task if stack is None else stack.tip_tasks
    return found if isinstance(found, Task) else None
