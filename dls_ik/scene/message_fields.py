# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Readers of the fields of MoveIt messages: names, numbers, poses, shapes.

A message is an object with the fields as attributes, or a mapping with the fields as keys.
Positions and quaternions may be lists, and types of shapes may be names, because MotionBenchMaker
writes scenes in this form.
"""

import math
from array import array
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.types import Array
from dls_ik.errors import PoseError, SceneError
from dls_ik.model.rotations import rotation_from_quaternion
from dls_ik.model.xml import MAX_NAME_LENGTH
from dls_ik.scene.shape_table import MESSAGE_KINDS
from dls_ik.scene.shapes import Cylinder, Mesh, Plane, Shape, Sphere, checked_pose
from dls_ik.text import listing, quoted, suggest_names

ADD, REMOVE, APPEND, MOVE = range(4)  # values of CollisionObject.operation
# Values of SolidPrimitive.type by name; cones and prisms become meshes
PRIMITIVE_CONE, PRIMITIVE_PRISM = 4, 5
PRIMITIVE_TYPES = {
    **{kind.name: number for number, kind in MESSAGE_KINDS.items()},
    "cone": PRIMITIVE_CONE,
    "prism": PRIMITIVE_PRISM,
}
CONE_SIDES = 32  # number of sides of the mesh that encloses a cone

FIELDS = {
    "PlanningScene": (
        "name", "robot_state", "robot_model_name", "fixed_frame_transforms",
        "allowed_collision_matrix", "link_padding", "link_scale", "object_colors", "world",
        "is_diff",
    ),
    "PlanningSceneWorld": ("collision_objects", "octomap"),
    "AttachedCollisionObject": (
        "link_name", "object", "touch_links", "detach_posture", "weight",
    ),
    "CollisionObject": (
        "header", "pose", "id", "type", "primitives", "primitive_poses", "meshes", "mesh_poses",
        "planes", "plane_poses", "subframe_names", "subframe_poses", "operation",
    ),
    "SolidPrimitive": ("type", "dimensions", "polygon"),
    "RobotState": (
        "joint_state", "multi_dof_joint_state", "attached_collision_objects", "is_diff",
    ),
    "JointState": ("header", "name", "position", "velocity", "effort"),
    "MultiDOFJointState": ("header", "joint_names", "transforms", "twist", "wrench"),
    "AllowedCollisionMatrix": (
        "entry_names", "entry_values", "default_entry_names", "default_entry_values",
    ),
    "TransformStamped": ("header", "child_frame_id", "transform"),
    "LinkPadding": ("link_name", "padding"),
    "LinkScale": ("link_name", "scale"),
    "OctomapWithPose": ("header", "origin", "octomap"),
    "Octomap": ("header", "binary", "id", "resolution", "data"),
    "Header": ("stamp", "frame_id", "seq"),
    "Mesh": ("triangles", "vertices", "resource", "dimensions"),
}  # fmt: skip
Given = Any  # a message, or a mapping with the fields of a message
# Types of values that are not messages
PLAIN_TYPES = (str, bytes, int, float, complex, list, tuple, set, np.ndarray, np.generic)


def field_of(given: Given, key: str, default: Any = None) -> Any:
    """Return the value of the field `key` of a message, or a default if it is missing or null.

    Raises:
        SceneError: If `given` is neither a message nor a mapping.
    """
    if isinstance(given, PLAIN_TYPES):
        raise SceneError(f"{quoted(given, 60)} has no {key}{shortened(given)}")
    value = given.get(key) if isinstance(given, Mapping) else getattr(given, key, None)
    return default if value is None else value


def record(given: Given, key: str, kind: str) -> Given:
    """Return the value of a field of a message, if the value is a message too.

    If the field is missing, return an empty mapping, which stands for a message of default values.

    Args:
        given: Message.
        key: Name of the field.
        kind: Required type of the value, a key of `FIELDS`.

    Raises:
        SceneError: If the value of the field is not a message, or has unknown fields.
    """
    value = field_of(given, key, {})
    try:
        check_fields(value, kind)
    except SceneError as error:
        raise SceneError(f"{key}: {error}") from None
    return value


def is_list(value: Any) -> bool:
    """Return whether a value is a list, a tuple, or an array of at least one dimension."""
    return isinstance(value, (list, tuple, array)) or (
        isinstance(value, np.ndarray) and value.ndim > 0
    )


def sequence(given: Given, key: str) -> list[Any]:
    """Return the value of the field `key` of a message as a list; [] if the field is missing.

    Raises:
        SceneError: If the value is not a list, or is a list that ``ros2 topic echo`` shortened when
            printing it, so that the last entry is "...".
    """
    values = field_of(given, key, ())
    if not is_list(values):
        raise SceneError(f"{key} must be a list; got {quoted(values, 60)}{shortened(values)}")
    if len(values) and isinstance(values[-1], str) and values[-1] == "...":
        raise SceneError(f"{key} is incomplete{shortened('...')}")
    return list(values)


def shortened(value: Any) -> str:
    """Return the end of an error message about a value that ``ros2 topic echo`` shortened.

    The text says how to print the full value; it is empty if the value does not look shortened.
    """
    is_cut = isinstance(value, str) and (value.endswith("...") or value.startswith("<"))
    return "; print all of it with ros2 topic echo --full-length" if is_cut else ""


def checked_name(value: Any, what: str) -> str:
    """Check a name, which may be empty, and return it unchanged.

    Args:
        value: Name.
        what: Description of the name, the start of the error message.

    Raises:
        SceneError: If the value is not printable text, or too long.
    """
    if not isinstance(value, str) or len(value) > MAX_NAME_LENGTH or not value.isprintable():
        raise SceneError(
            f"{what} must be a name of up to {MAX_NAME_LENGTH} printable characters; got "
            f"{quoted(value)}"
        )
    return value


def read_number(value: Any, what: str) -> float:
    """Check that a value is a finite number, and return it as a float.

    Args:
        value: Number.
        what: Description of the number, the start of the error message.

    Raises:
        SceneError: If the value is not a finite number.
    """
    try:
        number = math.nan if isinstance(value, (str, bytes)) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise SceneError(f"{what} must be a finite number; got {quoted(value)}{shortened(value)}")
    return number


def read_flag(value: Any, what: str) -> bool:
    """Check that a value is a boolean or 0 or 1, and return it as a bool.

    Args:
        value: Boolean.
        what: Description of the boolean, the start of the error message.

    Raises:
        SceneError: If the value is not a boolean.
    """
    if isinstance(value, (bool, np.bool_)) or (isinstance(value, int) and value in (0, 1)):
        return bool(value)
    raise SceneError(f"{what} must be true or false; got {quoted(value)}")


def read_vector(value: Given, axes: str, what: str) -> list[float]:
    """Return the components of a vector or quaternion in the order of `axes`.

    Args:
        value: List, or a message with one field per component. If a field is missing, the component
            is 0; the component w is 1.
        axes: Names of the components, one letter each, such as ``xyz``.
        what: Description of the vector, the start of the error message.

    Raises:
        SceneError: If the value has other components, or a component is not a finite number.
    """
    if is_list(value):
        if len(value) != len(axes):
            raise SceneError(f"{what} must be {' '.join(axes)}; got {quoted(value)}")
        return [read_number(each, what) for each in value]
    if isinstance(value, Mapping) and not {*value} <= {*axes}:
        raise SceneError(f"{what} must be {' '.join(axes)}; got {quoted(value)}")
    defaults = {"w": 1.0}  # default of ROS 2 messages
    return [
        read_number(field_of(value, axis, defaults.get(axis, 0.0)), f"{axis} of {what}")
        for axis in axes
    ]


def read_pose(
    value: Given, what: str, keys: tuple[str, str] = ("position", "orientation")
) -> Array:
    """Return the pose (4, 4) [m] that a Pose message describes.

    A missing position is 0, and a missing quaternion is the identity rotation.

    Args:
        value: Message, or None for the identity.
        what: Description of the pose, the start of the error message.
        keys: Names of the fields with the position and with the quaternion.

    Raises:
        SceneError: If the pose is not valid.
    """
    if value is None:
        return np.eye(4)
    if isinstance(value, Mapping) and (wrong := {*value} - {*keys}):
        raise SceneError(f"{what} must have {' and '.join(keys)}; got {listing(map(str, wrong))}")
    position, orientation = (field_of(value, key) for key in keys)
    T = np.eye(4)
    if position is not None:
        T[:3, 3] = read_vector(position, "xyz", f"{keys[0]} of {what}")
    if orientation is not None:
        quaternion = read_vector(orientation, "xyzw", f"{keys[1]} of {what}")
        try:
            T[:3, :3] = rotation_from_quaternion(quaternion)
        except PoseError as error:
            raise SceneError(f"{what}: {error}") from None
    return checked_pose(T, what)


def read_transform(value: Given, what: str) -> Array:
    """Return the pose (4, 4) [m] that a Transform message describes.

    Args:
        value: Message, or None for the identity.
        what: Description of the transform, the start of the error message.

    Raises:
        SceneError: If the transform is not valid.
    """
    return read_pose(value, what, ("translation", "rotation"))


def read_frame(given: Given) -> str:
    """Return the name of the frame in the header of a message, without a leading ``/``.

    The name is "" for the planning frame, also if the header is missing.

    Raises:
        SceneError: If the name is not valid.
    """
    header = record(given, "header", "Header")
    return checked_name(field_of(header, "frame_id", ""), "frame_id").lstrip("/")


def read_operation(value: Any) -> int:
    """Return the operation of a CollisionObject message as `ADD`, `REMOVE`, `APPEND` or `MOVE`.

    Args:
        value: Operation: a number, a byte (the type of the field in the message), or a name.

    Raises:
        SceneError: If the operation is unknown.
    """
    if isinstance(value, (bytes, str)) and len(value) == 1 and value not in ("0", "1", "2", "3"):
        value = ord(value)
    names = {"add": ADD, "remove": REMOVE, "append": APPEND, "move": MOVE}
    names |= {str(number): number for number in range(4)}
    found = names.get(value.lower(), value) if isinstance(value, str) else value
    if isinstance(found, bool) or not isinstance(found, int) or not ADD <= found <= MOVE:
        raise SceneError(
            f"operation must be 0 (add), 1 (remove), 2 (append) or 3 (move); got {quoted(value)}"
        )
    return found


def check_fields(given: Given, kind: str) -> None:
    """Check that a value is a message or mapping, and that a mapping has only known fields.

    Args:
        given: Message, or a mapping with the fields of a message.
        kind: Type of the message, a key of `FIELDS`, which defines the known fields.

    Raises:
        SceneError: If the mapping has an unknown field, or the value is not a mapping or message.
    """
    if isinstance(given, Mapping):
        unknown = [key for key in given if key not in FIELDS[kind]]
        if unknown:
            hint = suggest_names(unknown, FIELDS[kind])
            raise SceneError(f"unknown fields of a {kind}: {listing(map(str, unknown))}; {hint}")
    elif isinstance(given, PLAIN_TYPES):
        raise SceneError(f"expected a {kind}; got {quoted(given, 60)}{shortened(given)}")


def read_triangles(triangles: Iterable[Given]) -> NDArray[np.int64]:
    """Return the vertex indices (m, 3) in m MeshTriangle messages.

    A triangle may also be given as a list of three indices.

    Raises:
        SceneError: If a triangle is not three integers.
    """
    rows = [each if is_list(each) else sequence(each, "vertex_indices") for each in triangles]
    try:
        found = np.array(rows).reshape(-1, 3)
        if found.size and found.dtype.kind not in "iu":
            raise ValueError("not integers")
        return found.astype(np.int64)
    except (ValueError, TypeError, OverflowError):
        raise SceneError("a triangle must be three vertex indices") from None


def read_primitive(given: Given) -> Shape:
    """Return the shape that a SolidPrimitive message describes.

    A cone is returned as a mesh that encloses the cone, and a prism as the mesh of its convex hull.

    Raises:
        SceneError: If the type or the dimensions are not valid.
    """
    check_fields(given, "SolidPrimitive")
    kind = field_of(given, "type", 0)
    kind = PRIMITIVE_TYPES.get(kind.lower(), kind) if isinstance(kind, str) else kind
    sizes = [read_number(each, "a dimension") for each in sequence(given, "dimensions")]
    expected = {
        **{
            number: ", ".join(name for name, _ in each.dimensions)
            for number, each in MESSAGE_KINDS.items()
        },
        PRIMITIVE_CONE: "height, radius",
        PRIMITIVE_PRISM: "height",
    }
    names = {number: name for name, number in PRIMITIVE_TYPES.items()}
    if isinstance(kind, bool) or not isinstance(kind, int) or kind not in expected:
        known = ", ".join(f"{number} ({name})" for name, number in PRIMITIVE_TYPES.items())
        raise SceneError(f"unknown type {quoted(kind)}; known types: {known}")
    if len(sizes) != expected[kind].count(",") + 1:
        raise SceneError(
            f"the dimensions of a {names[kind]} must be {expected[kind]}; got {len(sizes)} numbers"
        )
    if kind in MESSAGE_KINDS:
        return MESSAGE_KINDS[kind].make(*MESSAGE_KINDS[kind].in_order(sizes))
    if kind == PRIMITIVE_CONE:
        angles = np.linspace(0.0, 2.0 * np.pi, CONE_SIDES, endpoint=False)
        # Radius of the corners of a polygon that encloses the base of the cone
        radius = Cylinder(sizes[1], sizes[0]).radius / np.cos(np.pi / CONE_SIDES)
        rim = radius * np.column_stack([np.cos(angles), np.sin(angles)])
        return _prism(rim, sizes[0], tip=True)
    points = [
        read_vector(each, "xyz", "a point")[:2]
        for each in sequence(field_of(given, "polygon", {}), "points")
    ]
    return _prism(_hull(points), Sphere(sizes[0]).radius)


def _hull(points: list[list[float]]) -> Array:
    """Return the corners (k, 2) of the convex hull of points (x, y), in counter-clockwise order.

    Raises:
        SceneError: If the area of the hull is zero.
    """
    ordered = sorted({(x, y) for x, y in points})

    def half(run: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
        kept: list[tuple[float, float]] = []
        for x, y in run:
            while len(kept) > 1 and (
                (kept[-1][0] - kept[-2][0]) * (y - kept[-2][1])
                <= (kept[-1][1] - kept[-2][1]) * (x - kept[-2][0])
            ):
                kept.pop()
            kept.append((x, y))
        return kept[:-1]

    corners = [*half(ordered), *half(reversed(ordered))]
    if len(corners) < 3:
        raise SceneError("the polygon of a prism has no area")
    return np.array(corners)


def _prism(rim: Array, height: float, tip: bool = False) -> Mesh:
    """Return the mesh of a prism or pyramid that extends from z = -height / 2 to z = height / 2.

    Args:
        rim: (k, 2) x and y of the corners of the convex base [m], in counter-clockwise order.
        height: Height [m].
        tip: Whether the mesh is a pyramid with its tip on the z axis, instead of a prism.
    """
    count, half = len(rim), 0.5 * height
    low = np.column_stack([rim, np.full(count, -half)])
    here = np.arange(count)
    after = np.roll(here, -1)
    floor = np.column_stack([np.zeros(count - 2, int), here[2:], here[1:-1]])
    if tip:
        vertices = np.vstack([low, [[0.0, 0.0, half]]])
        sides = np.column_stack([here, after, np.full(count, count)])
        return Mesh(vertices, np.vstack([floor, sides]))
    vertices = np.vstack([low, low + [0.0, 0.0, height]])  # noqa: RUF005
    sides = np.vstack(
        [
            np.column_stack([here, after, after + count]),
            np.column_stack([here, after + count, here + count]),
        ]
    )
    return Mesh(vertices, np.vstack([floor, floor[:, ::-1] + count, sides]))


def read_plane(given: Given) -> Plane:
    """Return the half-space a x + b y + c z + d <= 0 that a Plane message describes.

    Raises:
        SceneError: If the coefficients are not four numbers.
    """
    coefficients = [read_number(each, "a coefficient") for each in sequence(given, "coef")]
    if len(coefficients) != 4:
        raise SceneError(f"coef of a plane must be a, b, c, d; got {len(coefficients)} numbers")
    normal = np.array(coefficients[:3])
    length = float(np.linalg.norm(normal))
    return Plane(normal, -coefficients[3] / length if length > 0.0 else 0.0)
