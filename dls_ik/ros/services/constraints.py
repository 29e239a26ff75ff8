# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Constraints of requests, read as intervals for joint positions and regions for link points."""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from geometry_msgs.msg import Pose, PoseStamped

from dls_ik.core.types import MAX_POSE_COORDINATE, Array
from dls_ik.errors import Code, FrameError, LimitsError, PoseError, RequestError
from dls_ik.model.joint import TURN
from dls_ik.model.robot import RobotModel
from dls_ik.model.rotations import inverse, quaternion_from_rotation, transform
from dls_ik.model.tree import Tree
from dls_ik.ros.frames import matrix_from_pose, strip_slash
from dls_ik.ros.services.request import RobotContext, driven_joints
from dls_ik.scene.shape_table import MESSAGE_KINDS
from dls_ik.scene.shapes import Box, Cylinder, Sphere
from dls_ik.solver.task import Task, is_bound
from dls_ik.text import listing, quoted

REGION_TOLERANCE = 1e-6  # [m or rad] tolerance at the boundary of a region, as in the solver
# index: `parameterization` of an orientation constraint
PARAMETERIZATION_ANGLES = ("euler", "vector")
MAX_PRIMITIVES = 64  # maximum number of primitives in one constraint region


def invalid(message: str) -> RequestError:
    """Return the RequestError for a constraint that is not valid or not supported."""
    return RequestError(Code.INVALID_GOAL_CONSTRAINTS, message)


# Joint constraints narrow the limits of the chain's joints; joints outside the chain are checked


class JointInterval(NamedTuple):
    """Interval of allowed positions of a joint [rad or m]."""

    joint: str
    lower: float
    upper: float


def read_interval(given: Any, tree: Tree) -> JointInterval:
    """Return the interval that a ``moveit_msgs/JointConstraint`` allows.

    Raises:
        RequestError: If the joint is unknown, the position is not finite, or a tolerance is
            negative.
    """
    name, position = given.joint_name, given.position
    if name not in tree.mimic_of:
        names = listing(driven_joints(tree))
        raise invalid(f"joint constraint: unknown joint {quoted(name)}; joints: {names}")
    if not abs(position) <= MAX_POSE_COORDINATE:
        raise invalid(
            f"joint constraint of {name!r}: position must be from {-MAX_POSE_COORDINATE:g} "
            f"to {MAX_POSE_COORDINATE:g}; got {position}"
        )
    below, above = given.tolerance_below, given.tolerance_above
    if not (below >= 0.0 and above >= 0.0):
        raise invalid(
            f"joint constraint of {name!r}: tolerance_below and tolerance_above must be at least "
            f"0; got {below} and {above}"
        )
    return JointInterval(name, position - below, position + above)


def narrow_limits(
    robot: RobotModel,
    intervals: Iterable[JointInterval],
    values: Mapping[str, float],
    seed: Array,
) -> RobotModel:
    """Return the robot with joint limits narrowed to intervals; check joints outside the chain.

    Args:
        robot: Robot of the chain.
        intervals: Allowed positions of joints of the chain, or of other joints.
        values: Joint positions by name in the state of the request [rad or m].
        seed: (n,) start configuration [rad or m]. The interval of a continuous joint is shifted by
            full turns to be close to the position of the joint in this configuration.

    Raises:
        RequestError: If an interval and the limits of a joint do not overlap, or a joint outside
            the chain is outside its interval.
    """
    complete = robot.tree.values(values)
    for interval in intervals:
        mimic = robot.tree.mimic_of[interval.joint]
        if mimic.multiplier and mimic.master in robot.joint_names:
            robot = _narrow(robot, interval, seed)
        else:
            _check_position(interval, complete[interval.joint], robot.tree)
    return robot


def _narrow(robot: RobotModel, interval: JointInterval, seed: Array) -> RobotModel:
    mimic = robot.tree.mimic_of[interval.joint]
    ends = sorted((end - mimic.offset) / mimic.multiplier for end in interval[1:])
    lower, upper = np.full(robot.n, -np.inf), np.full(robot.n, np.inf)
    j = robot.joint_names.index(mimic.master)
    lower[j], upper[j] = ends
    try:
        return robot.narrowed(lower, upper, near=seed)
    except LimitsError as error:
        raise RequestError(Code.NO_IK_SOLUTION, f"joint constraint: {error}") from error


def _check_position(interval: JointInterval, value: float, tree: Tree) -> None:
    name, lower, upper = interval
    nearest = value
    if tree.joint[name].kind == "continuous":  # compare modulo full turns
        middle = 0.5 * (lower + upper)
        nearest = middle + math.remainder(value - middle, TURN) if math.isfinite(middle) else middle
    if math.isfinite(nearest) and not lower <= nearest <= upper:
        raise RequestError(
            Code.NO_IK_SOLUTION,
            f"joint constraint: joint {name!r} is at {value}, outside [{lower}, {upper}], and the "
            "solver cannot move this joint",
        )


# Orientation and position constraints become target regions


class Region(NamedTuple):
    """Region of poses: all poses within the tolerances of a task around a target pose."""

    T_base_region: Array  # (4, 4) target pose
    task: Task  # tolerances along and about the axes of the target pose

    def holds(self, T_base_point: Array) -> bool:
        """Return whether a pose (4, 4) is in the region."""
        task, R = self.task, self.T_base_region[:3, :3]
        if task.position:
            p = R.T @ (T_base_point[:3, 3] - self.T_base_region[:3, 3])
            if not _is_in_tolerance(p, task):
                return False
        if not task.rotation:
            return True
        angles = rotation_angles(R.T @ T_base_point[:3, :3], task.angles)
        rows = zip(range(3, 6), task.rotation_tolerance, angles, strict=True)
        return all(
            not is_bound(i, t, task.angles) or abs(a) <= t + REGION_TOLERANCE for i, t, a in rows
        )


class LinkBound(NamedTuple):
    """Constraint on the pose of one point of a link: the pose must be in one of several regions."""

    label: str  # name of the constraint in messages
    link: str
    T_link_point: Array  # (4, 4) pose of the point in the link frame
    regions: tuple[Region, ...]  # alternative regions for the pose; empty: no constraint
    is_orientation: bool  # whether this is an orientation constraint, not a position constraint

    def holds(self, T_base_link: Array) -> bool:
        """Return whether a pose (4, 4) of the link satisfies the constraint."""
        T = T_base_link @ self.T_link_point
        return not self.regions or any(region.holds(T) for region in self.regions)


def _is_in_tolerance(p: Array, task: Task) -> bool:
    """Return whether a point p (3,) [m] is within the position tolerances of a task.

    The point is relative to the target, along its axes. The tolerances are a box, ball or cylinder.
    """
    tolerance = task.position_tolerance
    single = [i for i, axis in enumerate("xyz") if axis not in task.round]
    together = ["xyz".index(axis) for axis in task.round]
    if together and np.linalg.norm(p[together]) > tolerance[together[0]] + REGION_TOLERANCE:
        return False
    return all(abs(p[i]) <= tolerance[i] + REGION_TOLERANCE for i in single)


def rotation_angles(R: Array, angles: str) -> Array:
    """Return a rotation as three angles, shape (3,) [rad].

    Args:
        R: (3, 3) rotation.
        angles: "vector": return the rotation vector; "euler": return the Euler angles a, b, c with
            R = Rx(a) Ry(b) Rz(c).
    """
    if angles == "euler":
        b = math.atan2(R[0, 2], math.hypot(R[0, 0], R[0, 1]))
        return np.array([math.atan2(-R[1, 2], R[2, 2]), b, math.atan2(-R[0, 1], R[0, 0])])
    x, y, z, w = quaternion_from_rotation(R)
    sine = math.hypot(x, y, z)
    return 2.0 * math.atan2(sine, w) / sine * np.array([x, y, z]) if sine else np.zeros(3)


def orientation_bound(given: Any, context: RobotContext, base: str) -> LinkBound:
    """Return a ``moveit_msgs/OrientationConstraint`` as a constraint on a link.

    The tolerances apply to the rotation of the link relative to the given orientation. If this
    rotation is given by Euler angles, these are about the axes of the given orientation. If it is
    given by a rotation vector, the components are along the axes of the frame in the header, as in
    move_group.

    Args:
        given: Constraint message.
        context: Arm in the state of the request.
        base: Name of the base link of the chain.

    Raises:
        RequestError: If the link is unknown, or the quaternion or a tolerance is not valid.
        FrameError: If a frame is unknown.
    """
    label = f"orientation constraint of link {given.link_name[:80]!r}"
    link = _checked_link(given.link_name, context, label)
    task = _rotation_task(given, label)
    pose = Pose(orientation=given.orientation)
    T_base_given = _pose_in_base(given.header, pose, context, base, label)
    T_link_axes = inverse(matrix_from_pose(pose)) if task.angles == "vector" else np.eye(4)
    region = Region(T_base_given @ T_link_axes, task)
    rows = enumerate(task.rotation_tolerance, start=3)
    regions = (region,) if any(is_bound(i, t, task.angles) for i, t in rows) else ()
    return LinkBound(label, link, T_link_axes, regions, is_orientation=True)


def _rotation_task(given: Any, label: str) -> Task:
    tolerances = tuple(getattr(given, f"absolute_{axis}_axis_tolerance") for axis in "xyz")
    if not all(tolerance >= 0.0 for tolerance in tolerances):
        raise invalid(f"{label}: tolerances must be at least 0 rad; got {tolerances}")
    if given.parameterization >= len(PARAMETERIZATION_ANGLES):
        raise invalid(
            f"{label}: parameterization must be 0 (XYZ Euler angles) or 1 (rotation vector); got "
            f"{given.parameterization}"
        )
    angles = PARAMETERIZATION_ANGLES[given.parameterization]
    return Task(position="", rotation_tolerance=tolerances, frame="target", angles=angles)


# Functions that return the task of a position constraint whose region is a shape of a given type.
# Their arguments are the sizes of the shape [m].
REGION_TASKS: dict[type, Callable[..., Task]] = {
    Box: lambda x, y, z: Task.box(0.5 * x, 0.5 * y, 0.5 * z),
    Sphere: Task.ball,
    Cylinder: lambda radius, length: Task.cylinder(radius, 0.5 * length),
}
REGION_KINDS = {i: kind for i, kind in MESSAGE_KINDS.items() if kind.type in REGION_TASKS}
REGION_SHAPES = ", ".join(f"{kind.name} ({number})" for number, kind in REGION_KINDS.items())


def position_bound(given: Any, context: RobotContext, base: str) -> LinkBound:
    """Return a ``moveit_msgs/PositionConstraint`` as a constraint on a link.

    The point `target_point_offset` of the link must be in one of the primitives.

    Args:
        given: Constraint message.
        context: Arm in the state of the request.
        base: Name of the base link of the chain.

    Raises:
        RequestError: If the link is unknown, or the offset or a region is not valid.
        FrameError: If a frame is unknown.
    """
    label = f"position constraint of link {given.link_name[:80]!r}"
    link = _checked_link(given.link_name, context, label)
    region, offset = given.constraint_region, given.target_point_offset
    _check_region(region, label)
    point = (offset.x, offset.y, offset.z)
    if not math.hypot(*point) <= MAX_POSE_COORDINATE:
        raise invalid(f"{label}: target_point_offset must be finite numbers; got {point}")
    regions = tuple(
        Region(
            _pose_in_base(given.header, pose, context, base, label), _region_task(primitive, label)
        )
        for primitive, pose in zip(region.primitives, region.primitive_poses, strict=True)
    )
    T_link_point = transform(translation=np.array(point))
    return LinkBound(label, link, T_link_point, regions, is_orientation=False)


def _check_region(region: Any, label: str) -> None:
    if region.meshes or region.mesh_poses:
        raise invalid(
            f"{label}: meshes are not supported in constraint_region; give {REGION_SHAPES}"
        )
    primitives, poses = len(region.primitives), len(region.primitive_poses)
    if not primitives:
        raise invalid(f"{label}: constraint_region has no primitives; give {REGION_SHAPES}")
    if primitives != poses:
        raise invalid(f"{label}: {primitives} primitives need as many primitive_poses; got {poses}")
    if primitives > MAX_PRIMITIVES:
        raise invalid(
            f"{label}: constraint_region may have at most {MAX_PRIMITIVES} primitives; got "
            f"{primitives}"
        )


def _region_task(primitive: Any, label: str) -> Task:
    kind, dimensions = REGION_KINDS.get(primitive.type), tuple(primitive.dimensions)
    if kind is None:
        number = primitive.type
        raise invalid(
            f"{label}: primitives of type {number} are not supported; give {REGION_SHAPES}"
        )
    names = [name for name, _ in kind.dimensions]
    if len(dimensions) != len(names) or not all(0 < d <= MAX_POSE_COORDINATE for d in dimensions):
        raise invalid(
            f"{label}: dimensions of a {kind.name} must be {', '.join(names)}, lengths above 0 m; "
            f"got {dimensions}"
        )
    return REGION_TASKS[kind.type](*kind.in_order(dimensions))


def _checked_link(name: str, context: RobotContext, label: str) -> str:
    link, tree = strip_slash(name), context.arm.tree
    if link not in tree.child_joints:
        message = f"{label}: unknown link {quoted(name)}; links: {listing(tree.links)}"
        raise RequestError(Code.INVALID_LINK_NAME, message)
    return link


def _pose_in_base(header: Any, pose: Any, context: RobotContext, base: str, label: str) -> Array:
    """Return a ``geometry_msgs/Pose`` as a pose ``T_base_pose`` (4, 4).

    Args:
        header: Message header with the frame of the pose.
        pose: Pose in this frame.
        context: Arm in the state of the request.
        base: Name of the base link of the chain.
        label: Name of the constraint, with which error messages begin.

    Raises:
        FrameError: If the frame is unknown.
        RequestError: If the pose is not valid.
    """
    try:
        return context.pose_in_base(PoseStamped(header=header, pose=pose), base)
    except FrameError as error:
        raise FrameError(f"{label}: {error}") from error
    except PoseError as error:
        raise invalid(f"{label}: {error}") from error
