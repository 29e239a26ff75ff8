# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Arrays of task stacks for the compiled functions of :mod:`dls_ik.core.stack`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dls_ik.core import objectives
from dls_ik.core.stack import (
    ROW_FRAME,
    ROW_LINEAR,
    ROW_MASS,
    ROW_OBJECTIVE,
    ROW_SWIVEL,
    StackParams,
)
from dls_ik.core.types import Array, Chain
from dls_ik.errors import OptionError
from dls_ik.model.robot import RobotModel
from dls_ik.model.rotations import transform
from dls_ik.model.urdf import read_masses
from dls_ik.solver.options import SolverOptions
from dls_ik.solver.task import AXES, VECTOR_ERROR, Task, build_task, checked_tasks
from dls_ik.solver.task_stack import (
    CenterOfMassTask,
    CouplingTask,
    FrameTask,
    ObjectiveTask,
    PostureTask,
    SwivelTask,
    TaskStack,
)
from dls_ik.text import did_you_mean, listing, quoted

SWIVEL_JOINTS = 7
MAX_AXIS_DISTANCE = 1e-6  # [m] axes that are closer count as intersecting


class StackProblem(NamedTuple):
    """A stack for a robot: arrays for the kernels, and the targets that the tasks contain."""

    params: StackParams
    targets: Array  # (k, 4, 4) desired poses; each call replaces the first ones, of the tips
    tips: int  # number of tips of the robot
    posture: dict[str, int]  # indices in `params.value` of the joints of postures, by joint name
    has_swivel: bool  # whether a level has a swivel angle
    # Frames of the stack's :class:`FrameTask` without a point: link, reference and number.
    frames: tuple[tuple[str, str | None, int], ...]

    def poses(self, T: Array) -> Array:
        """Return the desired poses (k, 4, 4) of all frames for those (t, 4, 4) of the tips."""
        poses = self.targets.copy()
        poses[: self.tips] = T
        return poses


class _Row(NamedTuple):
    """A row of a stack, see :class:`dls_ik.core.stack.StackParams`.

    Until :func:`_expanded`, one row with the index of the frame stands for all rows of a frame.
    """

    kind: int
    number: int
    part: int = 0
    weight: float = 1.0


def build_stack(robot: RobotModel, stack: TaskStack, options: SolverOptions) -> StackProblem:
    """Build the structs of a stack for a robot.

    Args:
        robot: Robot that moves.
        stack: The tasks.
        options: Gives the weight and the kind of rotation errors, and the length unit.

    Raises:
        OptionError: If a task does not fit the robot, such as one with an unknown joint, or a
            swivel angle of an arm without seven joints.
        ChainError: If the robot does not move the link of a task.
    """
    builder = _Builder(robot, stack)
    rows = [[row for task in level for row in builder.rows(task)] for level in stack.levels]
    measures = options.rotation_weight, options.length_unit, options.rotation_error
    task = build_task(builder.frames, builder.tasks, *measures)
    # Exact derivatives let the corrections of the levels above converge also far from the target.
    is_exact = task.exact_derivative | (options.rotation_error == VECTOR_ERROR)
    weight = task.weight * np.array(builder.weights)[task.tip]
    task = task._replace(weight=weight, exact_derivative=is_exact)
    # An axis with an infinite tolerance has no row, so the rows can be numbered only now.
    numbers: dict[int, list[int]] = {}
    for number, tip in enumerate(task.tip.tolist()):
        numbers.setdefault(tip, []).append(number)
    levels = [[each for row in level for each in _expanded(row, numbers)] for level in rows]
    flat = [row for level in levels for row in level]
    params = StackParams(
        frames=builder.frames.chain,
        points=builder.points(),
        task=task,
        reference=np.array(builder.reference, np.int64),
        kind=np.array([row.kind for row in flat], np.int64),
        number=np.array([row.number for row in flat], np.int64),
        part=np.array([row.part for row in flat], np.int64),
        weight=np.array([row.weight for row in flat], float),
        ends=np.cumsum([len(level) for level in levels], dtype=np.int64),
        linear=np.array(builder.linear, float).reshape(-1, robot.n),
        value=np.array(builder.value, float),
        swivel=builder.swivel,
        mass=np.array(builder.mass, float),
        center=builder.center,
    )
    has_swivel = bool((params.kind == ROW_SWIVEL).any())
    targets = np.array(builder.targets)
    frames = tuple(builder.plain_frames)
    return StackProblem(params, targets, len(robot.tips), builder.posture, has_swivel, frames)


def _expanded(row: _Row, numbers: dict[int, list[int]]) -> list[_Row]:
    """Return the rows of a frame, if the row stands for a frame; otherwise the row itself.

    Args:
        row: A row; that of a frame has the index of the frame as `number`.
        numbers: Numbers of the rows of each frame in the task of all frames.
    """
    if row.kind != ROW_FRAME:
        return [row]
    return [_Row(ROW_FRAME, number) for number in numbers.get(row.number, [])]


class _Builder:
    """Collects the rows of the tasks of a stack, and the frames and points that they need."""

    def __init__(self, robot: RobotModel, stack: TaskStack) -> None:
        self.robot = robot
        self.frames = robot  # robot with a tip for each frame
        self.tasks = list(checked_tasks(robot, stack.tip_tasks))
        self.weights = [1.0] * len(self.tasks)
        self.reference = [-1] * len(self.tasks)
        self.targets: list[Array] = [np.eye(4)] * len(self.tasks)
        self.linear: list[Array] = []
        self.value: list[float] = []
        self.posture: dict[str, int] = {}
        self.plain_frames: list[tuple[str, str | None, int]] = []
        self.swivel, self.center = np.array([0.0, 0.0, 0.0, 1.0]), np.zeros(3)
        self._elbow: list[tuple[str, Array]] = []  # shoulder, elbow and wrist: link, position
        self._masses: list[tuple[str, Array]] = []
        self._mass: list[float] = []
        self._tip_rows_made = False
        self._makers: dict[type, Callable[[Any], list[_Row]]] = {
            Task: self._tip_rows,
            FrameTask: self._frame_rows,
            PostureTask: self._posture_rows,
            CouplingTask: self._coupling_rows,
            SwivelTask: self._swivel_rows,
            CenterOfMassTask: self._mass_rows,
            ObjectiveTask: self._objective_rows,
        }

    def rows(self, task: Any) -> list[_Row]:
        """Return the rows of a task; rows of frames have the index of their frame."""
        return self._makers[type(task)](task)

    @property
    def mass(self) -> list[float]:
        """Share of each point in the mass of the robot; 0 for shoulder, elbow and wrist."""
        return [0.0] * len(self._elbow) + self._mass

    def points(self) -> Chain:
        """Return the chain to shoulder, elbow, wrist and centres of mass.

        If there are no such points, the chain leads to the tips, and is not used.
        """
        robot = self.robot
        for link, position in (*self._elbow, *self._masses):
            robot = robot.with_tip(link, transform(np.eye(3), position))
        count = len(self.robot.tips) if len(robot.tips) > len(self.robot.tips) else 0
        return _without_first(robot.chain, count)

    def _tip_rows(self, _: Task) -> list[_Row]:
        if self._tip_rows_made:  # one task of several tips; all their rows have been made
            return []
        self._tip_rows_made = True
        return [_Row(ROW_FRAME, tip) for tip in range(len(self.robot.tips))]

    def _frame_rows(self, task: FrameTask) -> list[_Row]:
        reference = -1 if task.reference is None else self._frame_of(task.reference)
        self._add_frame(task.link, task.point, task.task, reference, task.target, task.weight)
        if task.point is None:
            self.plain_frames.append((task.link, task.reference, len(self.tasks) - 1))
        return [_Row(ROW_FRAME, len(self.tasks) - 1)]

    def _frame_of(self, link: str) -> int:
        """Return the index of the frame of a link; add the frame if the link has no frame yet."""
        for number, tip in enumerate(self.frames.tips):
            is_plain = np.array_equal(self.frames.offsets[number], np.eye(4))
            if tip == link and is_plain:
                return number
        self._add_frame(link, None, Task.position_only(), -1, np.eye(4), 1.0)
        return len(self.tasks) - 1

    def _add_frame(
        self, link: str, point: Any, task: Task, reference: int, target: Any, weight: float
    ) -> None:
        """Add a frame, whose task has the given target and reference."""
        offset = np.eye(4) if point is None else transform(np.eye(3), np.array(point))
        self.frames = self.frames.with_tip(link, offset)
        self.tasks.append(task)
        self.weights.append(weight)
        self.reference.append(reference)
        self.targets.append(np.array(target, float))

    def _posture_rows(self, task: PostureTask) -> list[_Row]:
        names, positions = self.robot.joint_names, task.positions
        given: Any = positions
        if given and isinstance(given[0], tuple):
            by_name = dict(given)
        elif len(given) == len(names):
            by_name = dict(zip(names, given, strict=True))
        else:
            raise OptionError(
                f"a posture must have {len(names)} positions, of {listing(names)}; got {len(given)}"
            )
        weights: Any = task.weights
        own = dict(weights) if isinstance(weights, tuple) else dict.fromkeys(by_name, weights)
        for name in own:
            if name not in by_name:
                raise OptionError(f"the posture has a weight but no position of joint {name!r}")
        rows = []
        for name, value in by_name.items():
            row = np.zeros(self.robot.n)
            row[self._joint(name, "posture")] = 1.0
            rows.append(self._linear_row(row, value, own.get(name, 1.0)))
            self.posture[name] = len(self.value) - 1
        return rows

    def _coupling_rows(self, task: CouplingTask) -> list[_Row]:
        row = np.zeros(self.robot.n)
        for name, coefficient in dict(task.coefficients).items():
            row[self._joint(name, "coupling")] = coefficient
        return [self._linear_row(row, task.value, task.weight)]

    def _linear_row(self, row: Array, value: float, weight: float) -> _Row:
        self.linear.append(row)
        self.value.append(value)
        return _Row(ROW_LINEAR, len(self.value) - 1, weight=weight)

    def _joint(self, name: str, of: str) -> int:
        """Return the index of a joint.

        Raises:
            OptionError: If the robot has no joint of this name.
        """
        names = self.robot.joint_names
        if name not in names:
            hint = did_you_mean(name, names, "; {}")
            raise OptionError(
                f"unknown joint {quoted(name)} in a {of}; joints are {listing(names)}{hint}"
            )
        return names.index(name)

    def _swivel_rows(self, task: SwivelTask) -> list[_Row]:
        self._elbow = elbow_points(self.robot)
        self.swivel = np.array([task.angle, *task.up])
        return [_Row(ROW_SWIVEL, 0, weight=task.weight)]

    def _mass_rows(self, task: CenterOfMassTask) -> list[_Row]:
        masses = moved_masses(self.robot)
        total = sum(mass for _, mass, _ in masses)
        fixed = np.zeros(3)
        for link, mass, position in masses:
            if link is None:
                fixed += mass / total * position
            else:
                self._masses.append((link, position))
                self._mass.append(mass / total)
        self.center = np.array(task.position) - fixed
        return [_Row(ROW_MASS, 0, AXES.index(axis), task.weight) for axis in task.axes]

    def _objective_rows(self, task: ObjectiveTask) -> list[_Row]:
        number = objectives.OBJECTIVE_IDS[task.objective]
        return [_Row(ROW_OBJECTIVE, number, j, task.weight) for j in range(self.robot.n)]


def _without_first(chain: Chain, count: int) -> Chain:
    """Return a chain without the paths to its first `count` tips."""
    start = int(chain.first[count])
    return chain._replace(
        fixed=chain.fixed[start + count :].copy(),
        first=chain.first[count:] - start,
        prismatic=chain.prismatic[start:].copy(),
        variable=chain.variable[start:].copy(),
        scale=chain.scale[start:].copy(),
        offset=chain.offset[start:].copy(),
    )


def elbow_points(robot: RobotModel) -> list[tuple[str, Array]]:
    """Return shoulder, elbow and wrist of a 7-joint arm, each as a link and a position in it [m].

    The shoulder is where the axes of the first three joints intersect, the wrist where those of the
    last three do, and the elbow the origin of the fourth joint. Without an intersection, the
    shoulder and the wrist are the origins of the second and the sixth joint.

    Raises:
        OptionError: If the robot is not a serial arm with seven revolute joints and one tip.
    """
    chain = robot.chain
    if len(robot.tips) != 1 or robot.n != SWIVEL_JOINTS or len(chain.variable) != SWIVEL_JOINTS:
        raise OptionError(
            f"the swivel angle needs an arm with {SWIVEL_JOINTS} joints and one tip, without mimic "
            f"joints; {robot.name!r} has {len(chain.variable)} joints and {len(robot.tips)} tips"
        )
    if chain.prismatic.any():
        raise OptionError("the swivel angle needs revolute joints only")
    joints = [
        joint
        for joint in robot.tree.path(robot.base, robot.tip)
        if joint.is_driven and joint.name in robot.joint_names
    ]
    values = dict.fromkeys(robot.joint_names, 0.0)
    q = np.array(list(values.values()))
    poses = [robot.link_pose(joint.child, q) for joint in joints]
    lines = [
        (T[:3, 3], T[:3, :3] @ np.asarray(joint.axis))
        for T, joint in zip(poses, joints, strict=True)
    ]
    points = {
        1: _intersection(lines[:3], lines[1][0]),
        3: lines[3][0],
        5: _intersection(lines[4:], lines[5][0]),
    }
    found = []
    for number, point in points.items():
        T = poses[number]
        found.append((joints[number].child, T[:3, :3].T @ (point - T[:3, 3])))
    return found


def _intersection(lines: list[tuple[Array, Array]], otherwise: Array) -> Array:
    """Return the point that is on all lines (origin, unit direction); `otherwise` if none is."""
    A = [np.eye(3) - np.outer(axis, axis) for _, axis in lines]
    b = [P @ origin for P, (origin, _) in zip(A, lines, strict=True)]
    point = np.linalg.lstsq(np.vstack(A), np.concatenate(b), rcond=None)[0]
    distances = [np.linalg.norm(P @ point - c) for P, c in zip(A, b, strict=True)]
    return point if max(distances) <= MAX_AXIS_DISTANCE else np.asarray(otherwise)


def moved_masses(robot: RobotModel) -> list[tuple[str | None, float, Array]]:
    """Return the masses of all links: link, mass [kg] and centre of mass in the link's frame [m].

    Links that the robot's joints do not move have None instead of their name; their centre of mass
    is in the base frame, with joints outside the chain at 0 or at their limit closest to 0.

    Raises:
        OptionError: If no link has a mass.
    """
    masses = {} if robot.tree.description is None else read_masses(robot.tree.description)
    found: list[tuple[str | None, float, Array]] = []
    q, moving = np.zeros(robot.n), set(robot.joint_names)
    for link, (mass, position) in masses.items():
        if _is_moved(robot, link, moving):
            found.append((link, mass, position))
        else:
            found.append((None, mass, (robot.link_pose(link, q) @ [*position, 1.0])[:3]))
    if not found:
        raise OptionError(
            f"the centre of mass is unknown: no link of {robot.name!r} has a mass in the URDF"
        )
    return found


def _is_moved(robot: RobotModel, link: str, moving: set[str]) -> bool:
    """Return whether a joint of the robot's chain moves a link relative to the base."""
    tree = robot.tree
    parent = {joint.child: joint for joint in tree.joints}
    while link != robot.base and link in parent:
        joint = parent[link]
        mimic = tree.mimic_of.get(joint.name)
        if mimic is not None and mimic.master in moving and mimic.multiplier != 0.0:
            return True
        link = joint.parent
    return False
