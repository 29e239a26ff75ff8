# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Joint paths: proven collision-free, shortened, and reproducible."""

import re

import numpy as np
import pytest
from scenes import scene_of

from dls_ik import PlanningScene, RobotModel
from dls_ik.errors import JointValueError, OptionError
from dls_ik.model.rotations import transform
from dls_ik.scene.joint_paths import path_pairs
from dls_ik.scene.shapes import Body, Box, Sphere


def ends_of(scene, seed, clearance):
    """Return two configurations that keep a distance, and whose straight path collides."""
    robot, rng = scene.robot, np.random.default_rng(seed)
    while True:
        q0, q1 = robot.random(2, rng)
        is_clear = all(not scene.clearance(q, within=clearance) for q in (q0, q1))
        if is_clear and scene.path_in_collision(q0, q1) is not None:
            return q0, q1


@pytest.mark.parametrize(("arm", "world"), [("fr3", "shelf"), ("wam", "table")])
def test_paths_keep_their_distance_by_the_exact_library(arm, world):
    scene, found, margin = scene_of(arm, world), 0, 0.003
    for seed in range(4):
        q0, q1 = ends_of(scene, seed, margin)
        path = scene.plan(q0, q1, min_distance=margin, max_nodes=3000)
        found += path.success
        if not path.success:
            assert path.q.shape == (0, scene.robot.n)
            continue
        np.testing.assert_array_equal(path.q[[0, -1]], [q0, q1])
        for a, b in zip(path.q, path.q[1:], strict=False):
            for t in np.linspace(0.0, 1.0, 15):
                assert not scene.clearance(a + t * (b - a), within=margin - 1e-9)
        again = scene.plan(q0, q1, min_distance=margin, max_nodes=3000)
        np.testing.assert_array_equal(path.q, again.q)
    assert found >= 3


def slide_and_walls(*walls):
    """Return a scene of a ball that two joints move in a plane, and boxes (x, y, wide, high)."""
    rows = [{"kind": "prismatic", "lower": 0.0, "upper": 4.0, "alpha": a} for a in (-np.pi / 2, 0)]
    robot = RobotModel.from_dh(rows)
    tip = robot.tips[0]
    scene = PlanningScene(robot, bodies={tip: Body(tip, ((Sphere(0.05), np.eye(4)),))})
    for number, (x, y, wide, high) in enumerate(walls):
        T = transform(translation=np.array([0.0, y, x]))
        scene.add(f"wall {number}", Box([1.0, high, wide]), T)
    return scene


def test_path_around_thin_wall_has_corner_at_its_edge():
    scene = slide_and_walls((2.0, 3.0, 1e-4, 2.0))
    assert scene.path_in_collision([1.0, 3.0], [3.0, 3.0]).names[1] == "wall 0"
    path = scene.plan([1.0, 3.0], [3.0, 3.0], min_distance=0.1)
    assert path.success
    length = np.linalg.norm(np.diff(path.q, axis=0), axis=1).sum()
    shortest = 2 * np.hypot(1.0, 1.15)  # path around the edge at 2.0, including radius and distance
    assert shortest - 0.15 <= length <= 1.15 * shortest


def test_failed_search_names_the_blocking_wall():
    scene = slide_and_walls((2.0, 2.0, 0.1, 9.0))
    path = scene.plan([1.0, 2.0], [3.0, 2.0], max_nodes=200)
    assert not path.success
    assert "wall 0" in path.names
    assert path.nodes < 2000


def test_path_leads_to_a_reachable_goal():
    scene = slide_and_walls((2.0, 2.0, 0.1, 9.0))
    path = scene.plan([1.0, 2.0], [[2.0, 1.0], [3.0, 2.0], [1.5, 0.5]])
    assert path.goal == 2
    np.testing.assert_array_equal(path.q, [[1.0, 2.0], [1.5, 0.5]])


def test_pair_below_its_margin_separates_first():
    scene = slide_and_walls((2.0, 3.0, 0.2, 2.0))
    start, goal = np.array([1.82, 3.0]), np.array([3.0, 3.5])  # 0.03 from the wall
    path = scene.plan(start, goal, min_distance=0.1)
    assert path.success
    first = start + np.linspace(0.0, 1.0, 20)[:, None] * (path.q[1] - start)
    distances = [scene.distance(q).distance for q in first]
    assert min(distances) >= distances[0] - 1e-5
    for a, b in zip(path.q[1:], path.q[2:], strict=False):
        assert path_pairs(scene.snapshot, 0.0999).block(a, b) is None
    assert scene.plan([2.0, 2.5], goal, min_distance=0.1).success, "out of the wall by any path"
    assert "wall 0" in scene.plan(goal, [2.0, 2.5], min_distance=0.1).names


@pytest.mark.parametrize("wrong", [{"min_distance": -1.0}, {"max_nodes": np.inf}])
def test_invalid_limits_raise(wrong):
    with pytest.raises(OptionError, match=next(iter(wrong))):
        slide_and_walls().plan([1.0, 2.0], [3.0, 2.0], **wrong)


def test_goal_outside_the_joint_limits_raises_and_names_the_joint():
    scene = slide_and_walls()
    name = re.escape(scene.robot.joint_names[1])
    for goals in ([3.0, 4.5], [[3.0, 2.0], [3.0, 4.5]]):
        with pytest.raises(JointValueError, match=rf"'{name}' must be from 0 to 4 \[m\]; got 4\.5"):
            scene.plan([1.0, 2.0], goals)
    path = scene.plan([1.0, 4.01], [3.0, 4.0])
    np.testing.assert_array_equal(path.q, [[1.0, 4.01], [3.0, 4.0]])
