"""Position constraints of a request."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from shape_msgs.msg import SolidPrimitive

from dls_ik.core.se3 import FARTHEST
from dls_ik.model.rigid import transform
from dls_ik.ros.constraints.bound import Bound, Region
from dls_ik.ros.constraints.place import Place, invalid
from dls_ik.solver.task import Task

MOST_PRIMITIVES = 64


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
        Region(place.pose(given.header, pose, words), _task(primitive, words))
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


def _task(primitive: Any, words: str) -> Task:
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
