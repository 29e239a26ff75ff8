# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Fits of difficult meshes: spheres contain the mesh, and work and memory are bounded."""

import gc
import tracemalloc
from weakref import ref

import numpy as np
import pytest

from dls_ik import PlanningScene, RobotModel
from dls_ik.core.hulls import hull_distance, hull_scratch
from dls_ik.scene import sphere_fit, spheres
from dls_ik.scene.exact import PlacedShape, separation
from dls_ik.scene.meshes import read_mesh_file
from dls_ik.scene.operations import AddObject
from dls_ik.scene.shapes import Body, Mesh, Sphere
from dls_ik.scene.sphere_fit import (
    MAX_CLIPPED_TRIANGLES,
    MAX_FIT_WORK,
    WorkBudget,
    fit_spheres,
    leaves_each,
)
from dls_ik.scene.spheres import sphere_tree
from fuzz.hard_meshes import KINDS, bundle, fan, points_on, shells, slivers

MAX_PEAK = 150e6  # bytes
FEW_WORK = 6_000_000  # limit of the work for quick tests
MESSAGE_TRIANGLES = 20_000  # triangles of a mesh of 1 MB with unshared vertices


def assert_covered(mesh, tree):
    leaf, points = tree.node[tree.child < 0], points_on(mesh, np.random.default_rng(5))
    covered = np.zeros(len(points), bool)
    for sphere in leaf:
        covered |= np.sum((points - sphere[:3]) ** 2, axis=1) <= (sphere[3] + 1e-12) ** 2
    assert covered.all()


def peak_of(function):
    """Return the result of a function, and its peak allocation [bytes]."""
    tracemalloc.start()
    try:
        return function(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("count", [1, 12, 300])
@pytest.mark.parametrize("kind", KINDS)
def test_spheres_contain_the_mesh(kind, count):
    mesh = KINDS[kind](np.random.default_rng(count), count)
    assert_covered(mesh, fit_spheres(mesh, max_leaves=128))


@pytest.mark.parametrize("limit", [0, 5_000, 50_000])
@pytest.mark.parametrize("kind", KINDS)
def test_spheres_contain_the_mesh_where_a_limit_ends_the_fit(kind, limit, monkeypatch):
    """Less work and fewer clipped triangles make wider spheres, which still contain the mesh."""
    monkeypatch.setattr(sphere_fit, "MAX_FIT_WORK", 100 * limit)
    monkeypatch.setattr(sphere_fit, "MAX_CLIPPED_TRIANGLES", limit)
    mesh = KINDS[kind](np.random.default_rng(1), 500)
    tree = fit_spheres(mesh)
    assert (tree.child < 0).sum() <= 4 * sphere_fit.MAX_LEAVES
    assert_covered(mesh, tree)


LARGE = [*((kind, 4) for kind in KINDS), ("slivers", 1), ("soup", 1)]


@pytest.mark.parametrize(("kind", "part"), LARGE)
def test_work_and_memory_of_a_large_mesh_are_bounded(kind, part, monkeypatch):
    """Work is counted, not timed, so that the test does not depend on the speed of the machine.

    The number of triangles and all limits are divided by `part`.
    """
    fits, make = [], sphere_fit._Fit.__init__

    def kept(self, *args):
        fits.append(self)
        make(self, *args)

    work, clipped = MAX_FIT_WORK // part, MAX_CLIPPED_TRIANGLES // part
    monkeypatch.setattr(sphere_fit._Fit, "__init__", kept)
    monkeypatch.setattr(sphere_fit, "MAX_FIT_WORK", work)
    monkeypatch.setattr(sphere_fit, "MAX_CLIPPED_TRIANGLES", clipped)
    mesh = KINDS[kind](np.random.default_rng(2), MESSAGE_TRIANGLES // part)
    tree, peak = peak_of(lambda: fit_spheres(mesh, max_leaves=sphere_fit.MAX_LEAVES // part))
    (fit,) = fits
    assert peak < MAX_PEAK / part
    assert fit.work < 1.2 * work
    assert fit.clipped <= clipped + len(mesh.triangles)
    assert_covered(mesh, tree)


@pytest.fixture
def fits(monkeypatch):
    """All fits that are started, with limits for quick tests, and without files on disk."""
    started, make = [], sphere_fit._Fit.__init__

    def kept(self, *args):
        started.append(self)
        make(self, *args)

    monkeypatch.setattr(sphere_fit._Fit, "__init__", kept)
    monkeypatch.setattr(sphere_fit, "MAX_FIT_WORK", FEW_WORK // 2)
    monkeypatch.setattr(sphere_fit, "SHARED_WORK", FEW_WORK, raising=False)
    monkeypatch.setattr(spheres, "kept_folder", lambda: None)
    return started


def scene_of(meshes):
    """A scene with an object for each mesh, added as one change."""
    robot = RobotModel.wam()
    ball = Body("ball", ((Sphere(0.05), np.eye(4)),))
    scene = PlanningScene(robot, bodies={robot.link_names[-1]: ball})
    added = [
        AddObject(f"m{i}", ((mesh, np.eye(4)),), "", np.eye(4), {}, False)
        for i, mesh in enumerate(meshes)
    ]
    scene.apply(added, prepare=False)
    return scene


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [2, 30, 300])
def test_the_meshes_of_a_change_share_the_work(kind, count, fits):
    """Counted work makes the test independent of the speed of the machine."""
    rng = np.random.default_rng(count)
    meshes = [KINDS[kind](rng, 3000 // count) for _ in range(count)]
    arrays = scene_of(meshes).snapshot.arrays
    assert len(arrays.kind) == count
    assert sum(fit.work for fit in fits) < 1.5 * FEW_WORK
    leaves = leaves_each(count)
    for mesh in meshes[:: max(count // 10, 1)]:
        assert_covered(mesh, sphere_tree(mesh, True, leaves))


@pytest.mark.parametrize("work", [0, 20_000, FEW_WORK])
@pytest.mark.parametrize("kind", KINDS)
def test_coarse_trees_bound_the_exact_distance_from_below(kind, work, fits):
    rng = np.random.default_rng(7)
    meshes = [KINDS[kind](rng, 24) for _ in range(4)]
    budget = WorkBudget(work)
    scene_of(meshes).snapshot.fit_shapes(budget)
    assert budget.coarse or work == FEW_WORK
    T, scratch, point = np.eye(4)[:3].copy(), hull_scratch(), Sphere(1e-6)
    for mesh in meshes:
        tree = sphere_tree(mesh, True, leaves_each(len(meshes)))
        leaf, size = tree.node[tree.child < 0], np.ptp(mesh.vertices, axis=0).max()
        for x in mesh.vertices.mean(0) + size * rng.normal(size=(20, 3)):
            there = np.eye(4)
            there[:3, 3] = x
            exact = separation(PlacedShape(point, there), PlacedShape(mesh, np.eye(4))).distance
            by_spheres = (np.linalg.norm(leaf[:, :3] - x, axis=1) - leaf[:, 3]).min()
            assert by_spheres <= exact + 1e-5
            if tree.hull[0, 1]:
                hull = np.vstack([tree.hull, [len(tree.ball), 1]])
                ball = np.vstack([tree.ball, [*x, 0.0]])
                lower, _ = hull_distance(hull, ball, 0, len(tree.node), T, np.inf, scratch)
                assert lower <= exact + 1e-5


def test_a_budget_that_is_used_up_gives_bounding_boxes(fits):
    meshes = [slivers(np.random.default_rng(k), 20) for k in range(3)]
    budget, snapshot = WorkBudget(0), scene_of(meshes).snapshot
    snapshot.fit_shapes(budget)
    assert budget.coarse == ["m0", "m1", "m2"]
    assert not fits
    assert len(snapshot.arrays.node) == 1 + len(meshes)
    for mesh in meshes:
        corners = sphere_tree(mesh, True).ball[:, :3]
        assert np.allclose(corners.min(0), mesh.vertices.min(0))
        assert np.allclose(corners.max(0), mesh.vertices.max(0))


def test_a_mesh_gets_the_work_that_smaller_meshes_do_not_need(fits):
    small = [slivers(np.random.default_rng(k), 1) for k in range(9)]
    large = shells(np.random.default_rng(0), 400)
    scene_of([large, *small]).snapshot.fit_shapes(WorkBudget())
    assert len(fits[-1].solid.corners) == len(large.triangles)
    assert fits[-1].work > FEW_WORK // len(fits)


def test_meshes_that_need_new_fits_keep_their_trees_if_no_work_is_left(fits):
    """From 17 meshes on, each gets fewer leaves."""
    meshes = [slivers(np.random.default_rng(k), 3) for k in range(sphere_fit.MANY_MESHES + 1)]
    scene_of(meshes[:-1]).snapshot.fit_shapes(WorkBudget(10**12))
    before = [sphere_tree(mesh) for mesh in meshes[:-1]]
    scene_of(meshes).snapshot.fit_shapes(WorkBudget(0))
    leaves = leaves_each(len(meshes))
    assert all(sphere_tree(m, True, leaves) is t for m, t in zip(meshes, before, strict=False))


def test_thin_triangles_of_a_small_file_take_little_memory():
    """2000 thin triangles side by side, 72 kB, once took 5.9 GB."""
    mesh = bundle(np.random.default_rng(0), 2000)
    tree, peak = peak_of(lambda: fit_spheres(mesh))
    assert peak < 50e6
    assert_covered(mesh, tree)


def test_polygon_of_100000_corners_is_fitted_in_bounded_memory(tmp_path):
    count, path = 100_000, tmp_path / "polygon.obj"
    corners = fan(np.random.default_rng(0), count - 2).vertices
    lines = [f"v {x:.9f} {y:.9f} {z:.9f}" for x, y, z in corners]
    numbers = " ".join(str(i) for i in range(1, len(corners) + 1))
    path.write_text("\n".join([*lines, f"f {numbers}"]))

    def fitted():
        mesh = Mesh(*read_mesh_file(path))
        return mesh, fit_spheres(mesh)

    (mesh, tree), peak = peak_of(fitted)
    assert len(mesh.triangles) > 0.9 * count
    assert peak < MAX_PEAK
    assert_covered(mesh, tree)


def test_many_meshes_share_the_leaves():
    many = sphere_fit.MANY_MESHES
    assert leaves_each(1) == leaves_each(many) == sphere_fit.MAX_LEAVES
    for count in (many + 1, 100, 1000, 10_000, 500_000):
        assert leaves_each(count) >= 1
        assert count * (leaves_each(count) - 1) <= many * sphere_fit.MAX_LEAVES


def test_a_scene_of_many_meshes_has_bounded_trees(monkeypatch):
    monkeypatch.setattr(sphere_fit, "MAX_LEAVES", 128)  # quick fits
    robot = RobotModel.wam()
    ball = Body("ball", ((Sphere(0.05), np.eye(4)),))
    scene = PlanningScene(robot, bodies={robot.link_names[-1]: ball})
    parts = [Mesh(np.eye(3) + k, np.array([[0, 1, 2]])) for k in range(600)]
    scene.add("many", tuple((each, np.eye(4)) for each in parts))
    most = 2 * sphere_fit.SURFACE_LEAVES * leaves_each(600)
    assert len(scene.snapshot.arrays.node) <= 1 + 600 * most


def test_deleted_meshes_are_dropped_from_the_caches():
    """Old meshes and their trees are dropped when a scene changes its meshes all the time."""
    mesh, ball = slivers(np.random.default_rng(0), 20), Sphere(0.1)
    sphere_tree(mesh, False)
    separation(PlacedShape(mesh, np.eye(4)), PlacedShape(ball, np.eye(4)))
    seen = ref(mesh)
    assert sphere_tree(mesh, False) is sphere_tree(mesh, False)
    del mesh
    gc.collect()
    assert seen() is None
