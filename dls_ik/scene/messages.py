# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Conversion of MoveIt messages, or mappings with the same fields, to changes of a scene.

This module does not need ROS: fields are read by name, and constants are compared by value. A
missing field has its default value. Positions and quaternions may be lists, and types of shapes may
be names, because MotionBenchMaker writes scenes in this form.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from dls_ik.core.types import Array
from dls_ik.errors import SceneError
from dls_ik.model.rotations import inverse
from dls_ik.scene.collada import MAX_TRIANGLES
from dls_ik.scene.message_fields import (
    ADD,
    APPEND,
    FIELDS,
    MOVE,
    REMOVE,
    Given,
    check_fields,
    checked_name,
    field_of,
    is_list,
    read_flag,
    read_frame,
    read_number,
    read_operation,
    read_plane,
    read_pose,
    read_primitive,
    read_transform,
    read_triangles,
    read_vector,
    record,
    sequence,
)
from dls_ik.scene.operations import (
    AddObject,
    AttachObject,
    DetachObject,
    MoveObject,
    Operation,
    Parts,
    RemoveAttached,
    RemoveObject,
    ReplaceAllowed,
    ResetAllowed,
    SceneChange,
    SetFrame,
    SetJoints,
    SetPadding,
    SetScale,
)
from dls_ik.scene.shapes import Mesh, MeshLibrary, Shape
from dls_ik.scene.srdf import pair_of
from dls_ik.text import quoted

MAX_OBJECTS = 10_000  # maximum number of objects in a message
MAX_ALLOWED = 1000  # maximum number of names in an allowed collision matrix


def read_messages(given: Given | Sequence[Given], meshes: MeshLibrary | None = None) -> SceneChange:
    """Return the change of a scene that one or more messages describe.

    Args:
        given: A message of type PlanningScene, PlanningSceneWorld, CollisionObject or
            AttachedCollisionObject, or a list of these messages.
        meshes: Reader of the mesh files that ``resource`` fields name. None stands for a reader
            that reads only files in ROS packages.

    Raises:
        SceneError: If a message has another type, an unknown field or a value that is not valid;
            the error message names the object.
    """
    reader = _MessageReader(meshes or MeshLibrary(None))
    several = given if isinstance(given, (list, tuple)) else [given]
    for each in several:
        reader.read(each)
    return SceneChange(tuple(reader.operations), tuple(reader.notes))


def _kind(given: Given) -> str:
    """Return the name of the type of a message, such as ``PlanningScene``, from its fields.

    Raises:
        SceneError: If the fields are not those of a known type.
    """

    def has(*keys: str) -> bool:
        known = given if isinstance(given, Mapping) else dir(given)
        return any(key in known for key in keys)

    if has("link_name"):
        return "AttachedCollisionObject"
    if has("world", "is_diff", "allowed_collision_matrix", "robot_state"):
        return "PlanningScene"
    if has("collision_objects"):
        return "PlanningSceneWorld"
    if has("id", "primitives", "meshes", "planes"):
        return "CollisionObject"
    raise SceneError(
        f"expected a {', '.join([*FIELDS][:3])} or CollisionObject; got {quoted(given, 80)}"
    )


class _MessageReader:
    """Reader of messages that collects the operations that the messages describe.

    Attributes:
        operations: Operations that change a scene, in order.
        notes: Lines of text about parts of messages without effect; an ordered set.
    """

    def __init__(self, meshes: MeshLibrary) -> None:
        self.meshes = meshes
        self.operations: list[Operation] = []
        self.notes: dict[str, None] = {}

    def read(self, given: Given) -> None:
        """Read a message of any supported type, and add its operations to `operations`."""
        if isinstance(given, Mapping) and [*given] == ["scene"]:  # request of ApplyPlanningScene
            given = given["scene"]
        if isinstance(given, (str, bytes)) or given is None:
            raise SceneError(f"expected a message of a scene; got {quoted(given, 80)}")
        kind = _kind(given)
        readers: dict[str, Callable[[Given], None]] = {
            "PlanningScene": self.scene,
            "PlanningSceneWorld": self.world,
            "AttachedCollisionObject": self.attached,
            "CollisionObject": self.object,
        }
        readers[kind](given)

    def scene(self, given: Given) -> None:
        """Add the operations of a PlanningScene message to `operations`."""
        check_fields(given, "PlanningScene")
        is_diff = read_flag(field_of(given, "is_diff", False), "is_diff")
        for each in sequence(given, "fixed_frame_transforms"):
            check_fields(each, "TransformStamped")
            name = checked_name(field_of(each, "child_frame_id", ""), "child_frame_id")
            T = read_transform(
                field_of(each, "transform"), f"the transform of frame {quoted(name)}"
            )
            parent = read_frame(each)
            if name and name != parent:
                self.operations.append(SetFrame(name, parent, T))
        if not is_diff:
            self.operations.append(RemoveObject(""))
        self.state(record(given, "robot_state", "RobotState"), is_diff)
        self.allowed(record(given, "allowed_collision_matrix", "AllowedCollisionMatrix"), is_diff)
        padding = _by_link(given, "link_padding", "padding", "LinkPadding")
        scale = _by_link(given, "link_scale", "scale", "LinkScale")
        self.operations += [SetPadding(padding)] if padding else []
        self.operations += [SetScale(scale)] if scale else []
        self.world(record(given, "world", "PlanningSceneWorld"))

    def state(self, given: Given, is_diff: bool) -> None:
        """Add the operations of a RobotState message to `operations`.

        Args:
            given: Message.
            is_diff: Whether the PlanningScene message that contains the state is a difference. If
                not, all attached objects of the scene are removed first.
        """
        joints = record(given, "joint_state", "JointState")
        many = record(given, "multi_dof_joint_state", "MultiDOFJointState")
        names, positions = sequence(joints, "name"), sequence(joints, "position")
        if len(names) != len(positions):
            raise SceneError(f"joint_state has {len(names)} names and {len(positions)} positions")
        values = {
            checked_name(name, "the name of a joint"): read_number(
                value, f"the position of {quoted(name)}"
            )
            for name, value in zip(names, positions, strict=True)
        }
        if values:
            self.operations.append(SetJoints(values))
        frame, transforms = read_frame(many), sequence(many, "transforms")
        for name, given_pose in zip(sequence(many, "joint_names"), transforms, strict=False):
            T = read_transform(given_pose, f"the transform of joint {quoted(name)}")
            if frame or not np.array_equal(T, np.eye(4)):
                # The transform of a virtual joint is the pose of the robot in the scene's frame.
                self.operations.append(SetFrame(frame, "", inverse(T)))
        attached = sequence(given, "attached_collision_objects")
        is_addition = read_flag(field_of(given, "is_diff", False), "is_diff")
        if not is_diff or ((values or attached) and not is_addition):
            self.operations.append(RemoveAttached())
        for each in attached:
            self.attached(each)

    def allowed(self, given: Given, is_diff: bool) -> None:
        """Add the operation of an AllowedCollisionMatrix message to `operations`.

        Args:
            given: Message.
            is_diff: Whether the PlanningScene message that contains the matrix is a difference. In
                a difference, an empty matrix has no effect. Otherwise an empty matrix restores the
                pairs of links that may touch by default.
        """
        names = [
            checked_name(each, "a name in entry_names") for each in sequence(given, "entry_names")
        ]
        rows = [
            row if is_list(row) else sequence(row, "enabled")
            for row in sequence(given, "entry_values")
        ]
        defaults = sequence(given, "default_entry_names")
        values = sequence(given, "default_entry_values")
        if max(len(names), len(defaults)) > MAX_ALLOWED:
            raise SceneError(
                f"an allowed collision matrix may have at most {MAX_ALLOWED} names; got "
                f"{max(len(names), len(defaults))}"
            )
        if len(rows) != len(names) or any(len(row) != len(names) for row in rows):
            raise SceneError(
                f"an allowed collision matrix with {len(names)} names needs as many rows and "
                "columns"
            )
        if len(defaults) != len(values):
            raise SceneError(
                f"{len(defaults)} default_entry_names need as many default_entry_values; got "
                f"{len(values)}"
            )
        if not names and not defaults:
            if not is_diff:
                self.operations.append(ResetAllowed())
            return
        free = {
            checked_name(name, "a name in default_entry_names"): read_flag(value, "a default entry")
            for name, value in zip(defaults, values, strict=True)
        }
        table = np.array([[read_flag(value, "an entry") for value in row] for row in rows], bool)
        pairs = {}
        for i, name in enumerate(names):
            for j, other in enumerate(names[:i]):
                allowed = bool(table[i, j] and table[j, i])
                # A pair without an entry is checked, unless a default says that it may touch.
                if allowed or name in free or other in free:
                    pairs[pair_of(name, other)] = allowed
        self.operations.append(ReplaceAllowed(pairs, free))

    def world(self, given: Given) -> None:
        """Add the operations of a PlanningSceneWorld message to `operations`."""
        check_fields(given, "PlanningSceneWorld")
        objects = sequence(given, "collision_objects")
        if len(objects) > MAX_OBJECTS:
            raise SceneError(f"a world may have at most {MAX_OBJECTS} objects; got {len(objects)}")
        for each in objects:
            self.object(each)
        octomap = record(record(given, "octomap", "OctomapWithPose"), "octomap", "Octomap")
        if len(sequence(octomap, "data")):
            self.notes["an octomap is not supported; its space counts as free"] = None

    def object(self, given: Given) -> None:
        """Add the operation of a CollisionObject message to `operations`."""
        check_fields(given, "CollisionObject")
        name, operation = _id(given), read_operation(field_of(given, "operation", ADD))
        try:
            self._object(given, name, operation)
        except SceneError as error:
            raise SceneError(f"object {quoted(name)}: {error}") from error

    def _object(self, given: Given, name: str, operation: int) -> None:
        """Add the operation of a CollisionObject message to `operations`.

        Args:
            given: Message.
            name: Name of the object, which was read from the message.
            operation: `ADD`, `REMOVE`, `APPEND` or `MOVE`, which was read from the message.

        Raises:
            SceneError: If the message is not valid.
        """
        frame = read_frame(given)
        if operation == REMOVE:
            self.operations.append(RemoveObject(name))
            return
        if not name:
            raise SceneError("id is missing")
        parts, T = self.shapes(given)
        if operation == MOVE:
            poses = [*sequence(given, "primitive_poses"), *sequence(given, "mesh_poses")]
            if parts:
                self.notes[f"shapes of {quoted(name)} ignored: the operation is MOVE"] = None
            elif len(poses) > 1 or (poses and not np.array_equal(T, np.eye(4))):
                raise SceneError(
                    "shapes cannot be moved within an object; send the object again with ADD"
                )
            elif poses:
                T = read_pose(poses[0], "the pose")
            self.operations.append(MoveObject(name, frame, T))
            return
        if not parts:
            raise SceneError("the object has no shapes")
        names = [
            checked_name(each, "a name in subframe_names")
            for each in sequence(given, "subframe_names")
        ]
        places = sequence(given, "subframe_poses")
        if len(names) != len(places):
            raise SceneError(f"{len(names)} subframe_names, but {len(places)} subframe_poses")
        subframes = {
            each: read_pose(pose, f"subframe {quoted(each)}")
            for each, pose in zip(names, places, strict=True)
        }
        self.operations.append(AddObject(name, parts, frame, T, subframes, operation == APPEND))

    def attached(self, given: Given) -> None:
        """Add the operation of an AttachedCollisionObject message to `operations`."""
        check_fields(given, "AttachedCollisionObject")
        link = checked_name(field_of(given, "link_name", ""), "link_name")
        inner = record(given, "object", "CollisionObject")
        name, operation = _id(inner), read_operation(field_of(inner, "operation", ADD))
        try:
            if operation == REMOVE:
                self.operations.append(DetachObject(name, link))
                return
            if operation == MOVE or not name or not link:
                raise SceneError("operation must be ADD, APPEND or REMOVE, with id and link_name")
            parts, T = self.shapes(inner)
        except SceneError as error:
            raise SceneError(f"attached object {quoted(name)}: {error}") from error
        touch = tuple(
            checked_name(each, "a name in touch_links") for each in sequence(given, "touch_links")
        )
        frame = read_frame(inner)
        self.operations.append(
            AttachObject(name, link, parts, frame, T, touch, operation == APPEND)
        )

    def shapes(self, given: Given) -> tuple[Parts, Array]:
        """Return the shapes and the pose of the object that a CollisionObject message describes.

        Returns:
            Shapes with their poses ``T_object_shape`` (4, 4), and the pose (4, 4) [m] of the object
            in the frame of the message's header.

        Raises:
            SceneError: If a shape or a pose is not valid.
        """
        parts: list[tuple[Shape, Array]] = []
        readers: tuple[tuple[str, str, Callable[[Given], Shape]], ...] = (
            ("primitives", "primitive_poses", read_primitive),
            ("meshes", "mesh_poses", self._mesh),
            ("planes", "plane_poses", read_plane),
        )
        for key, poses_key, read in readers:
            shapes, poses = sequence(given, key), sequence(given, poses_key)
            if shapes and len(poses) > len(shapes):
                raise SceneError(f"{len(shapes)} {key}, but {len(poses)} {poses_key}")
            for i, each in enumerate(shapes):
                what = f"{key}[{i}]"
                try:
                    T = read_pose(poses[i] if i < len(poses) else None, f"the pose of {what}")
                    parts.append((read(each), T))
                except SceneError as error:
                    raise SceneError(f"{what}: {error}") from error
        T = read_pose(field_of(given, "pose"), "the pose")
        # As in MoveIt, the pose of a single shape becomes the pose of the object.
        if len(parts) == 1 and np.array_equal(T, np.eye(4)):
            return ((parts[0][0], np.eye(4)),), parts[0][1]
        return tuple(parts), T

    def _mesh(self, given: Given) -> Mesh:
        """Return the mesh that a Mesh message contains, or that is in the file it names."""
        check_fields(given, "Mesh")
        resource = field_of(given, "resource")
        if resource is not None:
            scale = read_vector(field_of(given, "dimensions", [1.0, 1.0, 1.0]), "xyz", "dimensions")
            return self.meshes.mesh(checked_name(resource, "resource"), scale)
        vertices, triangles = sequence(given, "vertices"), sequence(given, "triangles")
        if max(len(vertices) // 3, len(triangles)) > MAX_TRIANGLES:
            count = max(len(vertices), len(triangles))
            raise SceneError(
                f"a mesh may have at most {MAX_TRIANGLES} triangles; got {count} vertices or "
                "triangles"
            )
        points = [read_vector(each, "xyz", "a vertex") for each in vertices]
        return Mesh(np.array(points, np.float64).reshape(-1, 3), read_triangles(triangles))


def _by_link(given: Given, key: str, value: str, kind: str) -> dict[str, float]:
    """Return numbers by link name, such as paddings, from a field with a list of messages.

    Args:
        given: Message with the field.
        key: Name of the field with the list of messages.
        value: Name of the field with the number in each message of the list.
        kind: Type of the messages in the list, ``LinkPadding`` or ``LinkScale``.
    """
    values = {}
    for row in sequence(given, key):
        check_fields(row, kind)
        link = checked_name(field_of(row, "link_name", ""), f"link_name of {key}")
        values[link] = read_number(field_of(row, value), f"{value} of {quoted(link)}")
    return values


def _id(given: Given) -> str:
    """Return the id, which is the name of the object, in a CollisionObject message.

    Raises:
        SceneError: If the id is not printable text, or too long.
    """
    return checked_name(field_of(given, "id", ""), "the id of an object")
