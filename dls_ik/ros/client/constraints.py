# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tasks, joint bounds and frozen joints as ``moveit_msgs/Constraints`` of a request.

A constraint is a region that must contain the answer. Constraints have neither priorities nor
weights. They cannot express a preferred posture, a swivel angle, an objective, a centre of mass or
the pose of a link relative to another moving link.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from moveit_msgs.msg import (
    Constraints,
    JointConstraint,
    OrientationConstraint,
    PositionConstraint,
)
from shape_msgs.msg import SolidPrimitive

from dls_ik.core.types import MAX_POSE_COORDINATE, Array
from dls_ik.errors import OptionError
from dls_ik.ros.frames import pose_from_matrix
from dls_ik.solver.stack_labels import level_label
from dls_ik.solver.task import AXES, Task
from dls_ik.solver.task_stack import FrameTask, TaskStack
from dls_ik.text import listing, quoted

MIN_REGION = 1e-6  # [m] smallest half length of a region, for axes without tolerance
EULER_ANGLES, ROTATION_VECTORS = 0, 1  # values of OrientationConstraint.parameterization
INSTEAD = (
    "for streams, ik_node has the parameters swivel, posture, joint_weights and stream_objective; "
    "in Python, IkSolver(robot, task=stack) solves the stack"
)

Bounds = Mapping[str, tuple[float, float]]
Frozen = Mapping[str, float] | Sequence[str]


def joint_constraints(
    bounds: Bounds | None, frozen: Frozen, seed: Mapping[str, float]
) -> list[JointConstraint]:
    """Return constraints of joints.

    Args:
        bounds: Lower and upper bounds by joint name [rad or m], or None.
        frozen: Positions of frozen joints by name [rad or m], or names of joints that keep their
            position in the seed.
        seed: Positions of the seed by joint name.

    Raises:
        OptionError: If a bound is not valid, a joint has bounds and is frozen, or the seed has no
            position of a frozen joint.
    """
    found = []
    for name, pair in (bounds or {}).items():
        given = np.asarray(pair, float)
        if given.shape != (2,) or not given[0] <= given[1] or not np.isfinite(given).all():
            raise OptionError(
                f"joint_bounds of {name!r} must be a lower and an upper bound; got {quoted(pair)}; "
                "give two finite numbers in ascending order [rad or m]"
            )
        middle = float(given.mean())
        found.append((name, middle, 0.5 * float(given[1] - given[0])))
    for name, position in _frozen_positions(frozen, seed).items():
        if name in (bounds or {}):
            raise OptionError(f"joint {name!r} is frozen and has joint_bounds; give one of them")
        found.append((name, position, 0.0))
    return [
        JointConstraint(
            joint_name=name, position=position, tolerance_below=width, tolerance_above=width,
            weight=1.0,
        )
        for name, position, width in found
    ]  # fmt: skip


def _frozen_positions(frozen: Frozen, seed: Mapping[str, float]) -> dict[str, float]:
    """Return the positions of frozen joints by name [rad or m].

    Raises:
        OptionError: If `frozen` is a text, or the seed has no position of a frozen joint.
    """
    if isinstance(frozen, Mapping):
        return {name: float(position) for name, position in frozen.items()}
    if isinstance(frozen, str):
        raise OptionError(f"frozen_joints must be a list of names; got {quoted(frozen)}")
    missing = [name for name in frozen if name not in seed]
    if missing:
        raise OptionError(
            f"frozen joint {quoted(missing[0])} needs a position: give "
            f"frozen_joints={{{missing[0]!r}: 0.1}}, or its position in the seed"
        )
    return {name: float(seed[name]) for name in frozen}


def task_constraints(task: Task | TaskStack | None, T: Array, link: str, frame: str) -> Constraints:
    """Return the constraints for a task of the requested link, or for a stack of one level.

    Args:
        task: Task of the requested link; or a stack with one level, whose other tasks must be
            :class:`dls_ik.FrameTask` with targets in `frame`. None: the full pose.
        T: (4, 4) requested pose.
        link: Name of the requested link; may be empty for the full pose.
        frame: Frame of the poses; empty: the root of the robot.

    Raises:
        OptionError: If constraints cannot express the task.
    """
    tips, others = _one_level(task)
    whole = Constraints()
    if tips not in (None, Task()):
        whole.orientation_constraints.append(_tip_constraint(tips, T, link, frame))
    for each in others:
        target = np.array(each.target, float)
        _check_frame_task(each)
        if each.task.position:
            given = _position_constraint(each.task, target, each.link, frame)
            offset = given.target_point_offset
            offset.x, offset.y, offset.z = each.point or (0.0, 0.0, 0.0)
            whole.position_constraints.append(given)
        if each.task.rotation:
            given = _orientation_constraint(each.task, target, each.link, frame)
            whole.orientation_constraints.append(given)
    return whole


def pose_constraints(T: Array, link: str, frame: str) -> Constraints:
    """Return the constraints for the exact pose of a link.

    Args:
        T: (4, 4) pose of the link in `frame`.
        link: Name of the link.
        frame: Frame of the pose; empty: the root of the robot.
    """
    return Constraints(
        position_constraints=[_position_constraint(Task(), T, link, frame)],
        orientation_constraints=[_orientation_constraint(Task(), T, link, frame)],
    )


def _one_level(task: Task | TaskStack | None) -> tuple[Task | None, list[FrameTask]]:
    """Return the task of the requested link and the other tasks of a stack of one level.

    Raises:
        OptionError: If the stack has several levels, or other tasks than those of frames.
    """
    if not isinstance(task, TaskStack):
        return task, []
    if len(task.levels) > 1:
        lower = "; ".join(map(level_label, task.levels[1:]))
        raise OptionError(
            f"a request has no levels of priority; got {len(task.levels)} levels, below the first: "
            f"{lower}; {INSTEAD}"
        )
    tips = [each for each in task.levels[0] if isinstance(each, Task)]
    others = [each for each in task.levels[0] if isinstance(each, FrameTask)]
    if len(tips) > 1 or len(tips) + len(others) < len(task.levels[0]):
        raise OptionError(
            "a request can have one Task and any number of FrameTask; got "
            f"{listing(type(each).__name__ for each in task.levels[0])}; {INSTEAD}"
        )
    return tips[0], others


def _tip_constraint(task: Task, T: Array, link: str, frame: str) -> OrientationConstraint:
    """Return the orientation constraint that relaxes the orientation of the requested pose.

    Raises:
        OptionError: If the link has no name, or a position axis of the task is free or has a
            tolerance.
    """
    if not link:
        raise OptionError("a task of the requested link needs its name: link='wam_tip'")
    if task.position != AXES or any(task.position_tolerance):
        raise OptionError(
            "the position of the requested link is always exact; request another link, and give "
            f"a FrameTask for {link!r}; got {task!r}"
        )
    return _orientation_constraint(task, T, link, frame)


def _check_frame_task(task: FrameTask) -> None:
    """Check that constraints can express the reference and the weight of a task.

    Raises:
        OptionError: If the task has a reference link, or a weight other than 1.
    """
    if task.reference is not None:
        raise OptionError(
            f"a request cannot have the pose of {task.link!r} relative to {task.reference!r}: "
            f"the reference of a constraint does not move during the search; {INSTEAD}"
        )
    if task.weight != 1.0:
        raise OptionError(f"constraints have no weights; got weight {task.weight:g}; {INSTEAD}")


def _position_constraint(task: Task, T: Array, link: str, frame: str) -> PositionConstraint:
    """Return the region of positions within the tolerances of a task around the pose T (4, 4).

    Raises:
        OptionError: If the task has weights, or `round` names axes other than xy or xyz.
    """
    _check_weights(task)
    half = [
        max(task.position_tolerance[AXES.index(axis)], MIN_REGION)
        if axis in task.position
        else math.inf
        for axis in AXES
    ]
    lengths = [min(2.0 * length, MAX_POSE_COORDINATE) for length in half]
    place = T.copy()
    if task.frame == "base":
        place[:3, :3] = np.eye(3)
    shape = SolidPrimitive(type=SolidPrimitive.BOX, dimensions=lengths)
    if task.round == AXES:
        shape = SolidPrimitive(type=SolidPrimitive.SPHERE, dimensions=[half[0]])
    elif task.round == "xy":
        radius = min(half[0], 0.5 * MAX_POSE_COORDINATE)
        shape = SolidPrimitive(type=SolidPrimitive.CYLINDER, dimensions=[lengths[2], radius])
    elif task.round:
        raise OptionError(f"regions can be round in xy or xyz; got round={task.round!r}")
    given = PositionConstraint(link_name=link, weight=1.0)
    given.header.frame_id = frame
    given.constraint_region.primitives = [shape]
    given.constraint_region.primitive_poses = [pose_from_matrix(place)]
    return given


def _orientation_constraint(task: Task, T: Array, link: str, frame: str) -> OrientationConstraint:
    """Return the orientations within the tolerances of a task around the pose T (4, 4).

    Raises:
        OptionError: If constraints cannot express the free axes or the tolerances.
    """
    _check_weights(task)
    tolerances = [
        task.rotation_tolerance[AXES.index(axis)] if axis in task.rotation else math.pi
        for axis in AXES
    ]
    is_whole = not any(tolerances) or min(tolerances) >= math.pi
    if task.frame == "base" and task.angles == "vector":
        is_expressible, kind = True, ROTATION_VECTORS
    else:
        # The angles of Rx(a) Ry(b) Rz(c) are rotations about the target's axes if at most one of
        # them differs from zero, and b is at most a quarter turn.
        free = [axis for axis, tolerance in zip(AXES, tolerances, strict=True) if tolerance]
        single = len(free) == 1 and (free[0] != "y" or tolerances[1] < 0.5 * math.pi)
        is_expressible, kind = is_whole or single or task.angles == "euler", EULER_ANGLES
    if not is_expressible:
        raise OptionError(
            "constraints can leave the rotation about x or z of the target free, or the whole "
            f"rotation; for tolerances, use frame='base' or give Task(angles='euler'); got {task!r}"
        )
    given = OrientationConstraint(link_name=link, parameterization=kind, weight=1.0)
    given.header.frame_id = frame
    given.orientation = pose_from_matrix(T).orientation
    for axis, tolerance in zip(AXES, tolerances, strict=True):
        setattr(given, f"absolute_{axis}_axis_tolerance", float(tolerance))
    return given


def _check_weights(task: Task) -> None:
    """Check that a task has no weights of rows.

    Raises:
        OptionError: If a weight differs from 1.
    """
    if any(weight != 1.0 for weight in task.weights or ()):
        raise OptionError(f"constraints have no weights; got {task!r}; {INSTEAD}")
