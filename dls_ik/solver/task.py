# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tasks: the part of a pose that the solver must reach.

A task selects axes of the position and of the rotation of a tip. It also defines the frame of the
axes, and tolerances.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from dls_ik.core import task as kernels
from dls_ik.core.types import Array, StopCriteria, TaskParams
from dls_ik.errors import OptionError
from dls_ik.model.robot import RobotModel
from dls_ik.text import listing, quoted

AXES = "xyz"
FRAMES = ("base", "target")
ANGLE_KINDS = ("vector", "euler")
VECTOR_ERROR, SINE_ERROR = "vector", "sine"
ROTATION_ERRORS = (VECTOR_ERROR, SINE_ERROR)
WEIGHT_RANGE = (1e-9, 1e9)  # minimum and maximum weight; beyond, squared errors would lose digits
# The target of a row that exceeds its tolerance is an error of this share of the tolerance.
INNER_SHARE = 0.95
SECOND_EULER = 4  # component of the second Euler angle

Tolerance: TypeAlias = Any  # one number or three numbers; a task stores three numbers


@dataclass(frozen=True, repr=False)
class Task:
    """The part of a tip's pose that must be reached; by default the full pose.

    Each selected axis of the position and of the rotation is one row of the error. With three
    rotation axes, the rows are the rotation vector from the tip to the target. With two rotation
    axes, the third axis of the tip must point in the direction of the target's third axis, and the
    tip is free to rotate about this axis. With one rotation axis, the row is the angle of rotation
    about this axis; all other rotation is free. With `angles` ``"euler"``, the rotation rows are
    Euler angles instead.

    Each row may have a tolerance, within which the error of the row counts as zero. The tip may
    then be anywhere in a region. The solver aims at a point just inside the region's boundary, not
    at the center of the region.

    Attributes:
        position: Selected axes of the position, such as ``"xz"``; ``""`` for none.
        rotation: Selected axes of the rotation, such as ``"xyz"``; ``""`` for none.
        frame: Frame of the axes: ``"base"`` for the base frame, or ``"target"`` for the frame of
            the target pose.
        weights: A number from 1e-9 to 1e9 for each row, position before rotation, x before y
            before z; 1 by default. Rotation rows are also multiplied by the solver's rotation
            weight.
        position_tolerance: (x, y, z) maximum distance of the tip from the target along each axis
            [m]; one number stands for all three axes. An infinite tolerance removes the row of the
            axis. Tolerances of axes that are not in `position` are ignored.
        rotation_tolerance: (x, y, z) maximum rotation error about each axis [rad]; one number
            stands for all three axes. A tolerance of at least pi (pi/2 for the second Euler angle)
            removes the row of the axis.
        round: Position axes with equal tolerances, which are the radius of a ball (three axes) or
            of a cylinder (two axes). Without `round`, the tolerances are the half-lengths of a box.
        angles: ``"vector"`` for rotation vectors as above, or ``"euler"``: the rotation rows x, y,
            z are the angles a, b, c of the tip in the frame, Rx(a) Ry(b) Rz(c).

    Raises:
        OptionError: If there is no axis, an axis is unknown or given twice, the frame is unknown,
            the weights are not one number from 1e-9 to 1e9 for each row, a tolerance is not one or
            three numbers of at least 0, or round axes have different tolerances.
    """

    position: str = AXES
    rotation: str = AXES
    frame: str = "base"
    weights: tuple[float, ...] | None = None
    position_tolerance: Tolerance = (0.0, 0.0, 0.0)
    rotation_tolerance: Tolerance = (0.0, 0.0, 0.0)
    round: str = ""
    angles: str = "vector"

    def __post_init__(self) -> None:
        """Validate the fields, and normalise axes, weights and tolerances."""
        for name in ("position", "rotation", "round"):
            object.__setattr__(self, name, _checked_axes(name, getattr(self, name)))
        if not self.rows:
            raise OptionError(
                "position and rotation of a task are both empty; give at least one axis, such as "
                "position='xyz'"
            )
        if not isinstance(self.frame, str) or self.frame not in FRAMES:
            raise OptionError(
                f"frame of a task must be 'base' or 'target'; got {quoted(self.frame)}"
            )
        if not isinstance(self.angles, str) or self.angles not in ANGLE_KINDS:
            raise OptionError(
                f"angles of a task must be 'vector' or 'euler'; got {quoted(self.angles)}"
            )
        object.__setattr__(self, "weights", _checked_weights(self.weights, self.rows))
        for name in ("position_tolerance", "rotation_tolerance"):
            object.__setattr__(self, name, _checked_tolerance(name, getattr(self, name)))
        self._check_round()

    def _check_round(self) -> None:
        """Check the field `round`.

        Raises:
            OptionError: If the round axes are not two or three position axes with equal
                tolerances.
        """
        axes, tolerance = self.round, self.position_tolerance
        radii = {tolerance[AXES.index(axis)] for axis in axes}
        if len(axes) == 1 or set(axes) - set(self.position) or len(radii) > 1:
            raise OptionError(
                f"round must be two or three axes of position ({quoted(self.position)}) with equal "
                f"position_tolerance; got {quoted(axes)} with {tolerance}"
            )

    def __repr__(self) -> str:
        """Return the task as text, with the fields that differ from those of the full pose."""
        given = [(f, getattr(self, f.name)) for f in fields(self)]
        return f"Task({', '.join(f'{f.name}={v!r}' for f, v in given if v != f.default)})"

    @classmethod
    def pose(cls) -> "Task":
        """Return the task in which position and rotation of the tip must be reached."""
        return cls()

    @classmethod
    def position_only(cls) -> "Task":
        """Return the task in which only the position of the tip must be reached."""
        return cls(rotation="")

    @classmethod
    def free(cls) -> "Task":
        """Return the task of a tip that may have any pose, for robots with several tips."""
        return cls("x", "", position_tolerance=math.inf)

    @classmethod
    def pointing(cls, axis: str = "z") -> "Task":
        """Return the task in which the position and the direction of one axis must be reached.

        The tip is free to rotate about this axis of the tip, "x", "y" or "z".

        Raises:
            OptionError: If the axis is not x, y or z.
        """
        if not isinstance(axis, str) or len(axis) != 1 or axis not in AXES:
            raise OptionError(f"the pointing axis must be 'x', 'y' or 'z'; got {quoted(axis)}")
        return cls(rotation=AXES.replace(axis, ""), frame="target")

    @classmethod
    def box(cls, x: float, y: float, z: float) -> "Task":
        """Return the task in which the tip must be inside a box, with any rotation.

        The center of the box is the target; x, y and z are the half-lengths [m] along the axes of
        the target.
        """
        return cls(rotation="", frame="target", position_tolerance=(x, y, z))

    @classmethod
    def ball(cls, radius: float) -> "Task":
        """Return the task in which the tip must be inside a ball, with any rotation.

        The center of the ball is the target; the radius is in [m].
        """
        return cls(rotation="", frame="target", position_tolerance=radius, round=AXES)

    @classmethod
    def cylinder(cls, radius: float, half_length: float) -> "Task":
        """Return the task in which the tip must be inside a cylinder, with any rotation.

        The center of the cylinder is the target, and its axis the z axis of the target; radius and
        half-length are in [m].
        """
        lengths = (radius, radius, half_length)
        return cls(rotation="", frame="target", position_tolerance=lengths, round="xy")

    @property
    def rows(self) -> int:
        """Number of rows of the error, one for each axis of position and rotation."""
        return len(self.position) + len(self.rotation)


Tasks: TypeAlias = Task | Sequence[Task] | None  # one for all tips, one for each, or full poses


class TaskRow(NamedTuple):
    """One row of the error: a component of the position or rotation error of a tip."""

    tip: int  # index of the tip
    component: int  # 0 to 2: position x, y, z; 3 to 5: rotation x, y, z
    weight: float
    tolerance: float  # maximum error [m or rad], inf for a row without a bound
    is_round: bool  # whether the tolerance is the radius of a ball or cylinder


def build_task(
    robot: RobotModel,
    task: Tasks,
    rotation_weight: float,
    length_unit: float = 1.0,
    rotation_error: str = VECTOR_ERROR,
) -> TaskParams:
    """Build the struct of the tasks of all tips for the kernels.

    Rows are sorted by tip, then position before rotation, then x before y before z.

    Args:
        robot: Robot model.
        task: Task for all tips, or one for each tip; None stands for full poses.
        rotation_weight: Weight w of rotation rows [m/rad].
        length_unit: Number of length units of the robot in a metre, such as 1000 for mm. The
            weights of position rows convert errors to metres.
        rotation_error: ``"vector"`` for the rotation axis times the angle, or ``"sine"`` for the
            rotation axis times the sine of the angle.

    Raises:
        OptionError: If the tasks are not valid (see :func:`checked_tasks`), or ``"sine"`` is not
            possible for a task.
    """
    tasks = checked_tasks(robot, task)
    units = 1.0 / length_unit, rotation_weight
    rows = [row for tip, each in enumerate(tasks) for row in _rows(tip, each, units)]
    rows = [row for row in rows if math.isfinite(row.tolerance)] or rows
    vectors = {(row.tip, row.component // 3): None for row in rows}  # ordered
    numbers = {vector: number for number, vector in enumerate(vectors)}
    groups = [numbers[row.tip, row.component // 3] for row in rows]
    kinds, axis = zip(*(_compared_rotation(each, rotation_error) for each in tasks), strict=True)
    tolerance = np.array([row.tolerance for row in rows])
    built = TaskParams(
        tip=np.array([row.tip for row in rows], np.int64),
        component=np.array([row.component for row in rows], np.int64),
        weight=np.array([row.weight for row in rows]),
        group=np.array([*groups, len(numbers)], np.int64),  # the last group is the row added by TA
        in_target=np.array([each.frame == "target" for each in tasks]),
        rotation_kind=np.array(kinds, np.int64),
        axis=np.array(axis, np.int64),
        exact_derivative=np.array([any(each.rotation_tolerance) for each in tasks]),
        has_tolerance=bool(tolerance.any()),
        tolerance=tolerance,
        inner_tolerance=INNER_SHARE * tolerance,
        round=np.array([row.is_round for row in rows]),
    )
    for array in built:
        if isinstance(array, np.ndarray):
            array.flags.writeable = False
    return built


def _rows(tip: int, task: Task, units: tuple[float, float]) -> Iterator[TaskRow]:
    """Yield the rows of the task of one tip.

    Args:
        tip: Index of the tip.
        task: Task of the tip.
        units: Factors by which the weights of position rows and of rotation rows are multiplied.
    """
    components = [AXES.index(axis) for axis in task.position]
    components += [3 + AXES.index(axis) for axis in task.rotation]
    tolerances = (*task.position_tolerance, *task.rotation_tolerance)
    weights = task.weights or (1.0,) * task.rows
    for component, weight in zip(components, weights, strict=True):
        is_rotation = component >= 3
        tolerance = tolerances[component]
        if not is_bound(component, tolerance, task.angles):
            tolerance = math.inf
        is_round = not is_rotation and AXES[component] in task.round
        yield TaskRow(tip, component, weight * units[is_rotation], tolerance, is_round)


def is_bound(component: int, tolerance: float, angles: str) -> bool:
    """Return whether an error of a row can exceed the tolerance of the row.

    Args:
        component: 0 to 2 for position x, y, z; 3 to 5 for rotation x, y, z.
        tolerance: Tolerance of the row [m or rad].
        angles: ``"vector"`` or ``"euler"``, as in :class:`Task`.
    """
    if component < 3:
        return tolerance < math.inf
    largest = math.pi / 2 if angles == "euler" and component == SECOND_EULER else math.pi
    return tolerance < largest


def _compared_rotation(task: Task, rotation_error: str) -> tuple[int, int]:
    """Return how the kernels compute the rotation error of a task: a kind of error, and an axis.

    With two rotation axes, the axis (0 to 2) is the third axis, whose direction must be reached.
    With one rotation axis, the axis is this one, about which the angle is compared. Otherwise the
    axis is 0.

    Args:
        task: Task of one tip.
        rotation_error: Solver option of this name, ``"vector"`` or ``"sine"``.

    Raises:
        OptionError: If `rotation_error` is ``"sine"`` and the task does not compare whole rotation
            vectors.
    """
    rotation = task.rotation
    if rotation and rotation_error == SINE_ERROR:
        if rotation != AXES or task.angles != VECTOR_ERROR or any(task.rotation_tolerance):
            raise OptionError(
                "rotation_error 'sine' needs a task with all three rotation axes, as a vector "
                f"without tolerance; got {task!r}"
            )
        return kernels.ROTATION_SINE, 0
    if rotation and task.angles == "euler":
        return kernels.ROTATION_EULER, 0
    if len(rotation) == 2:
        (pointing,) = set(AXES) - set(rotation)
        return kernels.ROTATION_SWING, AXES.index(pointing)
    if len(rotation) == 1:
        return kernels.ROTATION_TWIST, AXES.index(rotation)
    return (kernels.ROTATION_VECTOR if rotation else kernels.ROTATION_FREE), 0


def strict_goal(goal: StopCriteria, task: TaskParams) -> StopCriteria:
    """Return stop criteria of an attempt that are strict enough for a task with tolerances.

    The maximum norm of the scaled error is reduced to the norm of an error whose rows all equal the
    position and rotation tolerances of the solver. If the error of a row exceeds the tolerance of
    the row, the norm exceeds this maximum, unless this tolerance is as small as that of the solver.

    Args:
        goal: Stop criteria from the solver options.
        task: Struct of the task.
    """
    if not task.has_tolerance:
        return goal
    is_position = task.component < 3
    tolerances = np.where(is_position, goal.position_tolerance, goal.rotation_tolerance)
    max_error = float(np.linalg.norm(task.weight * tolerances))
    return goal._replace(error_tolerance=min(goal.error_tolerance, max_error))


def checked_tasks(robot: RobotModel, task: Tasks) -> tuple[Task, ...]:
    """Validate a task argument, and return a tuple with one task for each tip.

    None stands for full poses; a single task is used for all tips.

    Raises:
        OptionError: If a value is not a task, or the number of tasks is not the number of tips.
    """
    if task is None or isinstance(task, Task):
        return (task or Task(),) * len(robot.tips)
    if not isinstance(task, Sequence) or not all(isinstance(each, Task) for each in task):
        raise OptionError(f"task must be a dls_ik.Task or a sequence of them; got {quoted(task)}")
    if len(task) != len(robot.tips):
        raise OptionError(
            f"task must be one task for all tips, or one for each of the {len(robot.tips)} tips "
            f"({listing(robot.tips)}); got {len(task)} tasks"
        )
    return tuple(task)


def task_jacobians(robot: RobotModel, task: Task, q: Array) -> Array:
    """Return the rows (b, r, n) of the geometric Jacobian that a task selects, at q (b, n).

    The rows are in the frame of the task and not weighted. The robot must have a single tip.
    """
    J = robot.jacobian(q)
    if task.frame == "target":
        R_tip_base = robot.fk(q)[:, None, :3, :3].swapaxes(2, 3)
        J = (R_tip_base @ J.reshape(len(q), 2, 3, robot.n)).reshape(J.shape)
    rows = [AXES.index(axis) for axis in task.position]
    return np.asarray(J[:, rows + [3 + AXES.index(axis) for axis in task.rotation]])


def rotation_free(tasks: Sequence[Task]) -> tuple[bool, ...]:
    """Return (k,) whether the task of each tip has no rotation axis."""
    return tuple(not task.rotation for task in tasks)


def is_full_pose(robot: RobotModel, task: Tasks) -> bool:
    """Return whether a task is the unweighted full pose of a single tip without tolerances."""
    return checked_tasks(robot, task) == (Task(),)


def too_few_joints(robot: RobotModel, task: Tasks) -> str:
    """Return a message if the robot has fewer joints than the task has rows without tolerance.

    Return "" otherwise.
    """
    numbers = count_exact_rows(checked_tasks(robot, task))
    if numbers <= robot.n:
        return ""
    return f"with {robot.n} joints {robot.name} reaches few poses in all {numbers} components"


def count_exact_rows(tasks: Sequence[Task]) -> int:
    """Return the number of components without tolerance that the tasks (k,) of all tips have."""
    rows = [row for tip, each in enumerate(tasks) for row in _rows(tip, each, (1.0, 1.0))]
    return sum(row.tolerance == 0.0 for row in rows)


def _checked_axes(name: str, given: Any) -> str:
    """Validate a string of axes such as "zx", and return it in the order x, y, z.

    Raises:
        OptionError: If the value is not a string of different axes.
    """
    if not isinstance(given, str) or set(given) - set(AXES) or len(set(given)) != len(given):
        raise OptionError(
            f"{name} of a task must be some of the axes x, y, z, each at most once, such as 'xy', "
            f"or '' for none; got {quoted(given)}"
        )
    return "".join(sorted(given))


def _checked_weights(given: Any, rows: int) -> tuple[float, ...] | None:
    """Validate the weights of the rows of a task, and return them; None stands for weights of 1.

    Raises:
        OptionError: If a weight is not valid, or the numbers of weights and rows differ.
    """
    if given is None:
        return None
    try:
        weights = () if isinstance(given, str) else tuple(float(weight) for weight in given)
    except (TypeError, ValueError, OverflowError):
        weights = ()
    low, high = WEIGHT_RANGE
    if len(weights) != rows or not all(low <= weight <= high for weight in weights):
        raise OptionError(
            f"weights of a task must be numbers from {low:g} to {high:g}, one for each row "
            f"({rows}); got {quoted(given)}"
        )
    return weights


def _checked_tolerance(name: str, given: Any) -> tuple[float, ...]:
    """Validate a tolerance, one number for all axes or three numbers; return three numbers.

    Raises:
        OptionError: If the value is not one number or three numbers of at least 0.
    """
    try:
        is_one = isinstance(given, (str, bytes)) or not hasattr(given, "__iter__")
        tolerance = (float(given),) * 3 if is_one else tuple(float(each) for each in given)
    except (TypeError, ValueError, OverflowError):
        tolerance = ()
    if len(tolerance) != 3 or isinstance(given, str) or not all(t >= 0.0 for t in tolerance):
        raise OptionError(
            f"{name} of a task must be a number of at least 0, or three for x, y and z; got "
            f"{quoted(given)}"
        )
    return tolerance
