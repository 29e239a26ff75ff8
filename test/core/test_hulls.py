# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tests of hull distances: comparison with coal, bounds along a vector, reduced corners."""

import coal
import numpy as np
import pytest
import trimesh

from dls_ik.core.distance_bounds import leaf_bound
from dls_ik.core.hulls import choose_corners, hull_distance, hull_scratch, keeps_along
from dls_ik.core.scene_arrays import SceneArrays
from dls_ik.model.rotations import rotation_from_rpy, transform


def two_hulls(rng, flatness=0.0):
    """Draw two hulls, as `hull` and `ball`, the second one at a pose (4, 4)."""
    counts = rng.integers(5, 20, 2)
    size = [1.0, 1.0, 10.0**-flatness]
    points = 0.03 * rng.normal(size=(counts.sum(), 3)) * size
    hull = np.array([[0, counts[0]], [counts[0], counts[1]]])
    ball = np.column_stack([points, np.zeros(len(points))])
    return hull, ball, transform(rotation_from_rpy(*rng.uniform(-3, 3, 3)), rng.normal(0, 0.08, 3))


def exact_distance(hull, ball, T):
    """Return the distance computed by coal."""
    shapes = []
    for first, count in hull:
        solid = trimesh.convex.convex_hull(ball[first : first + count, :3])
        points, triangles = coal.StdVec_Vec3s(), coal.StdVec_Triangle()
        for point in solid.vertices:
            points.append(np.array(point))
        for triangle in solid.faces.tolist():
            triangles.append(coal.Triangle(*triangle))
        shapes.append(coal.Convex(points, triangles))
    request = coal.DistanceRequest()
    request.gjk_tolerance, request.gjk_max_iterations = 1e-9, 1000
    poses = coal.Transform3s(), coal.Transform3s(T[:3, :3], T[:3, 3])
    return coal.distance(shapes[0], poses[0], shapes[1], poses[1], request, coal.DistanceResult())


@pytest.mark.parametrize("flatness", [0.0, 1.0, 3.0])
def test_hull_distance_matches_coal(flatness):
    rng, apart = np.random.default_rng(1), 0
    for _ in range(400):
        hull, ball, T = two_hulls(rng, flatness)
        exact, work = exact_distance(hull, ball, T), hull_scratch()
        lower, upper = hull_distance(hull, ball, 0, 1, T[:3].copy(), np.inf, work)
        if exact < 1e-6:
            assert lower == -np.inf
            continue
        apart += 1
        assert exact - 1e-6 < lower <= exact + 1e-9
        assert exact - 1e-6 < upper < exact + 1e-6
        weights = work.simplex[:, 6]
        assert weights.min() >= 0.0
        assert weights.sum() == pytest.approx(1.0)
        assert np.linalg.norm(weights @ work.simplex[:, :3]) == pytest.approx(exact, abs=1e-6)
    assert apart > 200


def test_radii_shorten_the_distance():
    hull, ball = np.array([[0, 1], [1, 1]]), np.array([[0.0, 0, 0, 0.1], [0, 0, 0, 0.2]])
    T = transform(np.eye(3), [0.0, 1.0, 0.0])[:3].copy()
    assert hull_distance(hull, ball, 0, 1, T, np.inf, hull_scratch()) == pytest.approx((0.7, 0.7))


def test_early_lower_bound_does_not_exceed_the_distance():
    rng = np.random.default_rng(2)
    for _ in range(300):
        hull, ball, T = two_hulls(rng)
        exact, work = exact_distance(hull, ball, T), hull_scratch()
        lower, _ = hull_distance(hull, ball, 0, 1, T[:3].copy(), 0.3 * exact, work)
        assert lower <= max(exact, 0.0) + 1e-9
        assert exact < 1e-6 or lower >= 0.3 * exact


def test_keeps_along_is_true_only_up_to_the_distance():
    rng = np.random.default_rng(3)
    for _ in range(300):
        hull, ball, T = two_hulls(rng)
        work, place = hull_scratch(), T[:3].copy()
        lower, _ = hull_distance(hull, ball, 0, 1, place, np.inf, work)
        if lower > 0.0:
            assert keeps_along(hull, ball, 0, 1, place, lower - 1e-9, work)
            assert not keeps_along(hull, ball, 0, 1, place, lower + 1e-9, work)
            work.normal[:] = rng.normal(size=3)
            work.normal[:] /= np.linalg.norm(work.normal)
            assert not keeps_along(hull, ball, 0, 1, place, lower + 1e-9, work)


def test_leaves_without_hulls_keep_the_bound_of_their_spheres():
    hull, work = np.zeros((2, 2), np.int64), hull_scratch()
    T = np.eye(4)[:3].copy()
    scene = SceneArrays(*(np.empty(0) for _ in SceneArrays._fields))
    scene = scene._replace(hull=hull, ball=np.empty((0, 4)))
    assert leaf_bound(scene, 0, 1, T, 0.1, 0.0, 0.5, work) == 0.1
    assert not keeps_along(hull, np.empty((0, 4)), 0, 1, T, -1.0, work)


@pytest.mark.parametrize("shape", [(1.0, 1.0, 1.0), (1.0, 1.0, 0.0), (1.0, 0.0, 0.0)])
def test_few_corners_contain_all_points(shape):
    rng = np.random.default_rng(4)
    for _ in range(20):
        points = np.zeros((int(rng.integers(1, 200)), 4))
        points[:, :3] = rng.normal(size=(len(points), 3)) * shape
        points[len(points) // 2 :] = points[: len(points) - len(points) // 2]  # duplicate points
        before, (count, outside) = points.copy(), choose_corners(points, 12, 0.01)
        assert count <= 12
        assert sorted(points.tolist()) == sorted(before.tolist())
        hull, T = np.array([[0, count], [0, 1]]), np.eye(4)[:3].copy()
        for i in range(count, len(points)):
            hull[1, 0] = i
            lower, _ = hull_distance(hull, points, 0, 1, T, np.inf, hull_scratch())
            assert lower <= outside + 1e-12
