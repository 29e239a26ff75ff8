# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Conversion of a scene's snapshot to the fields of moveit_msgs/PlanningScene, and to YAML."""

from collections.abc import Iterable, Mapping
from typing import Any

from dls_ik.core.types import Array
from dls_ik.model.rotations import quaternion_from_rotation
from dls_ik.scene.shape_table import kind_of, moveit_parts, sizes_of
from dls_ik.scene.shapes import Body, Mesh, Plane, Shape
from dls_ik.scene.snapshot import SceneSnapshot
from dls_ik.scene.srdf import pair_of

Fields = dict[str, Any]  # values of a message's fields by name; others have their default values


def scene_fields(scene: SceneSnapshot, name: str = "") -> Fields:
    """Return the fields of a PlanningScene message that describes a complete scene.

    A capsule is described by a cylinder and two spheres, because MoveIt has no capsules.

    Args:
        scene: Snapshot.
        name: Name of the scene.
    """
    values = scene.tree.values(scene.values)
    return {
        "name": name,
        "robot_model_name": scene.tree.name,
        "robot_state": {
            "joint_state": {"name": [*values], "position": [*values.values()]},
            "attached_collision_objects": [
                {
                    "link_name": each.link,
                    "object": object_fields(each.body, each.T, each.link),
                    "touch_links": sorted(each.touch_links),
                }
                for each in scene.attached.values()
            ],
        },
        "fixed_frame_transforms": [
            {
                "header": {"frame_id": scene.tree.root},
                "child_frame_id": frame,
                "transform": _pose(T, ("translation", "rotation")),
            }
            for frame, T in scene.frames.items()
        ],
        "allowed_collision_matrix": allowed_fields(scene),
        "link_padding": [
            {"link_name": link, "padding": value} for link, value in scene.padding.items()
        ],
        "link_scale": [{"link_name": link, "scale": value} for link, value in scene.scale.items()],
        "world": {
            "collision_objects": [
                object_fields(each.body, each.T, scene.tree.root, each.subframes)
                for each in scene.objects.values()
            ]
        },
        "is_diff": False,
    }


def allowed_fields(scene: SceneSnapshot) -> Fields:
    """Return the fields of an AllowedCollisionMatrix message for a scene.

    The matrix has a row for each link with geometry, and for each other link or object for which
    the scene has a rule about contacts.
    """
    named = {name for pair in scene.allowed for name in pair}
    names = sorted({*named, *scene.passes, *scene.links})
    rows = []
    for name in names:
        row = []
        for other in names:
            allowed = scene.allowed.get(pair_of(name, other))
            if allowed is None:
                known = [scene.passes[each] for each in (name, other) if each in scene.passes]
                allowed = bool(known) and all(known)
            row.append(bool(allowed) and name != other)
        rows.append({"enabled": row})
    return {
        "entry_names": names,
        "entry_values": rows,
        "default_entry_names": [*scene.passes],
        "default_entry_values": [*scene.passes.values()],
    }


def object_fields(
    body: Body, T: Array, frame: str, subframes: Mapping[str, Array] | None = None
) -> Fields:
    """Return the fields of a CollisionObject message that adds an object.

    Args:
        body: Name and shapes of the object.
        T: ``T_frame_object`` (4, 4).
        frame: Name of the frame in which T is given.
        subframes: ``T_object_subframe`` (4, 4) by name.
    """
    fields: Fields = {"header": {"frame_id": frame}, "pose": _pose(T), "id": body.name}
    for shape, T_part in (part for each in body.parts for part in moveit_parts(*each)):
        key, value = _shape(shape)
        fields.setdefault(f"{key}s" if key != "mesh" else "meshes", []).append(value)
        fields.setdefault(f"{key}_poses", []).append(_pose(T_part))
    if subframes:
        fields["subframe_names"] = [*subframes]
        fields["subframe_poses"] = [_pose(each) for each in subframes.values()]
    return fields


def yaml_text(fields: Fields) -> str:
    """Return the fields of a message as YAML text for ``ros2 topic pub`` and for this package."""
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(fields, Dumper=dumper, sort_keys=False, default_flow_style=None)
    return text


def _shape(shape: Shape) -> tuple[str, Fields]:
    """Return the kind of a shape in a CollisionObject message, and the fields of its message.

    The kind is ``primitive``, ``plane`` or ``mesh``.

    Raises:
        TypeError: If the shape is a capsule.
    """
    if isinstance(shape, Plane):
        return "plane", {"coef": [*shape.normal.tolist(), -shape.offset]}
    if isinstance(shape, Mesh):
        triangles = [{"vertex_indices": corners} for corners in shape.triangles.tolist()]
        vertices = [_vector(vertex, "xyz") for vertex in shape.vertices.tolist()]
        return "mesh", {"triangles": triangles, "vertices": vertices}
    kind, sizes = kind_of(shape), sizes_of(shape)
    if kind.primitive is None:
        raise TypeError(f"a {type(shape).__name__} cannot be written")  # the caller splits it
    dimensions = [sizes[index] for _, index in kind.dimensions]
    return "primitive", {"type": kind.primitive, "dimensions": dimensions}


def _pose(T: Array, keys: tuple[str, str] = ("position", "orientation")) -> Fields:
    """Return the fields of a Pose or Transform message for a pose (4, 4).

    Args:
        T: Pose.
        keys: Names of the fields for the position and for the quaternion.
    """
    position, orientation = keys
    quaternion = quaternion_from_rotation(T[:3, :3])
    return {
        position: _vector(T[:3, 3].tolist(), "xyz"),
        orientation: _vector(quaternion, "xyzw"),
    }


def _vector(values: Iterable[float], axes: str) -> dict[str, float]:
    """Return a vector or quaternion as a mapping of component names to numbers.

    Args:
        values: Components.
        axes: Names of the components, one letter each, such as ``xyz``.
    """
    return {axis: float(value) for axis, value in zip(axes, values, strict=True)}
