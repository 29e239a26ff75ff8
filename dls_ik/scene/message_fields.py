"""Fields of MoveIt's messages: names, numbers, poses, shapes.

A message is anything with its fields as attributes, or a mapping. Positions and quaternions may be
lists, and types of shapes names, as MotionBenchMaker writes them.
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
from dls_ik.scene.shapes import Box, Cylinder, Mesh, Plane, Shape, Sphere, checked_pose
from dls_ik.text import listing, quoted, suggest_names

ADD, REMOVE, APPEND, MOVE = range(4)  # CollisionObject.operation
BOX, SPHERE, CYLINDER, CONE, PRISM = range(1, 6)  # SolidPrimitive.type
KINDS = {"box": BOX, "sphere": SPHERE, "cylinder": CYLINDER, "cone": CONE, "prism": PRISM}
SIDES = 32  # of a cone
MAX_NAME = 256

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
Given = Any  # a message, or a mapping with its fields
PLAIN = (str, bytes, int, float, complex, list, tuple, set, np.ndarray, np.generic)  # neither


def field_of(given: Given, key: str, default: Any = None) -> Any:
    """Return a field, or a default where it is left out or null.

    Raises:
        SceneError: If the value is neither a message nor a mapping.
    """
    if isinstance(given, PLAIN):
        raise SceneError(f"{quoted(given, 60)} has no {key}{shortened(given)}")
    value = given.get(key) if isinstance(given, Mapping) else getattr(given, key, None)
    return default if value is None else value


def record(given: Given, key: str, kind: str) -> Given:
    """Return a field that is a message, without fields if it is left out.

    Raises:
        SceneError: If the value is not a message, or has fields that its type does not have.
    """
    value = field_of(given, key, {})
    try:
        check_fields(value, kind)
    except SceneError as error:
        raise SceneError(f"{key}: {error}") from None
    return value


def is_list(value: Any) -> bool:
    """Return True for a list, a tuple, or an array with rows."""
    return isinstance(value, (list, tuple, array)) or (
        isinstance(value, np.ndarray) and value.ndim > 0
    )


def sequence(given: Given, key: str) -> list[Any]:
    """Return a field that is a list."""
    values = field_of(given, key, ())
    if not is_list(values):
        raise SceneError(f"{key} is a list, not {quoted(values, 60)}{shortened(values)}")
    if len(values) and isinstance(values[-1], str) and values[-1] == "...":
        raise SceneError(f"{key} is cut off{shortened('...')}")
    return list(values)


def shortened(value: Any) -> str:
    """Explain text that stands for the rest of a list; empty for any other value."""
    is_cut = isinstance(value, str) and (value.endswith("...") or value.startswith("<"))
    return ": write it whole, by ros2 topic echo --full-length" if is_cut else ""


def checked_name(value: Any, what: str) -> str:
    """Return a name; it may be empty."""
    if not isinstance(value, str) or len(value) > MAX_NAME or not value.isprintable():
        raise SceneError(
            f"{what} is a name of up to {MAX_NAME} printable characters, not {quoted(value)}"
        )
    return value


def read_number(value: Any, what: str) -> float:
    """Return a finite number."""
    try:
        number = math.nan if isinstance(value, (str, bytes)) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise SceneError(f"{what} is a finite number, not {quoted(value)}{shortened(value)}")
    return number


def read_flag(value: Any, what: str) -> bool:
    """Return a bool."""
    if isinstance(value, (bool, np.bool_)) or (isinstance(value, int) and value in (0, 1)):
        return bool(value)
    raise SceneError(f"{what} is true or false, not {quoted(value)}")


def read_vector(value: Given, axes: str, what: str) -> list[float]:
    """Return numbers of a list, or by the names of axes; axes that are left out are 0."""
    if is_list(value):
        if len(value) != len(axes):
            raise SceneError(f"{what} is {' '.join(axes)}, not {quoted(value)}")
        return [read_number(each, what) for each in value]
    if isinstance(value, Mapping) and not {*value} <= {*axes}:
        raise SceneError(f"{what} is {' '.join(axes)}, not {quoted(value)}")
    defaults = {"w": 1.0}  # as in ROS 2
    return [
        read_number(field_of(value, axis, defaults.get(axis, 0.0)), f"{axis} of {what}")
        for axis in axes
    ]


def read_pose(
    value: Given, what: str, keys: tuple[str, str] = ("position", "orientation")
) -> Array:
    """Return (4, 4); the identity for what is left out."""
    if value is None:
        return np.eye(4)
    if isinstance(value, Mapping) and (wrong := {*value} - {*keys}):
        raise SceneError(f"{what} has {' and '.join(keys)}, not {listing(map(str, wrong))}")
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
    """Return (4, 4) of a Transform."""
    return read_pose(value, what, ("translation", "rotation"))


def read_frame(given: Given) -> str:
    """Return the frame of a message with a header; empty: the planning frame."""
    header = record(given, "header", "Header")
    return checked_name(field_of(header, "frame_id", ""), "frame_id").lstrip("/")


def read_operation(value: Any) -> int:
    """Return an operation, which is a byte: of a message, or a character of its YAML."""
    if isinstance(value, (bytes, str)) and len(value) == 1 and value not in ("0", "1", "2", "3"):
        value = ord(value)
    names = {"add": ADD, "remove": REMOVE, "append": APPEND, "move": MOVE}
    names |= {str(number): number for number in range(4)}
    found = names.get(value.lower(), value) if isinstance(value, str) else value
    if isinstance(found, bool) or not isinstance(found, int) or not ADD <= found <= MOVE:
        raise SceneError(
            f"operation is 0 (add), 1 (remove), 2 (append) or 3 (move), not {quoted(value)}"
        )
    return found


def check_fields(given: Given, kind: str) -> None:
    """Refuse a mapping with other fields than a message has."""
    if isinstance(given, Mapping):
        unknown = [key for key in given if key not in FIELDS[kind]]
        if unknown:
            hint = suggest_names(unknown, FIELDS[kind])
            raise SceneError(f"unknown fields of a {kind}: {listing(map(str, unknown))}; {hint}")
    elif isinstance(given, PLAIN):
        raise SceneError(f"expected a {kind}, not {quoted(given, 60)}{shortened(given)}")


def read_triangles(triangles: Iterable[Given]) -> NDArray[np.int64]:
    """Return (m, 3) indices."""
    rows = [each if is_list(each) else sequence(each, "vertex_indices") for each in triangles]
    try:
        found = np.array(rows).reshape(-1, 3)
        if found.size and found.dtype.kind not in "iu":
            raise ValueError("not integers")
        return found.astype(np.int64)
    except (ValueError, TypeError, OverflowError):
        raise SceneError("a triangle is three indices of vertices") from None


def read_primitive(given: Given) -> Shape:
    """Return the shape of a SolidPrimitive; cones and prisms as meshes around them."""
    check_fields(given, "SolidPrimitive")
    kind = field_of(given, "type", 0)
    kind = KINDS.get(kind.lower(), kind) if isinstance(kind, str) else kind
    sizes = [read_number(each, "a dimension") for each in sequence(given, "dimensions")]
    expected = {BOX: "x, y, z", SPHERE: "its radius", CYLINDER: "height, radius",
                CONE: "height, radius", PRISM: "its height"}  # fmt: skip
    names = {number: name for name, number in KINDS.items()}
    if isinstance(kind, bool) or not isinstance(kind, int) or kind not in expected:
        known = ", ".join(f"{number} ({name})" for name, number in KINDS.items())
        raise SceneError(f"unknown type {quoted(kind)}; known: {known}")
    if len(sizes) != expected[kind].count(",") + 1:
        raise SceneError(
            f"the dimensions of a {names[kind]} are {expected[kind]}, not {len(sizes)} numbers"
        )
    if kind == BOX:
        return Box(np.array(sizes))
    if kind == SPHERE:
        return Sphere(sizes[0])
    if kind == CYLINDER:
        return Cylinder(sizes[1], sizes[0])
    if kind == CONE:
        angles = np.linspace(0.0, 2.0 * np.pi, SIDES, endpoint=False)
        radius = Cylinder(sizes[1], sizes[0]).radius / np.cos(np.pi / SIDES)  # around the circle
        rim = radius * np.column_stack([np.cos(angles), np.sin(angles)])
        return _prism(rim, sizes[0], tip=True)
    points = [
        read_vector(each, "xyz", "a point")[:2]
        for each in sequence(field_of(given, "polygon", {}), "points")
    ]
    return _prism(_hull(points), Sphere(sizes[0]).radius)


def _hull(points: list[list[float]]) -> Array:
    """Return the corners (k, 2) of the convex hull of points, counter-clockwise."""
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
    """Return the mesh over a convex outline (k, 2), centred along z; with a tip at the top."""
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
    """Return the half-space below a plane a x + b y + c z + d = 0."""
    coefficients = [read_number(each, "a coefficient") for each in sequence(given, "coef")]
    if len(coefficients) != 4:
        raise SceneError(f"coef of a plane is a, b, c, d, not {len(coefficients)} numbers")
    normal = np.array(coefficients[:3])
    length = float(np.linalg.norm(normal))
    return Plane(normal, -coefficients[3] / length if length > 0.0 else 0.0)
