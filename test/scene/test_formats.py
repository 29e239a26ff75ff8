# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Messages and files of scenes have the same meaning as in MoveIt, or are refused."""

import time
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dls_ik.errors import SceneError
from dls_ik.model.rotations import rotation_about, transform
from dls_ik.scene.formats import read_scene, read_yaml, scene_text
from dls_ik.scene.operations import (
    AddObject,
    AttachObject,
    DetachObject,
    MoveObject,
    RemoveAttached,
    RemoveObject,
    ReplaceAllowed,
    ResetAllowed,
    SetFrame,
    SetJoints,
    SetPadding,
    SetScale,
)
from dls_ik.scene.shapes import Body, Box, Capsule, Cylinder, Mesh, Plane, Sphere

BOX = {"type": 1, "dimensions": [1, 2, 3]}
SIDE = {"position": [1, 0, 0], "orientation": [0, 0, 1, 1]}  # a quarter turn about z
TURN = transform(rotation_about(np.array([0, 0, 1.0]), np.pi / 2), [1, 0, 0])
# Scene in the format of MotionBenchMaker
BENCH = """
robot_state:
  joint_state: {name: [j1, j2], position: [0, -0.5]}
  multi_dof_joint_state:
    transforms: [{translation: [0, 0, 0], rotation: [0, 0, 0, 1]}]
    joint_names: [virtual_joint]
allowed_collision_matrix:
  entry_names: [a, b, c]
  entry_values:
    - [false, true, false]
    - [true, false, true]
    - [false, false, false]
fixed_frame_transforms:
  - child_frame_id: world
    transform: {translation: [0, 0, 0], rotation: [0, 0, 0, 1]}
name: ""
world:
  collision_objects:
    - id: Can1
      primitive_poses:
        - {position: [1, 0, 0], orientation: [0, 0, 1, 1]}
      primitives:
        - {type: cylinder, dimensions: [0.14, 0.03]}
"""


def operations(source):
    change = read_scene(source)
    assert not change.notes
    return change.operations


def thing(**fields):
    return {"id": "thing", "primitives": [BOX], **fields}


def message(value):
    """Return a value with its fields as attributes, like a message."""
    if isinstance(value, dict):
        return SimpleNamespace(**{key: message(each) for key, each in value.items()})
    is_record = isinstance(value, list) and value and isinstance(value[0], dict)
    return [message(each) for each in value] if is_record else value


def test_motion_bench_maker_scene_is_read():
    frame, remove, joints, drop, allowed, add = operations(BENCH)
    assert isinstance(frame, SetFrame)
    assert (frame.name, frame.parent) == ("world", "")
    assert (remove, joints, drop) == (
        RemoveObject(""),
        SetJoints({"j1": 0.0, "j2": -0.5}),
        RemoveAttached(),
    )
    # The pair b, c is allowed only in one direction
    assert allowed == ReplaceAllowed({("a", "b"): True}, {})
    assert isinstance(add, AddObject)
    assert (add.name, add.frame, add.appends) == ("Can1", "", False)
    ((can, T),) = add.parts
    assert (type(can), can.length, can.radius) == (Cylinder, 0.14, 0.03)
    assert np.allclose(add.T @ T, TURN)


def test_pose_of_a_single_shape_becomes_the_object_pose():
    (alone,) = operations(thing(primitive_poses=[SIDE]))
    assert np.allclose(alone.T, TURN)
    assert np.array_equal(alone.parts[0][1], np.eye(4))
    (placed,) = operations(thing(pose=SIDE, primitive_poses=[SIDE], header={"frame_id": "/hand"}))
    assert placed.frame == "hand"
    assert np.allclose(placed.T @ placed.parts[0][1], TURN @ TURN)
    (two,) = operations(thing(primitives=[BOX, BOX], primitive_poses=[SIDE]))
    assert np.array_equal(two.T, np.eye(4))
    assert np.allclose(two.parts[0][1], TURN)
    assert np.array_equal(two.parts[1][1], np.eye(4))


@pytest.mark.parametrize("form", [lambda value: value, message], ids=["mapping", "message"])
def test_every_shape_type_is_read_from_mapping_and_message(form):
    triangle = {"vertices": [{"x": 0.0, "y": 0.0, "z": 0.0}, {"x": 1.0, "y": 0.0, "z": 0.0},
                             {"x": 0.0, "y": 1.0, "z": 0.0}],
                "triangles": [{"vertex_indices": np.array([0, 1, 2], np.uint32)}]}  # fmt: skip
    square = {"points": [{"x": x, "y": y, "z": 0.0} for x in (0.0, 1.0, 0.5) for y in (0.0, 1.0)]}
    given = {
        "id": "all",
        "primitives": [
            BOX,
            {"type": 2, "dimensions": [0.5]},
            {"type": 3, "dimensions": [2, 0.5]},
            {"type": 4, "dimensions": [2, 0.5]},
            {"type": 5, "dimensions": [2], "polygon": square},
        ],
        "meshes": [triangle],
        "planes": [{"coef": [0, 0, 2, -4]}],
        "plane_poses": [{"position": {"x": 0.0, "y": 0.0, "z": 1.0}}],
    }
    (add,) = operations(form(given))
    box, sphere, cylinder, cone, prism, mesh, plane = (shape for shape, _ in add.parts)
    assert box.size.tolist() == [1, 2, 3]
    assert (sphere.radius, cylinder.length, cylinder.radius) == (0.5, 2.0, 0.5)
    assert isinstance(plane, Plane)
    assert (plane.normal.tolist(), plane.offset) == ([0, 0, 1], 2.0)
    assert add.parts[-1][1][2, 3] == 1.0
    assert len(mesh.triangles) == 1
    assert cone.is_watertight
    assert cone.vertices[cone.vertices[:, 2] > 0].tolist() == [[0, 0, 1]]  # the tip points up
    angles = np.linspace(0, 2 * np.pi, 999)
    for radius in (0.0, 0.25, 0.5):  # points inside the cone
        rim = np.column_stack([*(radius * np.array([np.cos(angles), np.sin(angles)])),
                               np.full(999, 1.0 - 4.0 * radius)])  # fmt: skip
        assert inside(cone, rim)
    assert prism.is_watertight
    assert np.allclose([prism.vertices.min(0), prism.vertices.max(0)], [[0, 0, -1], [1, 1, 1]])


def inside(mesh, points):
    """Return whether points are below all outward faces of a convex mesh."""
    a, b, c = (mesh.vertices[corner] for corner in mesh.triangles.T)
    normals = np.cross(b - a, c - a)
    return bool((np.einsum("fi,pfi->pf", normals, points[:, None] - a) < 1e-9).all())


def test_add_remove_append_and_move_operations_are_read():
    assert operations(thing(operation=1)) == (RemoveObject("thing"),)
    assert operations({"id": "", "operation": b"\x01"}) == (RemoveObject(""),)
    (appended,) = operations(thing(operation="\x02", subframe_names=["tip"], subframe_poses=[SIDE]))
    assert appended.appends
    assert np.allclose(appended.subframes["tip"], TURN)
    (moved,) = operations({"id": "a", "operation": 3, "pose": SIDE, "header": {"frame_id": "f"}})
    assert isinstance(moved, MoveObject)
    assert (moved.name, moved.frame) == ("a", "f")
    assert np.allclose(moved.T, TURN)
    (moved,) = operations({"id": "a", "operation": "move", "primitive_poses": [SIDE]})
    assert np.allclose(moved.T, TURN)
    assert read_scene(thing(operation=3)).notes == (
        "shapes of 'thing' ignored: the operation is MOVE",
    )


def test_attach_and_detach_operations_are_read():
    attach, detach, every = operations(
        [
            {"link_name": "hand", "touch_links": ["finger"], "object": thing(pose=SIDE)},
            {"link_name": "", "object": {"id": "thing", "operation": 1}},
            {"link_name": "hand", "object": {"operation": 1}},
        ]
    )
    assert isinstance(attach, AttachObject)
    assert (attach.name, attach.link, attach.touch_links) == ("thing", "hand", ("finger",))
    assert np.allclose(attach.T, TURN)
    assert (detach, every) == (DetachObject("thing", ""), DetachObject("", "hand"))
    (taken,) = operations({"link_name": "hand", "object": {"id": "thing"}})
    assert taken.parts == ()


def test_full_scenes_replace_and_differences_add():
    assert operations({"world": {}}) == (RemoveObject(""), RemoveAttached(), ResetAllowed())
    assert operations({"is_diff": True}) == ()
    padding, scale, add = operations(
        {
            "scene": {  # scene of a service
                "is_diff": True,
                "link_padding": [{"link_name": "a", "padding": 0.01}],
                "link_scale": [{"link_name": "a", "scale": 1.1}],
                "world": {"collision_objects": [thing()]},
                "robot_state": {"is_diff": True},
                "object_colors": [{"id": "thing", "color": {"r": 1.0}}],
            }
        }
    )
    assert (padding, scale, add.name) == (SetPadding({"a": 0.01}), SetScale({"a": 1.1}), "thing")
    (drop, attach) = operations(
        {"is_diff": True, "robot_state": {"attached_collision_objects": [
            {"link_name": "hand", "object": thing()}]}}
    )  # fmt: skip
    assert (drop, attach.link) == (RemoveAttached(), "hand")


def test_default_entries_of_the_allowed_matrix_are_read():
    (allowed,) = operations(
        {"is_diff": True, "allowed_collision_matrix": {
            "entry_names": ["a", "b"], "entry_values": [{"enabled": [False, False]}] * 2,
            "default_entry_names": ["b", "c"], "default_entry_values": [True, False]}}
    )  # fmt: skip
    assert allowed == ReplaceAllowed({("a", "b"): False}, {"b": True, "c": False})


def test_multi_dof_joint_places_the_robot_in_the_scene_frame():
    state = {"multi_dof_joint_state": {
        "header": {"frame_id": "map"}, "joint_names": ["virtual_joint"],
        "transforms": [{"translation": [1, 0, 0], "rotation": [0, 0, 1, 1]}]}}  # fmt: skip
    (frame,) = operations({"is_diff": True, "robot_state": {"is_diff": True, **state}})
    assert (frame.name, frame.parent) == ("map", "")
    assert np.allclose(frame.T @ TURN, np.eye(4))


def test_unsupported_parts_are_noted_once():
    octomap = {"octomap": {"octomap": {"data": [1, 2]}}}
    notes = read_scene([octomap | {"collision_objects": []}] * 2).notes
    assert notes == ("an octomap is not supported; its space counts as free",)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (thing(id=""), "id is missing"),
        (thing(id="a\nb"), "the id of an object must be a name"),
        ({"id": "thing"}, "object 'thing': the object has no shapes"),
        (thing(operation=7), "operation must be 0 (add)"),
        (thing(primitive_pose=[SIDE]), "did you mean primitive_poses"),
        (thing(header={"frame": "a"}), "header: unknown fields of a Header: frame"),
        (thing(pose=[1, 2, 3]), "[1, 2, 3] has no position"),
        (thing(pose={"position": [1, 2]}), "position of the pose must be x y z; got [1, 2]"),
        (thing(pose={"position": {"x": np.nan}}), "x of position of the pose must be a finite"),
        (thing(pose={"orientation": [0, 0, 0, 0]}), "0 0 0 0 cannot be normalised"),
        (thing(pose={"position": [1e300, 0, 0]}), "rigid transform"),
        (thing(primitive_poses=[SIDE, SIDE]), "1 primitives, but 2 primitive_poses"),
        (thing(primitives=[{"type": 1, "dimensions": [1, 2]}]),
         "primitives[0]: the dimensions of a box must be x, y, z; got 2 numbers"),
        (thing(primitives=[{"type": 1, "dimensions": [1, 2, np.inf]}]), "a dimension must be"),
        (thing(primitives=[{"type": 1, "dimensions": [1, 2, -3]}]), "from 1e-06"),
        (thing(primitives=[{"type": 9}]), "unknown type 9; known types: 1 (box)"),
        (thing(primitives=[{"type": "bax"}]), "unknown type 'bax'"),
        (thing(primitives=[{"type": 5, "dimensions": [1]}]), "has no area"),
        (thing(primitives="<sequence type: SolidPrimitive, length: 3>"), "--full-length"),
        (thing(planes=[{"coef": [0, 0, 0, 1]}]), "normal of a plane is too short"),
        (thing(planes=[{"coef": [0, 0, 1]}]), "got 3 numbers"),
        (thing(meshes=[{"vertices": [[0, 0, 0], "..."]}]), "--full-length"),
        (thing(meshes=[{"vertices": [[0, 0, 0]], "triangles": [[0, 0, 5]]}]), "from 0 to 0; got 5"),
        (thing(meshes=[{"vertices": [], "triangles": [[0, 1]]}]), "three vertex indices"),
        (thing(meshes=[{"vertices": [], "triangles": [[0, 1, 2]] * 1_000_000}]), "1000000"),
        (thing(meshes=[{"resource": "file:///etc/x.stl"}]), "object 'thing': meshes[0]: "),
        (thing(subframe_names=["a"]), "1 subframe_names, but 0 subframe_poses"),
        ({"id": "a", "operation": 3, "primitive_poses": [SIDE, SIDE]}, "cannot be moved within"),
        ({"link_name": "a", "object": {"operation": 0}}, "with id and link_name"),
        ({"link_name": "a", "object": 5}, "expected a CollisionObject; got 5"),
        ({"robot_state": {"joint_state": {"name": ["a"]}}}, "1 names and 0 positions"),
        ({"robot_state": {"joint_state": {"name": ["a"], "position": ["x"]}}}, "position of 'a'"),
        ({"allowed_collision_matrix": {"entry_names": ["a"]}}, "as many rows and columns"),
        ({"allowed_collision_matrix": {"entry_names": ["a"], "entry_values": [["no"]]}},
         "true or false; got 'no'"),
        ({"allowed_collision_matrix": {"entry_names": ["a"] * 2000}}, "at most 1000 names"),
        ({"world": {"collision_objects": [0] * 20_000}}, "at most 10000 objects"),
        ({"is_diff": "false"}, "is_diff must be true or false"),
        ({"frames": 1}, "expected a PlanningScene"),
        (5, "expected a PlanningScene"),
        (None, "expected a message"),
    ],
)  # fmt: skip
def test_invalid_messages_are_refused_quickly(given, message):
    start = time.process_time()
    with pytest.raises(SceneError) as caught:
        read_scene(given)
    assert message in str(caught.value)
    assert time.process_time() - start < 5.0


# YAML


def test_yaml_numbers_texts_and_documents_are_read():
    text = 'a: [1, 2.5, -1e-3, .inf, true, no, "1", 0x1, ~]\nb: {c: }\n---\n- x: "\\0"\n---\n'
    first, second, third = read_yaml(text)
    assert first == {"a": [1, 2.5, -0.001, np.inf, True, "no", "1", "0x1", None], "b": {"c": None}}
    assert (second, third) == ([{"x": "\0"}], None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: &b [1]\nc: *b", "line 1: anchors"),
        ("\na: !!python/object:os.system x", "line 2: tags"),
        ("a: [1\nb: 2]\n", "not YAML"),
        ("[" * 50 + "]" * 50 + "\n", "nested deeper than"),
        ("id: a\nid: b\n", "line 2: not a key, or a repeated key: 'id'"),
        ("? [1]\n: 2\n", "not a key"),
        ("a: \x07\n", "not YAML"),
        ("world:\n\tcollision_objects: []\n", "line 2: not YAML: it is indented by tabs"),
        (" \n\n", "it is empty"),
        ("---\n---\n", "no document"),
        ("a: " + "x" * 17_000_000 + "\n", "longer than"),
    ],
)
def test_unsupported_yaml_is_refused_with_a_reason(text, message):
    with pytest.raises(SceneError) as caught:
        read_scene(text)
    assert message in str(caught.value)


# Text format of MoveIt

NEW = """(noname)+
* two words
1 0 0
0 0 1 1
2
box
1 2 3
0 0 0
0 0 0 1
0 0 0 0
cone
0.5 2
0 0 1
0 0 0 1
0.1 0.2 0.3 1
1
tip
0 0 0
0 0 0 1
* tri
0 0 0
0 0 0 1
1
mesh
3 1
0 0 0
1 0 0
0 1 0
0 1 2
0 0 0
0 0 0 1
0 0 0 0
0
.
"""
OLD = "old\n* a\n2\ncylinder\n0.5 2\n1 0 0\n0 0 1 1\n0 0 0 0\nplane\n0 0 2 -4\n0 0 0 0 0 0 1\n"
OLD += "0 0 0 0\n* b\n1\nsphere\n0.5\n0 0 0\n0 0 0 1\n0 0 0 0\n.\n"


def test_both_versions_of_scene_text_are_read():
    remove, two, tri = operations(NEW)
    assert remove == RemoveObject("")
    assert (two.name, [*two.subframes]) == ("two words", ["tip"])
    assert np.allclose(two.T, TURN)
    assert [type(shape) for shape, _ in two.parts] == [Box, Mesh]
    assert np.allclose(two.parts[1][0].vertices.max(0)[:2], 0.5, atol=0.01)
    assert tri.parts[0][0].triangles.tolist() == [[0, 1, 2]]
    _, a, b = operations(OLD)
    assert (a.parts[0][0].radius, a.parts[0][0].length) == (0.5, 2.0)
    assert np.allclose(a.parts[0][1], TURN)
    assert (a.parts[1][0].offset, b.parts[0][0].radius) == (2.0, 0.5)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (".\n", "", "line 33: the text ends without"),
        ("box", "bax", "line 6: unknown shape 'bax'; known shapes: box, sphere"),
        ("1 2 3", "1 2 x", "line 7: expected 3 numbers"),
        ("1 2 3", "1 2 0", "line 7: the size of a box must be x, y, z"),
        ("0 0 1 1", "0 0 0 0", "cannot be normalised"),
        ("2\nbox", "-2\nbox", "line 5: expected a count; got '-2'"),
        ("mesh\n3 1", "mesh\n9999999 1", "at most 500000 triangles"),
        ("0 1 2", "0 1 7", "from 0 to 2; got 7"),
        ("* tri", "+ tri", "expected '* NAME' or '.'"),
        ("* tri", "*", "the name of an object must be printable"),
    ],
)
def test_invalid_scene_text_is_refused_with_a_reason(old, new, message):
    with pytest.raises(SceneError) as caught:
        read_scene(NEW.replace(old, new, 1))
    assert message in str(caught.value)


SIZE = st.floats(1e-3, 1e3)
SHAPES = st.one_of(
    st.builds(Box, st.tuples(SIZE, SIZE, SIZE)),
    st.builds(Sphere, SIZE),
    st.builds(Cylinder, SIZE, SIZE),
    st.builds(Plane, st.tuples(SIZE, SIZE, SIZE), st.floats(-10, 10)),
    st.tuples(SIZE, SIZE, SIZE).map(
        lambda p: Mesh([[0, 0, 0], [p[0], 0, 0], [0, p[1], 0], [0, 0, p[2]]],
                       [[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]])
    ),
)  # fmt: skip
AXES = st.tuples(*[st.floats(-1, 1)] * 3).filter(lambda axis: np.linalg.norm(axis) > 0.1)
POSES = st.builds(
    lambda axis, angle, at: transform(rotation_about(axis / np.linalg.norm(axis), angle), at),
    AXES, st.floats(-3, 3), st.tuples(*[st.floats(-10, 10)] * 3),
)  # fmt: skip
BODIES = st.dictionaries(
    st.sampled_from(["a", "b c", "*", ".", "1"]),
    st.tuples(st.lists(st.tuples(SHAPES, POSES), min_size=1, max_size=3), POSES),
    max_size=3,
)


def sizes(shape):
    return np.concatenate([np.ravel(getattr(shape, each)) for each in shape.__dataclass_fields__])


@settings(max_examples=60)
@given(BODIES, st.booleans())
def test_scene_text_that_is_written_is_read_back(drawn, has_poses):
    objects = {name: (Body(name, tuple(parts)), T) for name, (parts, T) in drawn.items()}
    read = operations(scene_text(objects, "my\nscene", has_poses))[1:]
    assert [each.name for each in read] == [*objects]
    for each, (body, T) in zip(read, objects.values(), strict=True):
        for (found, T_found), (shape, T_shape) in zip(each.parts, body.parts, strict=True):
            assert type(found) is type(shape)
            assert np.allclose(sizes(found), sizes(shape), rtol=1e-12)
            assert np.allclose(each.T @ T_found, T @ T_shape, atol=1e-12)


def test_capsules_are_written_as_a_cylinder_and_two_spheres(tmp_path):
    body = Body("c", ((Capsule(0.5, 2.0), TURN),))
    path = tmp_path / "a.scene"
    path.write_text(scene_text({"c": (body, np.eye(4))}))
    _, add = operations(path)
    assert [type(shape) for shape, _ in add.parts] == [Cylinder, Sphere, Sphere]
    assert np.allclose(add.parts[1][1], TURN @ transform(translation=[0, 0, 1]))


def test_mesh_files_are_read_relative_to_the_scene_file(tmp_path):
    (tmp_path / "meshes").mkdir()
    corners = b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n"
    (tmp_path / "meshes" / "part.obj").write_bytes(corners)
    path = tmp_path / "a.yaml"
    path.write_text("id: a\nmeshes:\n- {resource: meshes/part.obj, dimensions: [2, 3, 1]}\n")
    (add,) = operations(path)
    assert add.parts[0][0].vertices.tolist() == [[0, 0, 0], [2, 0, 0], [0, 3, 0]]
    with pytest.raises(SceneError, match="object 'a': meshes"):
        read_scene(path.read_text())  # text has no folder of meshes
    (again,) = read_scene(path.read_text(), folder=tmp_path).operations
    assert len(again.parts[0][0].triangles) == 1


def test_missing_and_invalid_scene_files_are_refused(tmp_path):
    for name, message in (("a.txt", "valid endings: .scene"), ("a.yaml", "No such file")):
        with pytest.raises(SceneError, match=message):
            read_scene(tmp_path / name)
    (tmp_path / "b.yaml").write_bytes(b"\xff\xfe\xfd")
    with pytest.raises(SceneError, match="not UTF-8 text"):
        read_scene(tmp_path / "b.yaml")
