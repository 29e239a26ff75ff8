# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Solving with a scene: answers are collision-free, are found, and failures name obstacles."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle_scene import Oracle
from scenes import ARMS, WORLDS, arm, bodies_of, scene_of

from dls_ik import IkSolver, PlanningScene, RobotModel, Status, Task
from dls_ik.core.collision import CHECK_OPEN
from dls_ik.core.se3 import difference, moved
from dls_ik.errors import OptionError, SceneError
from dls_ik.model import share_file
from dls_ik.model.rotations import transform
from dls_ik.scene.shapes import Box, Cylinder, Sphere
from dls_ik.solver.plugins import register_method

KINDS = ("speed", "distance", "manipulability", "clearance")


def is_free(snapshot, q):
    """Tell whether every pair is at a positive distance by the exact library."""
    oracle = Oracle(snapshot, q)
    return not any(oracle.touch(*names) for names in set(snapshot.names))


def free_configurations(scene, count, seed=0):
    q = scene.robot.random(40 * count, rng=np.random.default_rng(seed))
    return q[~scene.in_collision(q)][:count]


def scene_with_own_bodies(name):
    robot, bodies = arm(name)
    return PlanningScene(robot, bodies=bodies)


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("name", ARMS)
def test_poses_with_collision_free_solutions_are_solved(name, world):
    scene = scene_of(name, world)
    q = free_configurations(scene, 10)
    solver = IkSolver(scene.robot, scene=scene, num_candidates=20)
    for kind in KINDS:
        found = solver.solve_batch(scene.robot.fk(q), solve_type=kind, threads=1)
        assert found.success.all(), (kind, found.status)
        assert all(is_free(scene.snapshot, each) for each in found.q)
        assert abs(scene.robot.fk(found.q) - scene.robot.fk(q)).max() < 1e-5


@pytest.mark.campaign
@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("name", [*ARMS, "ur10e", "iiwa14", "gen3"])
def test_many_poses_have_collision_free_answers(name, world):
    scene = scene_of(name, world)
    q = free_configurations(scene, 50, seed=1)
    found = IkSolver(scene.robot, scene=scene).solve_batch(scene.robot.fk(q))
    assert found.success.all()
    assert all(is_free(scene.snapshot, each) for each in found.q)


SHAPES = st.sampled_from(
    [Box([0.3, 0.2, 0.1]), Box([0.02, 0.8, 0.8]), Sphere(0.12), Cylinder(0.1, 0.4)]
)  # fmt: skip
PLACES = st.tuples(*3 * [st.floats(-0.9, 0.9)])


@settings(max_examples=30)
@given(
    st.sampled_from(ARMS), st.lists(st.tuples(SHAPES, PLACES), max_size=5), st.integers(0, 10**6),
    st.sampled_from(KINDS),
)  # fmt: skip
def test_answers_are_collision_free_in_random_worlds(name, objects, seed, kind):
    scene, rng = scene_with_own_bodies(name), np.random.default_rng(seed)
    for i, (shape, place) in enumerate(objects):
        scene.add(f"object {i}", shape, transform(None, np.array(place)))
    solver = IkSolver(scene.robot, scene=scene, max_restarts=40, num_candidates=10)
    found = solver.solve_batch(
        scene.robot.fk(scene.robot.random(4, rng=rng)), solve_type=kind, threads=1
    )
    for one in found:
        assert one.success == is_free(scene.snapshot, one.q)  # all poses are within reach
        assert one.status is (Status.SUCCESS if one else Status.IN_COLLISION)
        assert one.success == (one.pair_in_the_way is None)
        assert one.success == (one.clearance > 0.0)


def test_an_empty_scene_does_not_change_the_answers():
    scene = scene_with_own_bodies("fr3")
    for link in scene.snapshot.links:
        scene.allow(link)
    robot, q = scene.robot, scene.robot.random(50, rng=np.random.default_rng(3))
    for kind in KINDS[:3]:
        among, alone = (
            IkSolver(robot, scene=each).solve_batch(robot.fk(q), q[::-1], solve_type=kind)
            for each in (scene, None)
        )
        np.testing.assert_allclose(among.q, alone.q, atol=1e-6)
        assert np.array_equal(among.restarts, alone.restarts)
    assert np.isnan(alone.clearance).all()
    assert np.isnan(IkSolver(robot).solve(robot.fk(q[0])).clearance)


def test_undecided_distance_bounds_are_checked_exactly():
    scene = scene_of("ur5e", "box")  # no redundancy: only the seed can be the solution
    robot, solver = scene.robot, IkSolver(scene.robot, scene=scene)
    q = robot.random(6000, rng=np.random.default_rng(4))
    q = q[scene.snapshot.states(q)[:, 0] == CHECK_OPEN][:40]
    free = np.array([is_free(scene.snapshot, each) for each in q])
    assert 3 < free.sum() < len(q) - 3
    for each, is_one in zip(q, free, strict=True):
        found = solver.solve(robot.fk(each), each)
        assert (found.success and found.restarts == 0) == is_one
        assert not is_one or abs(found.q - each).max() < 1e-4
    many = solver.solve_batch(robot.fk(q), q)
    assert all(
        np.array_equal(solver.solve(robot.fk(x), x).q, y) for x, y in zip(q, many.q, strict=True)
    )


@pytest.mark.parametrize("task", [None, Task(position_tolerance=1e-3)])
def test_a_redundant_arm_slides_out_of_a_collision(task):
    scene = scene_with_own_bodies("wam")
    robot, slid = scene.robot, 0
    solver = IkSolver(robot, scene=scene, task=task)
    for q in free_configurations(scene, 20, seed=5):
        elbow = robot.tree.pose("wam_link4", robot.named(q))
        scene.add_sphere("lamp", 0.04, elbow)
        found = solver.solve(robot.fk(q), q)
        assert not found or is_free(scene.snapshot, found.q)
        slid += found.success and found.restarts == 0
    assert slid >= 10


def test_blocked_poses_name_the_colliding_pair():
    scene = scene_with_own_bodies("wam")
    robot = scene.robot
    q = np.array([0.0, 0.7, 0.0, 1.6, 0.0, 0.5, 0.0])
    scene.add_box("crate", [0.5, 0.5, 0.5], transform(None, robot.fk(q)[:3, 3]))
    solver = IkSolver(robot, scene=scene, max_restarts=50)
    found = solver.solve(robot.fk(q), timeout=5.0)
    assert found.status is Status.IN_COLLISION
    assert not found
    assert found.position_error < 1e-5  # the pose itself is reached
    assert found.restarts == 0  # the last link is in the crate wherever the others are
    assert "crate" in found.pair_in_the_way
    assert "'crate'" in solver.explain(found)
    assert found.clearance < 0.0
    far = transform(None, [0.0, 0.0, 9.0])
    batch = solver.solve_batch(np.stack([robot.fk(q), far, robot.fk(np.zeros(7))]))
    assert batch.statuses == (Status.IN_COLLISION, Status.UNREACHABLE, Status.SUCCESS)
    assert batch[0].pair_in_the_way == found.pair_in_the_way
    assert solver.solve_all(robot.fk(q)).shape == (0, 7)
    assert "scene=PlanningScene(" in repr(solver)
    scene.remove("crate")
    assert solver.solve(robot.fk(q))


def test_approximate_answers_are_collision_free():
    scene = scene_of("wam", "shelf")
    robot = scene.robot
    T = robot.fk(free_configurations(scene, 15, seed=10))
    T[:, :3, 3] *= 2.0
    among, alone = (
        IkSolver(robot, scene=each, approximate=True, max_restarts=120).solve_batch(T)
        for each in (scene, None)
    )
    assert scene.in_collision(alone.q).any()
    assert not scene.in_collision(among.q[among.success]).any()
    assert among.success.sum() >= 12
    longer = among.position_error - alone.position_error
    assert np.median(longer[among.success]) < 0.1
    one = IkSolver(robot, scene=scene).solve(T[0], approximate=True)
    assert one.success == (not scene.in_collision(one.q))


def test_each_call_uses_one_scene_snapshot():
    """A box moves between two places while threads solve."""
    scene = scene_with_own_bodies("fr3")
    robot, solver = scene.robot, IkSolver(scene.robot, scene=scene)
    T = robot.fk(free_configurations(scene, 60, seed=6))
    places = [transform(None, np.array(p)) for p in ([0.4, 0.3, 0.4], [0.4, -0.3, 0.4])]
    scene.add_box("box", [0.3, 0.3, 0.3], places[0])
    results, seen, k = [], set(), 0
    with ThreadPoolExecutor(2) as pool:
        while len(seen) < 2:  # one round on a busy machine may see a single place
            assert len(results) < 600, "the box jumps, and all calls see it in one place"
            waiting = [pool.submit(solver.solve_batch, T, threads=2) for _ in range(6)]
            while not all(each.done() for each in waiting):
                scene.move("box", places[k % 2])
                k += 1
            results += [each.result() for each in waiting]
            seen = {float(each.scene.objects["box"].T[1, 3]) for each in results}
    for each in results:
        assert not each.scene.in_collision(each.q[each.success]).any()
        alone = IkSolver(robot, scene=scene).search.within(each.scene)
        rows = alone.new_rows(len(T))
        alone.attempt(T[:, None], alone.middle, 1000, rows, False)
        assert np.array_equal(rows.best, each.q)


def test_clearance_solve_type_returns_the_clearest_solution():
    scene = scene_of("fr3", "shelf")
    robot, solver = scene.robot, IkSolver(scene.robot, scene=scene)
    T = robot.fk(free_configurations(scene, 10, seed=7))

    def nearness(q):
        return sum(np.exp(-max(d, 0.0) / 0.02) for d in scene.clearance(q, 0.16).values())

    clearest = solver.solve_batch(T, solve_type="clearance")
    for pose, q in zip(T, clearest.q, strict=True):
        others = [nearness(other) for other in solver.solve_all(pose, 24)]
        assert nearness(q) < min(others) + 0.15
        assert nearness(q) < 0.7 * np.mean(others) + 0.15
    assert clearest.clearance[0] == scene.distance(clearest.q[0]).distance


def test_paths_name_the_obstacles():
    scene = scene_with_own_bodies("wam")
    robot = scene.robot
    q = np.linspace([-0.6, 0.7, 0, 1.6, 0, 0.5, 0], [0.6, 0.7, 0, 1.6, 0, 0.5, 0], 5)
    tip = robot.fk(0.5 * (q[1] + q[2]))[:3, 3]
    scene.add_box("sheet", [0.5, 0.001, 0.5], transform(None, tip + np.array([0.15, 0, 0])))
    path = IkSolver(robot, scene=scene).solve_path(robot.fk(q), q[0])
    assert path.success.all()
    hit = [i for i, each in enumerate(path.contacts) if each is not None]
    assert hit
    for i in hit:
        assert "sheet" in path.contacts[i].names
        at = path.contacts[i].time
        touching = path.q[i - 1] + min(at + 1e-4, 1.0) * (path.q[i] - path.q[i - 1])
        assert scene.in_collision(touching)
    assert [(each.pose, each.names) for each in path.obstructions] == [
        (i, path.contacts[i].names) for i in hit
    ]
    scene.remove("sheet")
    again = IkSolver(robot, scene=scene).solve_path(robot.fk(q), q[0])
    assert again.contacts == (None,) * 5
    assert "in collision" in repr(path)
    assert "in collision" not in repr(again)


def line(T0, T1, count):
    """Return poses on a straight line with a rotation about one axis."""
    way = difference(T1, T0)
    return np.stack([moved(T0, t * way) for t in np.linspace(0.0, 1.0, count)])


def path_faults(scene, q):
    """Return the indices of path steps that collide or jump."""
    return [
        i
        for i in range(1, len(q))
        if abs(q[i] - q[i - 1]).max() > 0.5 or scene.path_in_collision(q[i - 1], q[i])
    ]


def test_paths_avoid_solutions_that_lead_to_a_collision():
    broken = 0
    for world, ends, is_seeded in (
        ("table", [(7, 25), (24, 36)], False),
        ("table", [(4, 23), (5, 24)], True),  # the arm stands at the first pose
        ("shelf", [(11, 37), (12, 37), (22, 2)], False),
    ):
        scene = scene_of("wam", world)
        robot, solver = scene.robot, IkSolver(scene.robot, scene=scene, max_restarts=60)
        q = free_configurations(scene, 60, seed=5)
        for start, end in ends:
            poses, seed = line(*robot.fk(q[[start, end]]), 30), q[start] if is_seeded else None
            path = solver.solve_path(poses, seed)
            assert path.success.all()
            assert not path_faults(scene, path.q)
            assert not path.jumps.any()
            assert not path.obstructions
            assert np.allclose(robot.fk(path.q), poses, atol=1e-5)
            assert not is_seeded or abs(path.q[0] - seed).max() < 1e-3
            way = np.linspace(path.q[:-1], path.q[1:], 9).reshape(-1, 7)
            assert not scene.in_collision(way).any()
            one_by_one = [solver.solve(poses[0], seed).q]
            for T in poses[1:]:
                one_by_one.append(solver.solve(T, one_by_one[-1]).q)
            broken += bool(path_faults(scene, np.array(one_by_one)))
    assert broken >= 4


def test_partial_tasks_and_several_tips_have_collision_free_answers():
    scene = scene_of("fr3", "table")
    robot = scene.robot
    q = free_configurations(scene, 8, seed=8)
    for arm_robot, task in (
        (robot, Task.position_only()),
        (robot, Task.pointing("z")),
        (robot.with_tip(robot.link_names[4]), [Task(), Task.box(0.1, 0.1, 0.1)]),
    ):
        solver = IkSolver(arm_robot, scene=scene, task=task, num_candidates=10)
        for kind in KINDS:
            found = solver.solve_batch(arm_robot.fk(q), solve_type=kind)
            assert found.success.all()
            assert not scene.in_collision(found.q).any()


def test_two_arms_do_not_collide():
    tips = [f"{side}_wam_link7" for side in ("left", "right")]
    robot = RobotModel.from_urdf(share_file("urdf", "two_wams.urdf"), tip=tips)
    scene = PlanningScene(robot)
    scene.add_box("crate", [0.3, 0.3, 0.3], transform(None, np.array([0.5, 0.0, 0.4])))
    q = free_configurations(scene, 10, seed=9)
    found = IkSolver(robot, scene=scene).solve_batch(robot.fk(q))
    assert found.success.all()
    assert all(is_free(scene.snapshot, each) for each in found.q)
    seeds = robot.random(10, rng=np.random.default_rng(9))
    among = IkSolver(robot, scene=scene).solve_batch(robot.fk(q), seeds)
    alone = IkSolver(robot).solve_batch(robot.fk(q), seeds)
    assert among.success.all()
    assert scene.in_collision(alone.q).any()


def test_one_scene_serves_all_chains_of_a_robot():
    robot, bodies = arm("wam")
    scene = PlanningScene(robot, bodies=bodies)
    wrist = RobotModel.from_tree(robot.tree, tip="wam_link5")
    assert wrist.n < robot.n
    solver = IkSolver(wrist, scene=scene, task=Task.position_only())
    q = np.array([0.0, 0.7, 0.0, 1.6, 0.0])
    scene.add_sphere("ball", 0.05, wrist.fk(q) @ transform(None, [0.0, 0.0, 0.3]))
    found = solver.solve(wrist.fk(q), q)
    assert found
    assert not scene.in_collision([*found.q, 0.0, 0.0])


def damped(J, e, state):
    dq = J.T @ np.linalg.solve(J @ J.T + 1e-3 * np.eye(6), e)
    return np.clip(state.q + dq, state.lower, state.upper) - state.q


@pytest.mark.parametrize("method", ["damped_of_own", "kdl_nr_jl"])
def test_plugin_methods_reject_solutions_in_collision(method, own_plugins):
    register_method("damped_of_own", damped)
    scene = scene_with_own_bodies("wam")
    q = np.array([0.0, 0.7, 0.0, 1.6, 0.0, 0.5, 0.0])
    T, elbow = scene.robot.fk(q), scene.robot.link_pose("wam_link4", q)
    scene.add_sphere("pole", 0.05, elbow)
    once = IkSolver(scene.robot, method, scene=scene, timeout=10.0).solve(T, q)
    assert (once.status, once.restarts) == (Status.IN_COLLISION, 0)
    assert "pole" in once.pair_in_the_way
    again = IkSolver(scene.robot, method, scene=scene, max_restarts=200, timeout=10.0)
    found = again.solve(T, q)
    assert found, found.status
    assert is_free(scene.snapshot, found.q)
    scene.add_sphere("ball", 0.1, T)
    best = again.solve(T, q, approximate=True)
    assert best.status is Status.IN_COLLISION


def test_invalid_scenes_and_missing_scenes_are_refused():
    scene, other = scene_with_own_bodies("wam"), RobotModel.from_name("puma560")
    with pytest.raises(SceneError, match=r"'wam7'.*'puma560'"):
        IkSolver(other, scene=scene)
    with pytest.raises(OptionError, match="needs a scene"):
        IkSolver(scene.robot, solve_type="clearance")
    with pytest.raises(OptionError, match="needs a scene"):
        IkSolver(scene.robot).solve(np.eye(4), solve_type="clearance")
    assert bodies_of(other.tree)  # the helper makes shapes for any robot


def test_poses_reachable_only_in_collision_have_an_approximate_answer():
    scene = scene_with_own_bodies("wam")
    robot = scene.robot
    q = np.array([0.0, 0.7, 0.0, 1.6, 0.0, 0.5, 0.0])
    T = robot.fk(q)
    scene.add_box("crate", [0.4, 0.4, 0.4], transform(None, T[:3, 3]))
    solver = IkSolver(robot, scene=scene, max_restarts=50, approximate=True)
    found = solver.solve(T, timeout=5.0)
    assert found.status is Status.IN_COLLISION
    assert found.success
    assert "crate" in found.pair_in_the_way
    assert is_free(scene.snapshot, found.q)
    there = robot.fk(found.q)
    assert abs(np.linalg.norm(there[:3, 3] - T[:3, 3]) - found.position_error) < 1e-9
    assert found.clearance > 0.0
    rotation = solver.options.rotation_weight * found.rotation_error
    least = np.hypot(found.position_error, rotation)
    poses = robot.fk(free_configurations(scene, 4000, seed=12))
    far = np.linalg.norm(poses[:, :3, 3] - T[:3, 3], axis=1)
    cosine = 0.5 * (np.einsum("bij,ij->b", poses[:, :3, :3], T[:3, :3]) - 1.0)
    turned = solver.options.rotation_weight * np.arccos(np.clip(cosine, -1.0, 1.0))
    # Closer than thousands of random configurations
    assert least < 0.7 * np.hypot(far, turned).min()
    assert not solver.solve(T, timeout=5.0, approximate=False).success
    near = solver.solve(T, q, timeout=5.0, max_joint_change=0.8)
    assert not near or abs(near.q - q).max() <= 0.8
    batch = solver.solve_batch(np.stack([T, T]), threads=1)
    assert np.array_equal(batch.q[0], batch.q[1])
    assert batch.statuses == 2 * (Status.IN_COLLISION,)
