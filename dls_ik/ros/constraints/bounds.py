"""Bounds on points of links, from orientation and position constraints: regions of a target."""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from geometry_msgs.msg import Pose, PoseStamped
from shape_msgs.msg import SolidPrimitive

from dls_ik.core.se3 import FARTHEST
from dls_ik.core.types import Array
from dls_ik.errors import PoseError
from dls_ik.model.rotations import inverse, quaternion_from_rotation, transform
from dls_ik.ros.arm import Arm
from dls_ik.ros.errors import Code, FrameError, RequestError
from dls_ik.ros.frames import Frames, matrix_from_pose, strip_slash
from dls_ik.solver.slack import is_bound
from dls_ik.solver.task import Task
from dls_ik.text import listing, quoted

NEAR = 1e-6  # [m or rad] beyond a region that counts as within it, as a solver's tolerances
ANGLES = ("euler", "vector")  # by the number of the parameterization
MOST_PRIMITIVES = 64


class Place(NamedTuple):
    """A robot in the state of a request."""

    arm: Arm
    frames: Frames
    values: Mapping[str, float]  # by joint
    base: str  # link

    def pose(self, header: Any, pose: Any, words: str) -> Array:
        """(4, 4) T_base_pose of a ``geometry_msgs/Pose`` in the frame of a header.

        Raises:
            FrameError: an unknown frame.
            RequestError: a pose that is not valid.
        """
        stamped = PoseStamped(header=header, pose=pose)
        try:
            T = self.frames.pose_in_root(stamped, self.arm.tree, self.values, at_stamp=True)
        except FrameError as error:
            raise FrameError(f"{words}: {error}") from error
        except PoseError as error:
            raise invalid(f"{words}: {error}") from error
        return self.arm.base_from_root(T, self.base, self.values)

    def link(self, link: str) -> Array:
        """(4, 4) T_base_link."""
        T_root_link = self.arm.tree.pose(link, self.values)
        return self.arm.base_from_root(T_root_link, self.base, self.values)

    def checked_link(self, name: str, words: str) -> str:
        """The name of a link.

        Raises:
            RequestError: it has no such link.
        """
        link, links = strip_slash(name), self.arm.tree.links
        if link not in self.arm.tree.child_joints:
            raise RequestError(
                Code.INVALID_LINK_NAME,
                f"{words}: unknown link {quoted(name)}; links: {listing(links)}",
            )
        return link


def invalid(message: str) -> RequestError:
    """A constraint that has no meaning, or none here."""
    return RequestError(Code.INVALID_GOAL_CONSTRAINTS, message)


class Region(NamedTuple):
    """Poses around a target that a task with slack is content with."""

    T_base_region: Array  # (4, 4)
    task: Task


class Bound(NamedTuple):
    """A constraint of a request on one link."""

    words: str  # which constraint it is, for messages
    link: str
    T_link_point: Array  # (4, 4)
    regions: tuple[Region, ...]  # one of them is enough; none: no bound at all
    is_orientation: bool

    def holds(self, T_base_link: Array) -> bool:
        """Whether a pose of the link is within it."""
        T = T_base_link @ self.T_link_point
        return not self.regions or any(is_within(region, T) for region in self.regions)


def is_within(region: Region, T_base_point: Array) -> bool:
    """Whether a pose (4, 4) is in a region whose axes are those of its target."""
    task = region.task
    R = region.T_base_region[:3, :3]
    if task.position:
        p = R.T @ (T_base_point[:3, 3] - region.T_base_region[:3, 3])
        if not _is_near(p, task):
            return False
    if task.rotation:
        angles = rotation_angles(R.T @ T_base_point[:3, :3], task.angles)
        slacks = zip(range(3, 6), task.rotation_tolerance, angles, strict=True)
        return all(not is_bound(i, s, task.angles) or abs(a) <= s + NEAR for i, s, a in slacks)
    return True


def _is_near(p: Array, task: Task) -> bool:
    """Whether a point (3,) [m] is in the box, ball or cylinder of a task."""
    slack = task.position_tolerance
    single = [i for i, axis in enumerate("xyz") if axis not in task.round]
    together = ["xyz".index(axis) for axis in task.round]
    if together and np.linalg.norm(p[together]) > slack[together[0]] + NEAR:
        return False
    return all(abs(p[i]) <= slack[i] + NEAR for i in single)


def rotation_angles(R: Array, angles: str) -> Array:
    """(3,) [rad] of a rotation: its rotation vector, or a, b, c of Rx(a) Ry(b) Rz(c)."""
    if angles == "euler":
        b = math.atan2(R[0, 2], math.hypot(R[0, 0], R[0, 1]))
        return np.array([math.atan2(-R[1, 2], R[2, 2]), b, math.atan2(-R[0, 1], R[0, 0])])
    x, y, z, w = quaternion_from_rotation(R)
    sine = math.hypot(x, y, z)
    return 2.0 * math.atan2(sine, w) / sine * np.array([x, y, z]) if sine else np.zeros(3)


def orientation_bound(given: Any, place: Place) -> Bound:
    """What a ``moveit_msgs/OrientationConstraint`` asks for.

    Euler angles are those of the link against the orientation given. The rotation vector of the
    same difference is along the axes of the header's frame, as move_group has it.

    Raises:
        RequestError: an unknown link or frame, a quaternion or tolerances that are not valid.
    """
    words = f"orientation constraint of link {given.link_name[:80]!r}"
    link = place.checked_link(given.link_name, words)
    task = _rotation_task(given, words)
    T_base_given = place.pose(given.header, Pose(orientation=given.orientation), words)
    T_link_axes = np.eye(4)
    if task.angles == "vector":
        T_link_axes = inverse(matrix_from_pose(Pose(orientation=given.orientation)))
    region = Region(T_base_given @ T_link_axes, task)
    bounds = (
        is_bound(i + 3, slack, task.angles) for i, slack in enumerate(task.rotation_tolerance)
    )
    regions = (region,) if any(bounds) else ()
    return Bound(words, link, T_link_axes, regions, is_orientation=True)


def _rotation_task(given: Any, words: str) -> Task:
    tolerances = tuple(getattr(given, f"absolute_{axis}_axis_tolerance") for axis in "xyz")
    if not all(tolerance >= 0.0 for tolerance in tolerances):
        raise invalid(f"{words}: tolerances are angles from 0 on [rad], not {tolerances}")
    if given.parameterization >= len(ANGLES):
        raise invalid(
            f"{words}: the parameterization is 0 (XYZ Euler angles) or 1 (rotation vector), not "
            f"{given.parameterization}"
        )
    angles = ANGLES[given.parameterization]
    return Task(position="", rotation_tolerance=tolerances, frame="target", angles=angles)


class Shape(NamedTuple):
    """A primitive that is solved for."""

    dimensions: tuple[str, ...]
    task: Callable[..., Task]  # of the dimensions


SHAPES = {
    SolidPrimitive.BOX: Shape(("x", "y", "z"), lambda x, y, z: Task.box(0.5 * x, 0.5 * y, 0.5 * z)),
    SolidPrimitive.SPHERE: Shape(("radius",), Task.ball),
    SolidPrimitive.CYLINDER: Shape(
        ("height", "radius"), lambda height, radius: Task.cylinder(radius, 0.5 * height)
    ),
}
VALID = "BOX (1), SPHERE (2), CYLINDER (3)"
NAMES = {SolidPrimitive.CONE: "CONE (4)", 5: "PRISM (5)"}  # Humble has no prism


def position_bound(given: Any, place: Place) -> Bound:
    """What a ``moveit_msgs/PositionConstraint`` asks for: a point in one of the primitives.

    Raises:
        RequestError: an unknown link or frame, an offset or a region that is not valid.
    """
    words = f"position constraint of link {given.link_name[:80]!r}"
    link = place.checked_link(given.link_name, words)
    _check_region(given.constraint_region, words)
    offset = given.target_point_offset
    point = (offset.x, offset.y, offset.z)
    if not math.hypot(*point) <= FARTHEST:
        raise invalid(f"{words}: target_point_offset {point} is not finite, or beyond all reach")
    region = given.constraint_region
    pairs = zip(region.primitives, region.primitive_poses, strict=True)
    regions = tuple(
        Region(place.pose(given.header, pose, words), _region_task(primitive, words))
        for primitive, pose in pairs
    )
    T_link_point = transform(translation=np.array(point))
    return Bound(words, link, T_link_point, regions, is_orientation=False)


def _check_region(region: Any, words: str) -> None:
    if region.meshes or region.mesh_poses:
        raise invalid(f"{words}: meshes are no regions that can be solved for; give {VALID}")
    primitives, poses = len(region.primitives), len(region.primitive_poses)
    if not primitives:
        raise invalid(f"{words}: its constraint_region has no primitives; give {VALID}")
    if primitives != poses:
        raise invalid(f"{words}: {primitives} primitives need as many primitive_poses, not {poses}")
    if primitives > MOST_PRIMITIVES:
        raise invalid(f"{words}: a union of at most {MOST_PRIMITIVES}, not {primitives} primitives")


def _region_task(primitive: Any, words: str) -> Task:
    shape = SHAPES.get(primitive.type)
    if shape is None:
        name = NAMES.get(primitive.type, primitive.type)
        raise invalid(f"{words}: a primitive {name} cannot be solved for; give {VALID}")
    dimensions = tuple(primitive.dimensions)
    if len(dimensions) != len(shape.dimensions) or not all(0 < d <= FARTHEST for d in dimensions):
        raise invalid(
            f"{words}: the dimensions of a primitive of type {primitive.type} are lengths above 0 "
            f"[m]: {', '.join(shape.dimensions)}, not {dimensions}"
        )
    return shape.task(*dimensions)
