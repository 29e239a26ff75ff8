# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Depths of colliding configurations are finite and plausible, whatever the library returns."""

import numpy as np
import pytest
from scenes import scene_of

from dls_ik import PlanningScene, RobotModel
from dls_ik.model.rotations import rotation_from_rpy, transform
from dls_ik.scene import exact
from dls_ik.scene.exact import PlacedShape, separation
from dls_ik.scene.shapes import Box, Capsule, Cylinder, Plane, Sphere


@pytest.fixture(scope="module")
def wam():
    """Return the shipped WAM, and its colliding configurations among 80 000 random ones."""
    robot = RobotModel.wam()
    scene = PlanningScene(robot)
    q = robot.random(80_000, rng=np.random.default_rng(0))
    return scene, q[scene.in_collision(q)]


def assert_plausible(scene, q):
    size = max(float(each.spheres.node[0, 3]) for each in scene.snapshot._shapes[0])
    closest, contacts = scene.distance(q), scene.contacts(q)
    assert closest.distance <= 0.0
    assert contacts
    found = [(c.names, c.depth, c.normal) for c in contacts]
    for names, depth, normal in [(closest.names, -closest.distance, closest.normal), *found]:
        assert 0.0 <= depth <= (3.0 if "floor" in names else 2.0 * size)
        assert np.linalg.norm(normal) == pytest.approx(1.0, abs=1e-6)


def test_every_colliding_configuration_of_the_wam_has_a_plausible_depth(wam):
    scene, q = wam
    assert len(q) > 400
    for each in q:
        assert_plausible(scene, each)


def test_a_translation_by_the_depth_separates_convex_shapes(wam):
    """Shapes are moved along the normal, and tested by collide, which computes no depths."""
    scene, q = wam
    for each in q[:100]:
        placed = _placement(scene, each)
        for k in scene.snapshot._touching(each):
            a, b = placed.pair(k)
            found = separation(a, b)
            T = b.T.copy()
            T[:3, 3] += (1e-5 - found.distance) * found.normal
            assert not exact.collide(a, PlacedShape(b.shape, T))


def _placement(scene, q):
    from dls_ik.scene.snapshot import _Placement

    return _Placement(scene.snapshot, q)


@pytest.mark.parametrize("arm", ["ur5e", "fr3"])
def test_colliding_configurations_of_other_arms_have_plausible_depths(arm):
    scene, found = scene_of(arm, "table"), 0
    for q in scene.robot.random(300, rng=np.random.default_rng(1)):
        if scene.in_collision(q):
            assert_plausible(scene, q)
            found += 1
    assert found > 20


@pytest.mark.parametrize("given", [-1.797e308, -np.inf, np.nan, -0.5])
def test_implausible_depths_are_replaced(given, monkeypatch):
    """If the library fails, the overlap along an axis replaces its answer."""
    a = PlacedShape(Box([0.2, 0.2, 0.2]), np.eye(4))
    b = PlacedShape(Sphere(0.1), transform(None, np.array([0.15, 0.0, 0.0])))
    coal = exact.library()
    monkeypatch.setattr(coal, "distance", lambda *_: given)
    found = separation(a, b)
    assert found.distance == pytest.approx(-0.05)
    assert found.normal == pytest.approx([1.0, 0.0, 0.0])


SHAPES = (Box([0.3, 0.2, 0.1]), Sphere(0.1), Cylinder(0.1, 0.3), Capsule(0.1, 0.2))


@pytest.mark.parametrize("shape", SHAPES)
def test_farthest_points_bound_the_shape(shape):
    """The overlap with a half-space is its depth, which the library computes in another way."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        normal = rng.normal(size=3)
        normal /= np.linalg.norm(normal)
        T = transform(rotation_from_rpy(*rng.uniform(-3, 3, 3)), rng.uniform(-0.05, 0.05, 3))
        placed = PlacedShape(shape, T)
        plane = PlacedShape(Plane(normal, 0.3), np.eye(4))
        lowest = exact._farthest_point(placed, -normal)
        d = separation(placed, plane).distance
        assert normal @ lowest - 0.3 == pytest.approx(d, abs=1e-5)
