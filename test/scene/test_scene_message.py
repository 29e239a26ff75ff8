# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""A scene saved as a message is equal to the scene loaded from it."""

import numpy as np
import pytest

from dls_ik import PlanningScene, RobotModel
from dls_ik.errors import SceneError
from dls_ik.model.rotations import rotation_about, transform
from dls_ik.scene.formats import read_yaml
from dls_ik.scene.shapes import Capsule, Cylinder, Plane, Sphere

WAM = RobotModel.wam()
TURN = transform(rotation_about(np.array([0.0, 0.6, 0.8]), 1.0), np.array([0.5, -0.25, 1.0]))


@pytest.fixture(scope="module")
def scene():
    """Return a scene with objects of every kind, attached ones, frames, and all settings."""
    scene = PlanningScene(WAM)
    scene.add_box("box", [0.1, 0.2, 0.3], TURN)
    scene.add("two", ((Sphere(0.1), np.eye(4)), (Cylinder(0.1, 0.5), TURN)), TURN)
    scene.add("rod", Capsule(0.02, 0.3), TURN)
    scene.add_mesh("mesh", np.vstack([np.zeros(3), np.eye(3)]), [[0, 2, 1], [0, 1, 3], [1, 2, 3]])
    scene.add_plane("floor", [0, 0.6, 0.8], -2.0)
    scene.attach("rod", "wam_link7", ["wam_link5"])
    scene.load({
        "is_diff": True,
        "fixed_frame_transforms": [
            {"child_frame_id": "map", "transform": {"translation": [1, 2, 3]}}],
        "world": {"collision_objects": [{
            "id": "tray", "header": {"frame_id": "map"}, "subframe_names": ["rim"],
            "subframe_poses": [{"position": [0, 0, 1]}],
            "primitives": [{"type": 2, "dimensions": [0.1]}]}]},
    })  # fmt: skip
    scene.set_joints({"wam_j2": 0.5})
    scene.set_padding({"wam_link3": 0.01})
    scene.set_scale({"wam_link4": 1.1})
    scene.allow("box", "wam_link2")
    scene.allow("floor")
    scene.allow("two", allowed=False)
    return scene


def test_full_scene_saved_as_yaml_is_loaded_equal(scene, tmp_path):
    path = tmp_path / "all.yaml"
    scene.save(path)
    other = PlanningScene(WAM)
    other.add_box("gone", [1, 1, 1])
    assert other.load(path) == ()
    before, after = scene.snapshot, other.snapshot
    assert [*after.objects] == [*before.objects]
    assert after.attached["rod"].touch_links == before.attached["rod"].touch_links
    for kind in ("objects", "attached"):
        for name, each in getattr(before, kind).items():
            assert np.allclose(getattr(after, kind)[name].T, each.T, atol=1e-12), name
    assert np.allclose(after.frames["map"], before.frames["map"])
    assert np.allclose(after.objects["tray"].subframes["rim"][:3, 3], [0, 0, 1])
    rod = [(type(shape), T[2, 3]) for shape, T in after.attached["rod"].body.parts]
    assert rod == [(Cylinder, 0.0), (Sphere, 0.15), (Sphere, -0.15)]
    ((floor, _),) = after.objects["floor"].body.parts
    assert isinstance(floor, Plane)
    assert np.allclose([*floor.normal, floor.offset], [0, 0.6, 0.8, -2.0])
    assert (after.padding, after.scale) == (before.padding, before.scale)
    assert after.tree.values(after.values) == before.tree.values(before.values)
    names = [*before.links, *before.objects, *before.attached]
    pairs = [(a, b) for a in names for b in names if a < b]
    assert [after.may_touch(*pair) for pair in pairs] == [before.may_touch(*pair) for pair in pairs]
    q = WAM.random(100, rng=0)
    assert np.array_equal(other.in_collision(q), scene.in_collision(q))


def test_scene_text_keeps_objects_and_subframes(scene, tmp_path):
    scene.save(tmp_path / "world.scene")
    other = PlanningScene(WAM)
    other.load(tmp_path / "world.scene")
    assert [*other.objects] == [*scene.objects]
    assert np.allclose(other.snapshot.objects["tray"].subframes["rim"][:3, 3], [0, 0, 1])
    assert np.allclose(other.objects["tray"], scene.objects["tray"])


def test_saved_yaml_has_plain_message_fields(scene, tmp_path):
    scene.save(tmp_path / "a.yml")
    (fields,) = read_yaml((tmp_path / "a.yml").read_text())
    box = fields["world"]["collision_objects"][0]
    assert box["primitives"] == [{"type": 1, "dimensions": [0.1, 0.2, 0.3]}]
    assert box["pose"]["position"] == {"x": 0.5, "y": -0.25, "z": 1.0}


def test_unsupported_file_names_and_subframe_names_are_refused(scene, tmp_path):
    with pytest.raises(SceneError, match=r"\.yaml.*a\.txt"):
        scene.save(tmp_path / "a.txt")
    other = PlanningScene(WAM)
    other.load({"id": "a", "primitives": [{"type": 2, "dimensions": [1]}],
                "subframe_names": ["two words"], "subframe_poses": [{}]})  # fmt: skip
    with pytest.raises(SceneError, match="'two words'"):
        other.save(tmp_path / "a.scene")
    assert not (tmp_path / "a.scene").exists()
