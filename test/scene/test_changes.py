# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Scenes of MoveIt applied to a planning scene: completely, as differences, or not at all."""

import numpy as np
import pytest

from dls_ik import PlanningScene, RobotModel
from dls_ik.errors import JointValueError, SceneError
from dls_ik.model.rotations import inverse, transform

WAM = RobotModel.wam()
Q = np.array([0.0, 0.5, 0.0, 1.5, 0.0, 0.3, 0.0])
UP = {"x": 0.0, "y": 0.0, "z": 0.0, "w": 1.0}


def pose(x, y, z):
    return {"position": {"x": x, "y": y, "z": z}, "orientation": UP}


def at(x, y, z):
    return transform(None, np.array([x, y, z], float))


def ball(name, *centres, frame="", operation=0, radius=0.05, **fields):
    return {
        "id": name, "header": {"frame_id": frame}, "operation": operation,
        "primitives": [{"type": 2, "dimensions": [radius]} for _ in centres],
        "primitive_poses": [pose(*centre) for centre in centres], **fields,
    }  # fmt: skip


def attached(link, item, **fields):
    return {"link_name": link, "object": item, **fields}


def centres(scene, name):
    each = scene.snapshot.objects[name]
    return [(each.T @ T)[:3, 3].round(9).tolist() for _, T in each.body.parts]


@pytest.fixture
def scene():
    scene = PlanningScene(WAM)
    scene.load({"world": {"collision_objects": [ball("a", (2, 0, 0)), ball("b", (0, 2, 0))]}})
    return scene


def test_a_full_scene_replaces_a_difference_adds(scene):
    diff = {"is_diff": True, "world": {"collision_objects": [ball("c", (0, 0, 3))]}}
    scene.load(diff)
    assert set(scene.objects) == {"a", "b", "c"}
    scene.load({"world": {"collision_objects": [ball("d", (0, 0, 3))]}})
    assert set(scene.objects) == {"d"}


def test_object_operations_append_move_and_remove(scene):
    scene.load(ball("a", (2, 0, 1), operation=2))  # appended
    assert centres(scene, "a") == [[2, 0, 0], [2, 0, 1]]
    scene.load({**ball("a", operation=3), "pose": pose(3, 0, 0)})  # moved
    assert centres(scene, "a") == [[3, 0, 0], [3, 0, 1]]
    scene.load([ball("a", operation=1), ball("b", operation=1)])  # removed
    assert scene.objects == {}


def test_object_poses_are_read_in_link_object_subframe_and_fixed_frames(scene):
    """Frames of links, objects, their subframes, and frames that a scene defines."""
    scene.set_joints(WAM.named(Q))
    tip = WAM.tree.pose("wam_link7", WAM.named(Q))
    scene.load(ball("on_link", (0, 0, 0.2), frame="wam_link7"))
    assert scene.objects["on_link"] == pytest.approx(tip @ at(0, 0, 0.2))
    scene.load(ball("a", (2, 0, 0), subframe_names=["top"], subframe_poses=[pose(0, 0, 0.5)]))
    scene.load([ball("on_a", (0, 1, 0), frame="a"), ball("on_top", (0, 1, 0), frame="a/top")])
    assert scene.objects["on_a"] == pytest.approx(at(2, 1, 0))
    assert scene.objects["on_top"] == pytest.approx(at(2, 1, 0.5))
    place = {"translation": {"x": 5.0, "y": 0.0, "z": 0.0}, "rotation": UP}
    known = {"header": {"frame_id": ""}, "child_frame_id": "map", "transform": place}
    world = {"collision_objects": [ball("far", (1, 0, 0), frame="map")]}
    scene.load({"is_diff": True, "fixed_frame_transforms": [known], "world": world})
    assert scene.objects["far"] == pytest.approx(at(6, 0, 0))


def test_attached_objects_are_added_detached_and_taken_from_the_world(scene):
    state = {"joint_state": {"name": [*WAM.joint_names], "position": Q.tolist()}}
    new = ball("tool", (0, 0, 0.1), frame="wam_link7")
    state["attached_collision_objects"] = [attached("wam_link7", new, touch_links=["wam_link6"])]
    scene.load({"robot_state": state})
    assert scene.snapshot.attached["tool"].T == pytest.approx(at(0, 0, 0.1))
    assert scene.snapshot.attached["tool"].touch_links == {"wam_link6"}
    scene.load(attached("wam_link7", ball("tool", operation=1)))  # stays at its current pose
    there = WAM.tree.pose("wam_link7", WAM.named(Q)) @ at(0, 0, 0.1)
    assert scene.objects["tool"] == pytest.approx(there)
    scene.load(attached("wam_link6", ball("tool")))  # the object of the world
    link = WAM.tree.pose("wam_link6", WAM.named(Q))
    assert scene.snapshot.attached["tool"].T == pytest.approx(inverse(link) @ there)
    assert "tool" not in scene.objects
    scene.load(attached("wam_link6", ball("", operation=1)))  # all objects of the link
    assert scene.attached == {}
    assert "tool" in scene.objects


def test_allowed_collision_matrix_is_replaced_completely(scene):
    names = ["a", "wam_link7", "wam_link6"]
    rows = [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    matrix = {
        "entry_names": names,
        "entry_values": [{"enabled": [bool(each) for each in row]} for row in rows],
        "default_entry_names": ["b"],
        "default_entry_values": [True],
    }
    scene.load({"is_diff": True, "allowed_collision_matrix": matrix})
    now = scene.snapshot
    assert now.may_touch("a", "wam_link7")
    assert now.may_touch("b", "wam_link1")
    assert not now.may_touch("a", "wam_link6")
    assert not now.may_touch("wam_base", "wam_link1")  # replaces the complete matrix
    scene.load({"world": {}})
    assert scene.snapshot.may_touch("wam_base", "wam_link1")
    assert not scene.snapshot.may_touch("a", "wam_link7")


def test_link_padding_and_scale_are_applied(scene):
    padding = [{"link_name": "wam_link3", "padding": 0.02}]
    scale = [{"link_name": "wam_link3", "scale": 1.5}]
    scene.load({"is_diff": True, "link_padding": padding, "link_scale": scale})
    assert (scene.snapshot.padding, scene.snapshot.scale) == (
        {"wam_link3": 0.02},
        {"wam_link3": 1.5},
    )


def test_parts_that_are_not_supported_are_named(scene):
    octomap = {"octomap": {"header": {"frame_id": ""}, "data": [1, 2, 3]}}
    (note,) = scene.load({"is_diff": True, "world": {"octomap": octomap}})
    assert "octomap" in note


def test_operations_without_effect_are_noted_and_others_applied(scene):
    """As in MoveIt, a state may be of a larger system; an unknown joint in Python is a mistake."""
    state = {"joint_state": {"name": ["finger", "wam_j2"], "position": [0.1, 0.7]}}
    carried = [
        attached("wam_link7", ball("a"), touch_links=["palm"]),
        attached("wam_link7", ball("b", operation=1)),
    ]
    state |= {"is_diff": True, "attached_collision_objects": carried}
    world = {"collision_objects": [ball("c", operation=1)]}
    assert scene.load({"is_diff": True, "robot_state": state, "world": world}) == (
        "robot_state: the robot has no joint finger; ignored",
        "touch_links of 'a': no link palm",
        "no attached object 'b' to detach; known: a",
        "no object 'c' to remove; known: b",
    )
    assert (scene.snapshot.values, set(scene.attached)) == ({"wam_j2": 0.7}, {"a"})
    with pytest.raises(JointValueError, match="unknown joint 'finger'"):
        scene.set_joints({"finger": 0.1})
    change = [ball("d", (0, 0, 3)), ball("d", operation=1), attached("wam_link7", ball("b"))]
    assert scene.load([*change, attached("wam_link7", ball("b", operation=1))]) == ()


@pytest.mark.parametrize(
    ("last", "message"),
    [
        (ball("c", (0, 0, 0), frame="wam_linc7"), "unknown frame 'wam_linc7'; did you"),
        (ball("wam_link3", (0, 0, 0)), "'wam_link3' is a link of the robot"),
        ({**ball("x", operation=3), "pose": pose(0, 0, 0)}, "no object 'x'"),
        (ball("c", (0, 0, np.nan)), "object 'c'"),
        (attached("hand", ball("c", (0, 0, 0))), "object 'c': unknown link 'hand'"),
        (attached("wam_link7", ball("c")), "no object 'c' in the world"),
    ],
)
def test_invalid_scene_is_refused_and_changes_nothing(scene, last, message):
    before = scene.snapshot
    with pytest.raises(SceneError, match=message):
        scene.load([ball("first", (1, 1, 1)), last])
    assert scene.snapshot is before


def test_saved_scene_is_loaded_with_equal_collisions(scene, tmp_path):
    scene.add_box("box", [0.1, 0.2, 0.3], at(1, 2, 3))
    scene.add_mesh("mesh", np.vstack([np.zeros(3), np.eye(3)]), [[0, 2, 1], [0, 1, 3], [1, 2, 3]])
    scene.add_plane("floor", [0, 0, 1], -0.5)
    scene.save(tmp_path / "world.scene")
    other = PlanningScene(WAM)
    other.load(tmp_path / "world.scene")
    assert {name: T.tolist() for name, T in other.objects.items()} == {
        name: T.tolist() for name, T in scene.objects.items()
    }
    q = WAM.random(200, rng=0)
    assert np.array_equal(other.in_collision(q), scene.in_collision(q))
