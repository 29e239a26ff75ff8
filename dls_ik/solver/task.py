"""Tasks: the part of a pose that is to be reached.

A task names the axes of a tip's pose that count, whose axes they are, and how exactly.
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
ANGLES = ("vector", "euler")
VECTOR, SINE = "vector", "sine"
ROTATION_ERRORS = (VECTOR, SINE)
WEIGHTS = (1e-9, 1e9)  # beyond, squares of errors would be lost
INSIDE = 0.95  # share of a tolerance to which a row beyond it is brought
SECOND_EULER = 4  # component

Tolerance: TypeAlias = Any  # a number, or three; in a task three


@dataclass(frozen=True, repr=False)
class Task:
    """The part of a tip's pose that is to be reached; by default all of it.

    Each axis of the position and of the rotation that counts is one row of the error. Three axes of
    rotation are the rotation vector. Two leave the tip free to turn about the third, which has to
    point as the target's does. One is the angle about it, whatever else the tip turns. Or they are
    Euler angles.

    Each row may have a tolerance within which its error counts as zero, so that the tip may be
    anywhere in a region: the solver looks for the region, not for its middle.

    Attributes:
        position: Axes along which the position counts, such as ``"xz"``; ``""`` for none.
        rotation: Axes about which the rotation counts.
        frame: Whose axes they are: ``"base"`` or ``"target"``. The tip's own axes are the target's
            where the pose is reached.
        weights: A number from 1e-9 to 1e9 for each row, position before rotation, x before y
            before z; 1 by default. The error of a rotation has the solver's rotation weight
            besides.
        position_tolerance: (x, y, z) how far the tip may be from the target along each axis [m];
            one number for all three; infinite where an axis does not count. Ignored for an axis
            that is not in `position`.
        rotation_tolerance: (x, y, z) how large the component of the rotation may be [rad]; one
            number for all three. From pi on (pi/2 for the second Euler angle) it is no bound.
        round: Axes of the position whose tolerance, the same for each, is the radius of a ball
            (``"xyz"``) or of a cylinder (two axes) instead of a half-length of a box.
        angles: ``"vector"`` as said above, or ``"euler"``: rotation along x, y, z is the angles a,
            b, c of the tip in the frame, Rx(a) Ry(b) Rz(c).

    Raises:
        OptionError: If there is no axis, an axis is unknown or given twice, the frame is unknown, a
            weight is not a number from 1e-9 to 1e9 (or one for each row), a tolerance is not three
            numbers of at least 0, or round axes have different tolerances.
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
        """Check the fields, and bring axes, weights and tolerances into one form."""
        for name in ("position", "rotation", "round"):
            object.__setattr__(self, name, _checked_axes(name, getattr(self, name)))
        if not self.rows:
            raise OptionError("a task needs an axis of position or of rotation; both are empty")
        if not isinstance(self.frame, str) or self.frame not in FRAMES:
            raise OptionError(f"the frame of a task is base or target, not {quoted(self.frame)}")
        if not isinstance(self.angles, str) or self.angles not in ANGLES:
            raise OptionError(f"angles of a task are vector or euler, not {quoted(self.angles)}")
        object.__setattr__(self, "weights", _checked_weights(self.weights, self.rows))
        for name in ("position_tolerance", "rotation_tolerance"):
            object.__setattr__(self, name, _checked_tolerance(name, getattr(self, name)))
        self._check_round()

    def _check_round(self) -> None:
        axes, tolerance = self.round, self.position_tolerance
        radii = {tolerance[AXES.index(axis)] for axis in axes}
        if len(axes) == 1 or set(axes) - set(self.position) or len(radii) > 1:
            raise OptionError(
                f"round names two or three axes of the position ({quoted(self.position)}) whose "
                f"position_tolerance is the same, not {quoted(axes)} with {tolerance}"
            )

    def __repr__(self) -> str:
        """Return the fields that differ from the full pose."""
        given = [(f, getattr(self, f.name)) for f in fields(self)]
        return f"Task({', '.join(f'{f.name}={v!r}' for f, v in given if v != f.default)})"

    @classmethod
    def pose(cls) -> "Task":
        """Position and rotation: the full pose."""
        return cls()

    @classmethod
    def position_only(cls) -> "Task":
        """The position, with any rotation."""
        return cls(rotation="")

    @classmethod
    def pointing(cls, axis: str = "z") -> "Task":
        """The position, and one axis of the tip as the target has it: the tip may turn about it."""
        if not isinstance(axis, str) or len(axis) != 1 or axis not in AXES:
            raise OptionError(f"the axis that points is x, y or z, not {quoted(axis)}")
        return cls(rotation=AXES.replace(axis, ""), frame="target")

    @classmethod
    def box(cls, x: float, y: float, z: float) -> "Task":
        """Anywhere in a box, with any rotation: half-lengths [m] along the target's axes."""
        return cls(rotation="", frame="target", position_tolerance=(x, y, z))

    @classmethod
    def ball(cls, radius: float) -> "Task":
        """Anywhere in a ball about the target, with any rotation: radius [m]."""
        return cls(rotation="", frame="target", position_tolerance=radius, round=AXES)

    @classmethod
    def cylinder(cls, radius: float, half_length: float) -> "Task":
        """Anywhere in a cylinder about the target's z axis [m], with any rotation."""
        lengths = (radius, radius, half_length)
        return cls(rotation="", frame="target", position_tolerance=lengths, round="xy")

    @property
    def rows(self) -> int:
        """Rows of the error."""
        return len(self.position) + len(self.rotation)


Tasks: TypeAlias = Task | Sequence[Task] | None  # one for all tips, one a tip, or full poses


class TaskRow(NamedTuple):
    """One row of the error."""

    tip: int
    component: int  # 0 to 2: position, 3 to 5: rotation
    weight: float
    tolerance: float  # [m or rad]; infinite for a row that is no bound
    is_round: bool


def build_task(
    robot: RobotModel,
    task: Tasks,
    rotation_weight: float,
    length_unit: float = 1.0,
    rotation_error: str = VECTOR,
) -> TaskParams:
    """Return the rows that kernels read, of a task for all tips or of one for each.

    Rows are in the order of the tips, of a tip the position before the rotation, x before y
    before z.

    Args:
        rotation_weight: w [m/rad] of rows of rotation.
        length_unit: the robot's units of length in a metre; rows of position are in metres.
        rotation_error: vector, or sine: of whole rotations, axis times the sine of the angle.

    Raises:
        OptionError: If :func:`checked_tasks` raises it, or the sine of a rotation is asked for and
            the task has none.
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
        group=np.array([*groups, len(numbers)], np.int64),  # the last of the row that TA adds
        in_target=np.array([each.frame == "target" for each in tasks]),
        rotation_kind=np.array(kinds, np.int64),
        axis=np.array(axis, np.int64),
        exact_derivative=np.array([any(each.rotation_tolerance) for each in tasks]),
        has_tolerance=bool(tolerance.any()),
        tolerance=tolerance,
        inner_tolerance=INSIDE * tolerance,
        round=np.array([row.is_round for row in rows]),
    )
    for array in built:
        if isinstance(array, np.ndarray):
            array.flags.writeable = False
    return built


def _rows(tip: int, task: Task, units: tuple[float, float]) -> Iterator[TaskRow]:
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
    """Return whether a row can be beyond its tolerance.

    Args:
        component: 0 to 2: position, 3 to 5: rotation.
        angles: of the task.
    """
    if component < 3:
        return tolerance < math.inf
    largest = math.pi / 2 if angles == "euler" and component == SECOND_EULER else math.pi
    return tolerance < largest


def _compared_rotation(task: Task, rotation_error: str) -> tuple[int, int]:
    """Return how rotation is compared, and the axis that points or is turned about."""
    rotation = task.rotation
    if rotation and rotation_error == SINE:
        if rotation != AXES or task.angles != VECTOR or any(task.rotation_tolerance):
            raise OptionError(
                "rotation_error 'sine' compares all three axes of a rotation, as a vector without "
                f"tolerance, not those of {task!r}"
            )
        return kernels.SINE, 0
    if rotation and task.angles == "euler":
        return kernels.EULER, 0
    if len(rotation) == 2:
        (pointing,) = set(AXES) - set(rotation)
        return kernels.SWING, AXES.index(pointing)
    if len(rotation) == 1:
        return kernels.TWIST, AXES.index(rotation)
    return (kernels.VECTOR if rotation else kernels.FREE), 0


def strict_goal(goal: StopCriteria, task: TaskParams) -> StopCriteria:
    """Return a goal by which rows with a tolerance are inside it, not the solver's beyond it.

    The scaled error may be as large as the solver's tolerances make it. A row beyond its own has a
    larger error, unless its own is as small as some of the solver's.
    """
    if not task.has_tolerance:
        return goal
    is_position = task.component < 3
    tolerances = np.where(is_position, goal.position_tolerance, goal.rotation_tolerance)
    most = float(np.linalg.norm(task.weight * tolerances))
    return goal._replace(error_tolerance=min(goal.error_tolerance, most))


def checked_tasks(robot: RobotModel, task: Tasks) -> tuple[Task, ...]:
    """Return one task for each tip; None stands for full poses.

    Raises:
        OptionError: If a value is not a task, or their number differs from that of the tips.
    """
    if task is None or isinstance(task, Task):
        return (task or Task(),) * len(robot.tips)
    if not isinstance(task, Sequence) or not all(isinstance(each, Task) for each in task):
        raise OptionError(f"a task is a dls_ik.Task, or a sequence of them, not {quoted(task)}")
    if len(task) != len(robot.tips):
        raise OptionError(
            f"tasks are one for all tips or one for each of the {len(robot.tips)} "
            f"({listing(robot.tips)}), not {len(task)}"
        )
    return tuple(task)


def task_jacobians(robot: RobotModel, task: Task, q: Array) -> Array:
    """Return the rows (b, r, n) of the geometric Jacobian of one tip that count, at q (b, n).

    They are in the frame of the task, not weighted.
    """
    J = robot.jacobian(q)
    if task.frame == "target":
        R_tip_base = robot.fk(q)[:, None, :3, :3].swapaxes(2, 3)
        J = (R_tip_base @ J.reshape(len(q), 2, 3, robot.n)).reshape(J.shape)
    rows = [AXES.index(axis) for axis in task.position]
    return np.asarray(J[:, rows + [3 + AXES.index(axis) for axis in task.rotation]])


def rotation_free(tasks: Sequence[Task]) -> tuple[bool, ...]:
    """Return for each tip whether its rotation does not count."""
    return tuple(not task.rotation for task in tasks)


def is_full_pose(robot: RobotModel, task: Tasks) -> bool:
    """Return whether a task is the full pose of one tip, unweighted, as the fast path solves it."""
    return checked_tasks(robot, task) == (Task(),)


def too_few_joints(robot: RobotModel, task: Tasks) -> str:
    """Return a message if the robot has fewer joints than a task has numbers to meet, or ''."""
    tasks = checked_tasks(robot, task)
    rows = [row for tip, each in enumerate(tasks) for row in _rows(tip, each, (1.0, 1.0))]
    numbers = sum(row.tolerance == 0.0 for row in rows)
    if numbers <= robot.n:
        return ""
    return f"with {robot.n} joints {robot.name} reaches few poses in all {numbers} numbers of them"


def _checked_axes(name: str, given: Any) -> str:
    """Return the axes in the order x, y, z."""
    if not isinstance(given, str) or set(given) - set(AXES) or len(set(given)) != len(given):
        raise OptionError(
            f"{name} of a task takes some of the axes x, y, z, each once, such as 'xy', or '' for "
            f"none, not {quoted(given)}"
        )
    return "".join(sorted(given))


def _checked_weights(given: Any, rows: int) -> tuple[float, ...] | None:
    if given is None:
        return None
    try:
        weights = () if isinstance(given, str) else tuple(float(weight) for weight in given)
    except (TypeError, ValueError, OverflowError):
        weights = ()
    least, most = WEIGHTS
    if len(weights) != rows or not all(least <= weight <= most for weight in weights):
        raise OptionError(
            f"weights of a task are numbers from {least:g} to {most:g}, one for each row ({rows}), "
            f"not {quoted(given)}"
        )
    return weights


def _checked_tolerance(name: str, given: Any) -> tuple[float, ...]:
    """Return three numbers from 0 on, of one or three given."""
    try:
        is_one = isinstance(given, (str, bytes)) or not hasattr(given, "__iter__")
        tolerance = (float(given),) * 3 if is_one else tuple(float(each) for each in given)
    except (TypeError, ValueError, OverflowError):
        tolerance = ()
    if len(tolerance) != 3 or isinstance(given, str) or not all(t >= 0.0 for t in tolerance):
        raise OptionError(
            f"{name} of a task is a number from 0 on, or three, for x, y and z, not {quoted(given)}"
        )
    return tolerance
