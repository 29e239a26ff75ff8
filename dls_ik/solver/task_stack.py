# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Task stacks: tasks of a redundant robot in levels of strict priority.

A stack is a list of levels, and a level a list of tasks. A lower level never changes what a level
above achieves. :class:`dls_ik.Task` is the task of the robot's tips; their target poses are given
in each call. The other tasks contain their targets.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from dls_ik.errors import OptionError
from dls_ik.model.pose import PoseLike
from dls_ik.solver.poses import checked_pose
from dls_ik.solver.task import AXES, WEIGHT_RANGE, Task, Tasks
from dls_ik.text import did_you_mean, listing, quoted

OBJECTIVES = ("manipulability", "limits", "centring")
MAX_LEVELS = 32


@dataclass(frozen=True)
class FrameTask:
    """Pose of any link of the robot, or of a point fixed to it.

    Attributes:
        link: Link whose pose counts, such as the elbow or a second hand.
        target: Desired pose (4, 4) [m] in the reference frame, in any form that
            :meth:`dls_ik.IkSolver.solve` accepts; for a task without rotation, a position (3,).
        task: Axes that count, with their tolerances and weights; default: the full pose. With a
            reference, the axes are those of the target instead of the base.
        reference: Link in whose frame the target is given, so that the task is the relative pose of
            two links; None: the base.
        point: Point (x, y, z) in the frame of `link` to use instead of its origin [m].
        weight: Factor of the error within its level.

    Raises:
        OptionError: If an argument has the wrong type, the point or the weight is not valid, or the
            reference is the link itself.
        PoseError: If the target is not a pose.
    """

    link: str
    target: PoseLike
    task: Task = field(default_factory=Task)
    reference: str | None = None
    point: Sequence[float] | None = None
    weight: float = 1.0

    def __post_init__(self) -> None:
        """Validate the arguments; the target becomes a tuple of rows, and can be hashed."""
        if not isinstance(self.link, str):
            raise OptionError(f"link of a FrameTask must be a name; got {quoted(self.link)}")
        if not isinstance(self.task, Task):
            raise OptionError(f"task of a FrameTask must be a Task; got {quoted(self.task)}")
        if self.reference == self.link:
            raise OptionError(
                f"the pose of {self.link!r} relative to itself is constant; give another link as "
                "reference, or None for the base"
            )
        T = checked_pose(self.target, not self.task.rotation)
        object.__setattr__(self, "target", tuple(map(tuple, T.tolist())))
        if self.reference is not None and self.task.frame == "base":
            # The axes of a relative pose are those of its target.
            object.__setattr__(self, "task", replace(self.task, frame="target"))
        if self.point is not None:
            object.__setattr__(self, "point", _vector("point", self.point, 3))
        _check_weight("FrameTask", self.weight)


@dataclass(frozen=True)
class PostureTask:
    """Joint positions to stay close to.

    Attributes:
        positions: Desired positions (n,) in the order of the robot's joints, or by joint name [rad
            or m]; joints that are not named may have any position.
        weights: Factor of the error of each joint, one number for all joints or by joint name, 1
            for joints without a weight; a joint with the weight 4 counts 4 times as much where not
            all errors can become zero.

    Raises:
        OptionError: If a position is not finite, or a weight is out of range.
    """

    positions: ArrayLike | Mapping[str, float]
    weights: float | Mapping[str, float] = 1.0

    def __post_init__(self) -> None:
        """Validate the arguments, and store them as tuples that can be hashed."""
        given: Any = self.positions
        if isinstance(given, Mapping):
            if not given:
                raise OptionError("a posture needs the position of at least one joint")
            for name, value in given.items():
                _check_number(f"position of joint {name!r}", value)
            object.__setattr__(self, "positions", tuple(given.items()))
        else:
            try:
                values = np.asarray(given, dtype=float)
            except (TypeError, ValueError):
                values = np.empty((0, 0))
            if values.ndim != 1 or not np.isfinite(values).all():
                raise OptionError(
                    "a posture must be finite joint positions (n,) or a mapping of joint names to "
                    f"positions; got {quoted(given)}"
                )
            object.__setattr__(self, "positions", tuple(values.tolist()))
        if isinstance(self.weights, Mapping):
            for weight in self.weights.values():
                _check_weight("PostureTask", weight)
            object.__setattr__(self, "weights", tuple(self.weights.items()))
        else:
            _check_weight("PostureTask", self.weights)


@dataclass(frozen=True)
class CouplingTask:
    """Linear relation of joint positions: their weighted sum equals `value`.

    ``CouplingTask({"left": 1.0, "right": -1.0})`` keeps two joints equal.

    Attributes:
        coefficients: Coefficient of each joint, by joint name; not all zero.
        value: Desired value of the sum [rad or m].
        weight: Factor of the error within its level.

    Raises:
        OptionError: If a number is not finite, or all coefficients are zero.
    """

    coefficients: Mapping[str, float]
    value: float = 0.0
    weight: float = 1.0

    def __post_init__(self) -> None:
        """Validate the arguments, and store the coefficients as a tuple that can be hashed."""
        if not isinstance(self.coefficients, Mapping) or not any(self.coefficients.values()):
            raise OptionError(
                "coefficients of a CouplingTask must be a mapping of joint names to numbers that "
                f"are not all zero; got {quoted(self.coefficients)}"
            )
        for name, value in self.coefficients.items():
            _check_number(f"coefficient of joint {name!r}", value)
        _check_number("value of a CouplingTask", self.value)
        _check_weight("CouplingTask", self.weight)
        object.__setattr__(self, "coefficients", tuple(self.coefficients.items()))


@dataclass(frozen=True)
class SwivelTask:
    """Swivel angle of the elbow of an arm with seven revolute joints.

    While the tip keeps its pose, the elbow can move on a circle about the line from the shoulder to
    the wrist (Tolani, Goswami & Badler 2000). The angle on this circle is right-handed about the
    direction from the shoulder to the wrist. It is 0 where the elbow is displaced as far as
    possible in the direction `up`. The shoulder is where the first three joint axes intersect, and
    the wrist where the last three do; otherwise it is the origin of the second or the sixth joint.
    The angle is undefined, and has no effect, if the arm is straight or `up` is parallel to the
    line.

    Attributes:
        angle: Desired angle [rad]; errors are taken modulo full turns.
        up: Direction of the angle 0 in the base frame.
        weight: Factor of the error within its level.

    Raises:
        OptionError: If the angle is not finite, or `up` is not a direction.
    """

    angle: float
    up: Sequence[float] = (0.0, 0.0, 1.0)
    weight: float = 1.0

    def __post_init__(self) -> None:
        """Validate the arguments; `up` becomes a unit vector."""
        _check_number("angle of a SwivelTask", self.angle)
        _check_weight("SwivelTask", self.weight)
        up = np.array(_vector("up", self.up, 3))
        length = float(np.linalg.norm(up))
        if length == 0.0:
            raise OptionError("up of a SwivelTask must not be a zero vector")
        object.__setattr__(self, "up", tuple((up / length).tolist()))


@dataclass(frozen=True)
class CenterOfMassTask:
    """Centre of mass of all links that have a mass in the URDF.

    Attributes:
        position: Desired position (x, y, z) in the base frame [m].
        axes: Axes that count; ``"xy"`` keeps a standing robot balanced.
        weight: Factor of the error within its level.

    Raises:
        OptionError: If the position is not three finite numbers, or the axes are not valid.
    """

    position: Sequence[float]
    axes: str = "xy"
    weight: float = 1.0

    def __post_init__(self) -> None:
        """Validate the arguments."""
        object.__setattr__(self, "position", _vector("position", self.position, 3))
        axes = self.axes
        if not isinstance(axes, str) or not axes or set(axes) - set(AXES):
            raise OptionError(
                "axes of a CenterOfMassTask must be some of x, y and z, such as 'xy'; got "
                f"{quoted(axes)}"
            )
        object.__setattr__(self, "axes", "".join(axis for axis in AXES if axis in axes))
        _check_weight("CenterOfMassTask", self.weight)


@dataclass(frozen=True)
class ObjectiveTask:
    """Objective for the freedom that the levels above leave; docs/methods.md has the formulas.

    Attributes:
        objective: ``"manipulability"``: far from singularities; ``"limits"``: far from the joint
            limits; ``"centring"``: joints close to the middle of their ranges.
        weight: Factor of the gradient within its level.

    Raises:
        OptionError: If the objective is unknown or the weight out of range.
    """

    objective: str
    weight: float = 1.0

    def __post_init__(self) -> None:
        """Validate the arguments."""
        if self.objective not in OBJECTIVES:
            hint = did_you_mean(self.objective, OBJECTIVES, " ({})")
            raise OptionError(
                f"objective must be {listing(OBJECTIVES)}; got {quoted(self.objective)}{hint}"
            )
        _check_weight("ObjectiveTask", self.weight)


StackTask: TypeAlias = (
    Task | FrameTask | PostureTask | CouplingTask | SwivelTask | CenterOfMassTask | ObjectiveTask
)
KINDS = (
    Task, FrameTask, PostureTask, CouplingTask, SwivelTask, CenterOfMassTask, ObjectiveTask
)  # fmt: skip


class TaskStack:
    """Tasks in levels of strict priority, the most important level first.

    A level is solved among the solutions of the levels above, and therefore never changes their
    errors (Siciliano & Slotine 1991; Kanoun, Lamiraux & Wieber 2011). The tasks of one level are
    solved together in the least-squares sense, with their weights. Joint limits stand above all
    levels.

    ``TaskStack(Task(), SwivelTask(0.3), PostureTask(home))`` reaches the pose, then brings the
    elbow as close as possible to an angle, and uses the remaining freedom for a posture.

    Args:
        levels: Each a task or a list of tasks. One level must contain the :class:`dls_ik.Task` of
            the tip. With several tips, a single Task applies to all, or this level has one for each
            tip.

    Attributes:
        levels: Tuple of levels, each a tuple of tasks.

    Raises:
        OptionError: If a level is empty or contains something else than tasks, no level has a
            :class:`dls_ik.Task`, or two levels have one, there are two swivel angles or two
            centres of mass, or more than 32 levels.
    """

    def __init__(self, *levels: StackTask | Sequence[StackTask]) -> None:
        self.levels = tuple(map(_checked_level, levels))
        if len(self.levels) > MAX_LEVELS:
            raise OptionError(f"a stack may have at most {MAX_LEVELS} levels; got {len(levels)}")
        with_tips = [k for k, level in enumerate(self.levels) if _tips_of(level)]
        if len(with_tips) != 1:
            raise OptionError(
                "a stack needs the Task of the tip in exactly one of its levels, such as "
                f"TaskStack(Task(), ...); found it in {len(with_tips)} of {len(levels)} levels"
            )
        self._tip_level = with_tips[0]
        for kind in (SwivelTask, CenterOfMassTask):
            found = [each for level in self.levels for each in level if isinstance(each, kind)]
            if len(found) > 1:
                raise OptionError(f"a stack may have one {kind.__name__}; got {len(found)}")

    @property
    def tip_level(self) -> int:
        """Index of the level that has the task of the tip."""
        return self._tip_level

    @property
    def tip_tasks(self) -> Task | tuple[Task, ...]:
        """Task of all tips, or a tuple with one for each tip."""
        tasks = _tips_of(self.levels[self._tip_level])
        return tasks[0] if len(tasks) == 1 else tasks

    def __eq__(self, other: object) -> bool:
        """Return whether all levels are equal."""
        return isinstance(other, TaskStack) and self.levels == other.levels

    def __hash__(self) -> int:
        """Return the hash of the levels."""
        return hash(self.levels)

    def __repr__(self) -> str:
        """Return the levels as they are given to the constructor."""
        shown = (repr(each[0]) if len(each) == 1 else repr(list(each)) for each in self.levels)
        return f"TaskStack({', '.join(shown)})"


def split_stack(task: Tasks | TaskStack) -> tuple[TaskStack | None, Tasks]:
    """Return the stack and the tasks of its tips; None and `task` if `task` is not a stack."""
    return (task, task.tip_tasks) if isinstance(task, TaskStack) else (None, task)


def _checked_level(level: StackTask | Sequence[StackTask]) -> tuple[StackTask, ...]:
    """Return a level as a tuple of tasks.

    Raises:
        OptionError: If the level is empty or contains something else than tasks.
    """
    tasks: tuple[Any, ...] = (level,) if isinstance(level, KINDS) else ()
    if isinstance(level, list | tuple):
        tasks = tuple(level)
    strange = [each for each in tasks if not isinstance(each, KINDS)]
    if not tasks or strange:
        raise OptionError(
            "a level of a stack must be a task or a list of tasks "
            f"({listing(kind.__name__ for kind in KINDS)}); got {quoted((strange or [level])[0])}"
        )
    return tasks


def _tips_of(level: tuple[StackTask, ...]) -> tuple[Task, ...]:
    """Return the tasks of tips in a level."""
    return tuple(each for each in level if isinstance(each, Task))


def _vector(name: str, given: Any, size: int) -> tuple[float, ...]:
    """Return a vector as a tuple of finite numbers.

    Raises:
        OptionError: If the vector does not have `size` finite numbers.
    """
    try:
        values = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.shape != (size,) or not np.isfinite(values).all():
        raise OptionError(f"{name} must be {size} finite numbers; got {quoted(given)}")
    return tuple(values.tolist())


def _check_number(name: str, value: Any) -> None:
    """Check that a value is a finite number.

    Raises:
        OptionError: If it is not.
    """
    if not isinstance(value, Real) or not math.isfinite(value):
        raise OptionError(f"{name} must be a finite number; got {quoted(value)}")


def _check_weight(name: str, weight: Any) -> None:
    """Check that the weight of a task is in the range of weights.

    Raises:
        OptionError: If it is not.
    """
    low, high = WEIGHT_RANGE
    if not isinstance(weight, Real) or not low <= float(weight) <= high:
        raise OptionError(
            f"a weight of {name} must be a number from {low:g} to {high:g}; got {quoted(weight)}"
        )
