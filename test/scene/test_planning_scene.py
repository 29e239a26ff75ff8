# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Queries of a planning scene, and its changes."""

import gc
import threading
import weakref

import numpy as np
import pytest
from oracle_scene import Oracle
from scenes import scene_of

from dls_ik import IkSolver, PlanningScene, RobotModel
from dls_ik.errors import JointValueError, RobotModelError, SceneError
from dls_ik.model import share_file
from dls_ik.model.rotations import transform
from dls_ik.scene import sphere_fit
from dls_ik.scene.shapes import Body, Box, Capsule, Mesh, Sphere

WAM = RobotModel.wam()
Q = np.array([0.0, 0.5, 0.0, 1.5, 0.0, 0.3, 0.0])
SMALL = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]) * 0.05
FACES = [[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]]


@pytest.fixture
def scene():
    return PlanningScene(WAM)


def at(x, y, z):
    return transform(None, np.array([x, y, z], float))


def tip_of(q):
    return WAM.fk(q)[:3, 3]


@pytest.mark.parametrize(
    "add",
    [
        lambda scene, T: scene.add_box("thing", [0.05, 0.05, 0.05], T),
        lambda scene, T: scene.add_sphere("thing", 0.03, T),
        lambda scene, T: scene.add_cylinder("thing", 0.03, 0.05, T),
        lambda scene, T: scene.add_capsule("thing", 0.03, 0.05, T),
        lambda scene, T: scene.add_mesh("thing", SMALL, FACES, T),
        lambda scene, T: scene.add_plane("thing", [1, 0, 0], T[0, 3]),
    ],
)
def test_each_shape_collides_at_the_tip_and_not_elsewhere(scene, add):
    add(scene, at(*tip_of(Q)))
    assert scene.in_collision(Q)
    assert {"thing"} < {name for contact in scene.contacts(Q) for name in contact.names}
    scene.remove("thing")
    add(scene, at(-2, 0, 0.5))
    assert not scene.in_collision(Q)
    if scene.snapshot.objects["thing"].body.parts[0][0].__class__.__name__ != "Plane":
        scene.move("thing", at(*tip_of(Q)))
        assert scene.in_collision(Q)


def test_batch_collision_checks_equal_single_checks():
    scene = scene_of("fr3", "table")
    q = scene.robot.random(1500, rng=0)
    many = scene.in_collision(q)
    assert many.tolist() == [scene.in_collision(row) for row in q]
    assert 0 < many.sum() < len(q)


@pytest.mark.parametrize("world", ["shelf", "box"])
def test_distance_and_clearance_equal_those_of_the_oracle(world):
    scene = scene_of("fr3", world)
    free = [q for q in scene.robot.random(12, rng=1) if not scene.in_collision(q)]
    for q in free[:5]:
        closest, oracle, names = scene.distance(q), Oracle(scene.snapshot, q), scene.snapshot.names
        by_name = {name: oracle.distance(*name) for name in set(names)}
        assert closest.distance == pytest.approx(min(by_name.values()), abs=1e-6)
        assert by_name[closest.names] == pytest.approx(closest.distance, abs=1e-6)
        clearance = scene.clearance(q)
        assert clearance == pytest.approx(by_name, abs=1e-6)
        assert list(clearance.values()) == sorted(clearance.values())
        near = scene.clearance(q, within=0.3)
        assert near == {name: d for name, d in clearance.items() if d < 0.3}
        ways = closest.points[1] - closest.points[0]
        assert ways == pytest.approx(closest.distance * closest.normal, abs=1e-5)


def test_contact_depth_of_a_sphere_in_a_plane_is_exact(scene):
    """The depth of a sphere in a plane is the distance of its lowest point below the plane."""
    robot = RobotModel.from_name("planar_2r")
    tip = robot.tips[0]
    scene = PlanningScene(robot, bodies={tip: Body(tip, ((Sphere(0.1), np.eye(4)),))})
    x = robot.fk([0.3, 0.4])[0, 3]
    scene.add_plane("wall", [1, 0, 0], x - 0.06)
    (contact,) = scene.contacts([0.3, 0.4])
    assert contact.depth == pytest.approx(0.04, abs=1e-6)
    assert contact.names == tuple(sorted([tip, "wall"]))
    assert scene.distance([0.3, 0.4]).distance == pytest.approx(-0.04, abs=1e-6)


def test_a_thing_inside_a_closed_mesh_collides():
    """The object touches no triangle, and MoveIt's library alone reports no collision."""
    robot = RobotModel.from_name("planar_2r")
    tip = robot.tips[0]
    scene = PlanningScene(robot, bodies={tip: Body(tip, ((Sphere(0.01), np.eye(4)),))})
    x, y, z = robot.fk([0.3, 0.4])[:3, 3]
    big = (SMALL - SMALL.mean(0)) * 20
    scene.add_mesh("rock", big, FACES, at(x, y, z))
    assert scene.in_collision([0.3, 0.4])
    scene.add_mesh("rock", big, FACES[:3], at(x, y, z))  # a surface with a hole has no inside
    assert not scene.in_collision([0.3, 0.4])


def test_padding_and_scale_reduce_the_clearance(scene):
    scene.add_sphere("ball", 0.05, at(0.5, 0.8, 0.5))
    before = scene.clearance(Q)
    pair = min((pair for pair in before if "ball" in pair), key=before.get)
    link = next(name for name in pair if name != "ball")
    scene.set_padding({link: 0.03})
    assert scene.clearance(Q)[pair] == pytest.approx(before[pair] - 0.03, abs=1e-6)
    scene.set_padding({link: before[pair] + 1e-4})
    assert pair in scene.snapshot.touching_pairs(Q)
    scene.set_padding({link: before[pair] - 1e-4})
    assert pair not in scene.snapshot.touching_pairs(Q)
    scene.set_padding(0.0)
    scene.set_scale({link: 2.0})
    assert scene.clearance(Q)[pair] < before[pair] - 0.01


def test_allowed_pairs_and_objects_do_not_collide(scene):
    scene.add_sphere("ball", 0.1, at(*tip_of(Q)))
    touching = {contact.names for contact in scene.contacts(Q)}
    for pair in touching:
        scene.allow(*pair)
    assert not scene.in_collision(Q)
    scene.allow(*next(iter(touching)), allowed=False)
    assert {contact.names for contact in scene.contacts(Q)} == {next(iter(touching))}
    for pair in touching:
        scene.allow(*pair, allowed=False)
    scene.allow("ball")
    assert scene.in_collision(Q)  # entries of a named pair have priority
    scene.add_sphere("other", 0.1, at(*tip_of(Q)))
    scene.allow("other")
    assert not any("other" in contact.names for contact in scene.contacts(Q))


def test_attached_objects_move_along(scene):
    scene.add_box("tool", [0.04, 0.04, 0.6], at(*(tip_of(Q))))
    scene.attach("tool", "wam_link7", ["wam_link6"], q=Q)
    T_tool = WAM.tree.pose("wam_link7", WAM.named(Q)) @ scene.snapshot.attached["tool"].T
    assert T_tool == pytest.approx(at(*tip_of(Q)), abs=1e-12)
    there = Q + np.array([0.5, 0.2, 0, 0, 0.3, 0, 0])
    T = WAM.tree.pose("wam_link7", WAM.named(there)) @ scene.snapshot.attached["tool"].T
    scene.add_sphere("ball", 0.02, T @ at(0, 0, 0.25))
    assert ("ball", "tool") in {contact.names for contact in scene.contacts(there)}
    assert not scene.in_collision(Q)
    scene.detach("tool", q=there)
    assert scene.objects["tool"] == pytest.approx(T, abs=1e-12)
    assert scene.attached == {}


def test_joints_outside_the_chain_determine_collisions():
    """One of two arms reaches toward the other one."""
    robot = RobotModel.from_urdf(share_file("urdf", "two_wams.urdf"), tip="left_wam_link7")
    others = [name for name in robot.tree.joint if name.startswith("right")]
    scene = PlanningScene(robot)
    found = set()
    for seed in range(40):
        q = robot.random(rng=seed)
        reach = dict(zip(others, (0.8 * (seed % 3), 1.2, 0.0, 0.5), strict=False))
        scene.set_joints(reach)  # the right arm reaches toward the left arm, and away
        oracle = Oracle(scene.snapshot, q)
        expected = {pair for pair in set(scene.snapshot.names) if oracle.touch(*pair)}
        assert scene.snapshot.touching_pairs(q) == expected
        found |= expected
    assert found


def test_path_through_a_thin_sheet_collides_at_the_expected_time():
    """The sheet is thinner than the steps of any sampling of the path."""
    robot = RobotModel.from_name("planar_2r")
    tip = robot.tips[0]
    scene = PlanningScene(robot, bodies={tip: Body(tip, ((Sphere(0.001), np.eye(4)),))})
    q0, q1 = np.array([0.2, 0.5]), np.array([1.2, 0.5])
    x, y, z = robot.fk(0.37 * q0 + 0.63 * q1)[:3, 3]
    angle = np.arctan2(y, x)
    across = transform(
        np.array([[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, 1]])
    )
    scene.add_box("sheet", [0.5, 1e-5, 0.5], at(x, y, z) @ across)
    contact = scene.path_in_collision(q0, q1)
    assert contact.names == tuple(sorted([tip, "sheet"]))
    assert contact.time == pytest.approx(0.63, abs=5e-3)
    assert scene.path_in_collision(q0, q0 + 0.5 * (q1 - q0)) is None
    assert scene.path_in_collision(q1, q0).time == pytest.approx(0.37, abs=5e-3)


@pytest.mark.parametrize(("arm", "world"), [("fr3", "shelf"), ("ur5e", "cage"), ("wam", "table")])
def test_path_contacts_agree_with_samples_and_the_oracle(arm, world):
    """No sample before the first contact collides, and the oracle confirms the contact."""
    scene, times = scene_of(arm, world), []
    for seed in range(24):
        q0, q1 = scene.robot.random(2, rng=seed)
        q1 = q0 + 0.8 * (q1 - q0)
        contact = scene.path_in_collision(q0, q1)
        last = 1.0 if contact is None else contact.time
        t = np.linspace(0, 1, 80)
        t = t[t < last]
        assert not scene.in_collision(q0 + t[:, None] * (q1 - q0)).any()
        if contact is not None:
            closest = scene.clearance(q0 + last * (q1 - q0))[contact.names]
            assert closest <= 1e-5
            times.append(last)
    assert any(time > 0 for time in times)


def test_prismatic_joint_path_collides_at_the_expected_time():
    """A slide moves a ball through a sheet."""
    robot = RobotModel.from_dh([{"kind": "prismatic", "lower": 0.0, "upper": 2.0}])
    tip = robot.tips[0]
    scene = PlanningScene(robot, bodies={tip: Body(tip, ((Sphere(0.01), np.eye(4)),))})
    scene.add_box("sheet", [1, 1, 1e-4], at(0, 0, 1.3))
    contact = scene.path_in_collision([0.0], [2.0])
    assert contact.time == pytest.approx((1.3 - 0.01 - 5e-5) / 2, abs=1e-5)


def test_snapshots_do_not_change(scene):
    scene.add_sphere("ball", 0.1, at(*tip_of(Q)))
    before = scene.snapshot
    scene.remove("ball")
    assert before.in_collision(Q[None])[0]
    assert not scene.in_collision(Q)


def test_threads_never_see_a_partially_changed_scene(scene):
    """A ball jumps between two positions, both in collision: no thread sees it at neither."""
    other = Q + np.array([0.4, 0, 0, 0, 0, 0, 0])
    places = at(*tip_of(Q)), at(*tip_of(other))
    scene.add("ball", [(Sphere(0.05), places[0]), (Sphere(0.05), places[1])])
    done, misses = threading.Event(), []

    def ask():
        while not done.is_set():
            misses.extend([1] if not scene.in_collision(Q) else [])

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for i in range(60):
        order = [(Sphere(0.05), places[i % 2]), (Sphere(0.05), places[1 - i % 2])]
        scene.add("ball", order)
    done.set()
    for thread in threads:
        thread.join()
    assert not misses


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.add_box("wam_link3", [1, 1, 1]), "'wam_link3' is a link of the robot"),
        (lambda s: s.add_box("b", [1, 1, 1], np.ones((4, 4))), "the pose of 'b'"),
        (lambda s: s.add_box("b", [1, 1, np.nan]), "a box must be x, y, z"),
        (lambda s: s.add_box("", [1, 1, 1]), "must not be empty"),  # removal of "" would remove all
        (lambda s: s.add_box(5, [1, 1, 1]), "an object must be a name of up to .*; got 5"),
        (lambda s: s.move("bal", at(0, 0, 0)), "no object 'bal' in the world; did you mean ball"),
        (lambda s: s.remove("x"), "no object 'x' in the world; known are ball, floor"),
        (lambda s: s.attach("ball", "link7"), "unknown link 'link7'"),
        (lambda s: s.attach("ball", "wam_link7", ["hand"]), "unknown link 'hand'"),
        (lambda s: s.attach("floor", "wam_link7"), "has a plane, which is unbounded"),
        (lambda s: s.detach("ball"), "no object 'ball' is attached; known are none"),
        (lambda s: s.allow("ball", "bat"), "no link or object 'bat'; known are ball, floor"),
        (lambda s: s.set_padding(-1.0), "padding of 'wam_base' must be from 0 to 10; got -1.0"),
        (lambda s: s.set_padding({"wam": 0.1}), "unknown link 'wam'"),
        (
            lambda s: s.set_scale({"wam_link1": np.nan}),
            "scale of 'wam_link1' must be from 0.01 to 100",
        ),
        (lambda s: s.save("scene.txt"), "must end in .scene"),
    ],
)
def test_invalid_changes_raise_and_change_nothing(scene, change, message):
    scene.add_sphere("ball", 0.1)
    scene.add_plane("floor")
    before = scene.snapshot
    with pytest.raises(SceneError, match=message):
        change(scene)
    assert scene.snapshot is before


def test_invalid_joint_names_and_shapes_raise(scene):
    with pytest.raises(JointValueError, match="unknown joint 'elbow'"):
        scene.set_joints({"elbow": 1.0})
    with pytest.raises(JointValueError, match="by name"):
        scene.set_joints([0.0] * 7)
    with pytest.raises(JointValueError, match="7 joint values"):
        scene.in_collision([0.0, 1.0])
    with pytest.raises(JointValueError, match="one configuration"):
        scene.distance(np.zeros((2, 7)))


def test_object_pose_may_be_given_as_a_position(scene):
    scene.add_box("box", [0.1, 0.1, 0.1], [1.0, 2.0, 3.0])
    assert np.array_equal(scene.objects["box"], at(1.0, 2.0, 3.0))


def test_names_instead_of_robot_and_scene_objects_raise(scene):
    for make in (PlanningScene, IkSolver):
        with pytest.raises(RobotModelError, match=r"RobotModel.*'wam'"):
            make("wam")
    with pytest.raises(SceneError, match=r"PlanningScene.*shelf\.scene"):
        IkSolver(scene.robot, scene="shelf.scene")


def test_given_bodies_may_change_later_without_effect():
    robot = RobotModel.wam()
    bodies = {robot.tip: Body(robot.tip, ((Sphere(0.1), np.eye(4)),))}
    scene = PlanningScene(robot, bodies=bodies)
    bodies.clear()
    assert list(scene.snapshot.links) == [robot.tip]


def test_robot_without_geometry_raises_unless_bodies_are_given():
    robot = RobotModel.from_dh([{"a": 1.0, "lower": -1.0, "upper": 1.0}])
    with pytest.raises(SceneError, match="no collision geometry; give bodies="):
        PlanningScene(robot)
    with pytest.raises(SceneError, match="unknown link 'x'"):
        PlanningScene(robot, bodies={"x": Body("x", ((Box([1, 1, 1]), np.eye(4)),))})
    scene = PlanningScene(robot, bodies={})
    assert scene.distance([0.0]) is None
    assert not scene.in_collision([0.0])


def test_missing_coal_raises_with_the_install_command(scene, monkeypatch):
    from dls_ik.scene import exact

    def missing(name):
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(exact, "import_module", missing)
    exact.library.cache_clear()
    assert not scene.in_collision(Q)  # spheres decide this
    with pytest.raises(SceneError, match=r"pip install 'dls_ik\[collision\]'"):
        scene.distance(Q)
    exact.library.cache_clear()


def test_repr_counts_links_and_objects(scene):
    scene.add_box("b", [1, 1, 1])
    assert repr(scene) == "PlanningScene(wam7, 8 links with geometry, 1 objects)"
    scene.add("c", Capsule(0.1, 0.1))
    scene.attach("c", "wam_link7")
    assert repr(scene).endswith("1 objects, 1 attached)")


def other_wam(**names):
    """Return a WAM with its own description and renamed links."""
    text = WAM.tree.description.urdf.decode()
    for old, new in names.items():
        text = text.replace(f'"{old}"', f'"{new}"')
    return PlanningScene(RobotModel.from_urdf(text))


def filled(scene):
    scene.add_box("table", [0.4, 0.4, 0.02], at(0.6, 0.0, 0.1))
    scene.add_sphere("cup", 0.03, at(0.0, 0.0, 0.3))
    scene.attach("cup", "wam_link7", T=at(0.0, 0.0, 0.1))
    scene.allow("table", "wam_link1")
    scene.allow("wam_link5", "wam_link7", False)
    scene.set_padding({"wam_link6": 0.01})
    return scene


def test_take_over_with_equal_links_keeps_the_complete_scene(scene):
    filled(scene)
    other = other_wam()
    assert other.take_over(scene) == ()
    before, now = scene.snapshot, other.snapshot
    assert now.tree is not before.tree
    assert now.names == before.names
    assert now.packed[0].tolist() == before.packed[0].tolist()
    assert other.distance(Q).distance == pytest.approx(scene.distance(Q).distance, abs=1e-9)


def test_take_over_with_other_links_drops_objects_without_a_frame(scene):
    filled(scene)
    without_hand = other_wam(wam_link7="hand")
    assert without_hand.take_over(scene) == ("cup",)
    assert set(without_hand.objects) == {"table"}
    assert not without_hand.snapshot.may_touch("hand", "table")
    assert without_hand.snapshot.may_touch("wam_link1", "table")
    elsewhere = other_wam(wam_base="floor")
    assert elsewhere.take_over(scene) == ("table",)
    assert set(elsewhere.attached) == {"cup"}
    assert elsewhere.distance(Q) is not None


def test_without_coal_no_colliding_configuration_is_reported_free(monkeypatch):
    """Shapes one centimetre apart are not reported as touching; the reference is the library."""
    exact = PlanningScene(WAM)
    rng = np.random.default_rng(2)
    exact.add_box("box", [0.3, 0.3, 0.3], at(0.4, 0.2, 0.5))
    exact.add_mesh("mesh", SMALL * 6.0, FACES, at(-0.4, 0.2, 0.5))
    q = WAM.random(300, rng)
    truly = np.array([exact.snapshot.in_collision_by_library(each) for each in q])
    apart = np.array([exact.distance(each).distance for each in q])
    assert 20 < truly.sum() < 280
    monkeypatch.setattr("dls_ik.scene.exact.library", lambda: pytest.fail("the library is used"))
    scene = PlanningScene(WAM, exact=False)
    scene.take_over(exact)
    said = scene.snapshot.in_collision(q)
    assert not (truly & ~said).any()
    assert not (said & (apart > 0.01)).any()
    path = scene.snapshot.path_in_collision(q[truly][0], q[truly][0] + 0.1)
    assert path is not None
    result = IkSolver(WAM, scene=scene).solve(WAM.fk(q[~said][0]), q[~said][0])
    assert result.success
    monkeypatch.undo()
    assert not exact.snapshot.in_collision_by_library(result.q)


def test_caches_of_replaced_shapes_are_freed(monkeypatch):
    monkeypatch.setattr(sphere_fit, "MAX_LEAVES", 16)  # quick fits
    scene, kept = PlanningScene(WAM), []
    for k in range(20):
        mesh = Mesh(SMALL * (1.0 + 0.01 * k), FACES)
        scene.add("thing", mesh, at(*tip_of(Q)))
        assert scene.in_collision(Q)
        assert scene.distance(Q).distance < 0.01
        kept.append(weakref.ref(mesh))
        del mesh
    gc.collect()
    assert sum(each() is not None for each in kept) < 5


def test_scenes_with_different_attached_objects_keep_their_results():
    robot = RobotModel.wam()
    scenes = [PlanningScene(robot) for _ in range(2)]
    for scene, size in zip(scenes, (0.05, 0.1), strict=True):
        scene.add_box("tool", [size] * 3, robot.fk(Q))
        scene.attach("tool", "wam_tip", touch_links=["wam_link6", "wam_link7"])
        scene.distance(Q)
    first = dict(scenes[0].snapshot.kept)
    assert {"frames", "moving", "own pairs", "trees"} <= first.keys()
    for scene in reversed(scenes):
        scene.add_box("box", [0.1, 0.1, 0.1], [2.0, 0.0, 0.0])
        scene.distance(Q)
    now = scenes[0].snapshot.kept
    assert all(now[name] is first[name] for name in ("frames", "moving", "own pairs", "trees"))
