# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The planning scene of the robot in use, without ROS: built, changed, published."""

import logging

import numpy as np
import pytest
from robots import URDF

from dls_ik import RobotModel
from dls_ik.errors import DlsIkError, FrameError, SceneError, ScenePendingError
from dls_ik.model.rotations import transform
from dls_ik.ros.arm import Arm
from dls_ik.ros.params import Parameters
from dls_ik.ros.services.robot_scene import MAX_PUBLISH_DELAY, RobotScene, SceneCallbacks
from dls_ik.ros.services.scene_build import SceneBuilder, add_file_objects
from dls_ik.scene import sphere_fit, spheres
from dls_ik.scene.formats import read_scene
from dls_ik.scene.operations import SceneChange
from dls_ik.scene.spheres import sphere_tree
from fuzz.hard_meshes import spikes

PLANAR = (URDF / "planar_2r.urdf").read_text()
NOTHING = SceneChange(())
T_MAP = transform(translation=np.array([0.0, 0.0, 3.0]))


class MapFrame:
    """TF that knows the frame `map`, from the given lookup on."""

    def __init__(self, num_failures=0):
        self.num_failures = num_failures

    def T_root_frame(self, frame, tree, values):
        self.num_failures -= 1
        if frame != "map" or self.num_failures >= 0:
            raise FrameError(f"unknown frame {frame!r}")
        return T_MAP


class Bench:
    """A scene whose callbacks record their calls."""

    def __init__(self, frames=None):
        self.restarts, self.equipped, self.error = 0, [], None
        callbacks = SceneCallbacks(
            lambda arm: {}, lambda *_: None, self.equip, self.await_kernels, self.restart
        )
        self.scene = RobotScene(frames or MapFrame(), callbacks)
        logger = logging.getLogger("bench")
        self.builder = SceneBuilder(self.scene, NOTHING, (), lambda: "", (), logger)

    def equip(self, robot, scene, reason):
        self.equipped.append((robot, scene, reason))

    def await_kernels(self, report):
        report("kernels are compiled")
        if self.error is not None:
            raise self.error

    def restart(self):
        self.restarts += 1

    def use(self, text=PLANAR):
        """Use a robot, and build its scene."""
        robot = RobotModel.from_urdf(text)
        self.scene.arm = Arm(robot, Parameters())
        return robot, self.builder.build(robot)

    def add(self, name, frame="", **header):
        box = {"type": 1, "dimensions": [0.1, 0.1, 0.1]}
        at = {"position": {"x": 0.0, "y": 0.0, "z": 1.0}, "orientation": {"w": 1.0}}
        thing = {"id": name, "pose": at, "primitives": [box], "primitive_poses": [{}]}
        thing["header"] = {"frame_id": frame}
        self.scene.apply({"is_diff": True, "world": {"collision_objects": [thing]}}, False)

    def add_mesh(self, name, mesh):
        """Add a mesh by a message; return the objects that got coarser spheres."""
        triangles = [{"vertex_indices": row} for row in mesh.triangles.tolist()]
        vertices = [dict(zip("xyz", row, strict=True)) for row in mesh.vertices.tolist()]
        at = {"orientation": {"w": 1.0}}
        each = {"triangles": triangles, "vertices": vertices}
        thing = {"id": name, "pose": at, "meshes": [each], "mesh_poses": [at]}
        return self.scene.apply(thing, False).coarse

    def published(self):
        """The objects that the servo loop sees."""
        return set(self.equipped[-1][1].snapshot.objects)


@pytest.fixture
def bench():
    return Bench()


def test_a_scene_is_pending_until_it_is_built(bench):
    robot = RobotModel.from_urdf(PLANAR)
    with pytest.raises(ScenePendingError, match="prepared"):
        bench.scene.find(robot.tree)
    with pytest.raises(SceneError, match="no robot yet"):
        bench.add("early")
    robot, was_refused = bench.use()
    assert not was_refused
    assert bench.scene.find(robot.tree) is bench.scene.entry.scene
    assert bench.equipped[-1][0] is robot
    assert bench.restarts == 1


def test_a_build_that_fails_gives_its_reason_and_can_be_repeated(bench):
    bench.error = SceneError("no compiler")
    robot, _ = bench.use()
    assert bench.equipped == [(robot, None, "no compiler")]
    with pytest.raises(SceneError, match="no compiler") as caught:
        bench.scene.find(robot.tree)
    assert not isinstance(caught.value, ScenePendingError)
    bench.error = None
    assert bench.builder.build(robot), "changes were refused meanwhile"
    assert bench.scene.find(robot.tree)


def test_changes_are_published_at_most_once_in_a_period(bench):
    bench.use()
    bench.add("a")
    bench.scene.publish(0.0, may_delay=True)
    assert bench.published() == {"a"}
    bench.add("b")
    bench.scene.publish(0.5 * MAX_PUBLISH_DELAY, may_delay=True)
    assert bench.published() == {"a"}
    bench.scene.publish(0.6 * MAX_PUBLISH_DELAY, may_delay=False)
    assert bench.published() == {"a", "b"}
    bench.add("c")
    bench.scene.publish(1.7 * MAX_PUBLISH_DELAY, may_delay=True)
    assert bench.published() == {"a", "b", "c"}


def test_objects_stay_for_a_robot_with_the_same_root_link_only(bench):
    bench.use()
    bench.add("a")
    robot, _ = bench.use()
    assert set(bench.scene.find(robot.tree).objects) == {"a"}
    assert bench.restarts == 1
    robot, _ = bench.use(PLANAR.replace('"base"', '"floor"'))
    assert not bench.scene.find(robot.tree).objects
    assert bench.restarts == 2


def test_a_robot_that_was_replaced_gets_no_scene(bench):
    old = RobotModel.from_urdf(PLANAR)
    bench.use()
    calls = len(bench.equipped)
    assert not bench.builder.build(old)
    assert len(bench.equipped) == calls


def test_poses_in_frames_of_tf_are_transformed(bench):
    robot, _ = bench.use()
    bench.add("a", frame="map")
    assert bench.scene.find(robot.tree).objects["a"][2, 3] == pytest.approx(4.0)
    with pytest.raises(DlsIkError, match="object 'b': unknown frame 'nowhere'"):
        bench.add("b", frame="nowhere")
    assert set(bench.scene.find(robot.tree).objects) == {"a"}


def test_queued_changes_share_one_sphere_fitting_budget(bench, monkeypatch):
    monkeypatch.setattr(sphere_fit, "SHARED_WORK", 2_000_000)
    monkeypatch.setattr(spheres, "kept_folder", lambda: None)
    robot, _ = bench.use()
    bench.scene.renew_budget()
    meshes = iter([spikes(np.random.default_rng(k), 100) for k in range(4)])
    assert bench.add_mesh("a", next(meshes)) == ("a",)
    assert bench.add_mesh("b", next(meshes)) == ("b",)
    snapshot = bench.scene.find(robot.tree).snapshot
    a, b = (snapshot.objects[name].body.parts[0][0] for name in "ab")
    assert len(sphere_tree(a).node) > len(sphere_tree(b).node) == 1
    assert "packed" not in vars(snapshot), "requests have only to pack what is fitted"
    bench.scene.renew_budget()
    bench.add_mesh("c", next(meshes))
    c = bench.scene.find(robot.tree).snapshot.objects["c"].body.parts[0][0]
    assert len(sphere_tree(c).node) > 1


@pytest.mark.parametrize(("num_failures", "is_known"), [(3, True), (100, False)])
def test_file_objects_wait_for_unknown_frames_until_a_timeout(bench, num_failures, is_known):
    robot, _ = bench.use()
    scene, times = bench.scene.find(robot.tree), iter(range(1000))
    change = read_scene(
        {
            "id": "post",
            "header": {"frame_id": "map"},
            "primitives": [{"type": 1, "dimensions": [0.1, 0.1, 0.1]}],
            "primitive_poses": [{"orientation": {"w": 1.0}}],
        }
    )
    fixed = (logging.getLogger("bench"), 10.0, lambda: float(next(times)), lambda period: None)
    if is_known:
        add_file_objects(scene, change, {}, MapFrame(num_failures), *fixed)
        assert set(scene.objects) == {"post"}
    else:
        with pytest.raises(SceneError, match="unknown frame 'map'"):
            add_file_objects(scene, change, {}, MapFrame(num_failures), *fixed)


def test_an_internal_error_ends_a_pending_build(bench):
    robot = RobotModel.from_urdf(PLANAR)
    bench.scene.arm = Arm(robot, Parameters())
    bench.scene.set_pending(robot.tree, "preparing")
    bench.scene.fail("internal error: oops")
    assert bench.equipped == [(robot, None, "internal error: oops")]
    with pytest.raises(SceneError, match="oops"):
        bench.scene.find(robot.tree)
