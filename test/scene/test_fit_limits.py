# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Fits of difficult meshes: spheres contain the mesh, and work and memory are bounded."""

import gc
import tracemalloc
from weakref import ref

import numpy as np
import pytest

from dls_ik import PlanningScene, RobotModel
from dls_ik.scene import sphere_fit
from dls_ik.scene.exact import PlacedShape, separation
from dls_ik.scene.meshes import read_mesh_file
from dls_ik.scene.shapes import Body, Mesh, Sphere
from dls_ik.scene.sphere_fit import MAX_CLIPPED_TRIANGLES, MAX_FIT_WORK, fit_spheres, leaves_each
from dls_ik.scene.spheres import sphere_tree
from fuzz.hard_meshes import KINDS, bundle, fan, points_on, slivers

MAX_PEAK = 150e6  # bytes
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


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_work_and_memory_of_a_large_mesh_are_bounded(kind, monkeypatch):
    """Counted work makes the test independent of the speed of the machine."""
    fits, make = [], sphere_fit._Fit.__init__

    def kept(self, *args):
        fits.append(self)
        make(self, *args)

    monkeypatch.setattr(sphere_fit._Fit, "__init__", kept)
    mesh = KINDS[kind](np.random.default_rng(2), MESSAGE_TRIANGLES)
    tree, peak = peak_of(lambda: fit_spheres(mesh))
    (fit,) = fits
    assert peak < MAX_PEAK
    assert fit.work < 1.2 * MAX_FIT_WORK
    assert fit.clipped <= MAX_CLIPPED_TRIANGLES + len(mesh.triangles)
    assert_covered(mesh, tree)


def test_thin_triangles_of_a_small_file_take_little_memory():
    """2000 thin triangles side by side, 72 kB, once took 5.9 GB."""
    mesh = bundle(np.random.default_rng(0), 2000)
    tree, peak = peak_of(lambda: fit_spheres(mesh))
    assert peak < 50e6
    assert_covered(mesh, tree)


def test_a_polygon_of_many_corners(tmp_path):
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


def test_a_scene_of_many_meshes_has_bounded_trees():
    robot = RobotModel.wam()
    ball = Body("ball", ((Sphere(0.05), np.eye(4)),))
    scene = PlanningScene(robot, bodies={robot.link_names[-1]: ball})
    parts = [Mesh(np.eye(3) + k, np.array([[0, 1, 2]])) for k in range(600)]
    scene.add("many", tuple((each, np.eye(4)) for each in parts))
    most = 2 * sphere_fit.SURFACE_LEAVES * leaves_each(600)
    assert len(scene.snapshot.arrays.node) <= 1 + 600 * most


def test_shapes_that_are_gone_are_forgotten():
    """Old meshes and their trees are dropped when a scene changes its meshes all the time."""
    mesh, ball = slivers(np.random.default_rng(0), 20), Sphere(0.1)
    sphere_tree(mesh, False)
    separation(PlacedShape(mesh, np.eye(4)), PlacedShape(ball, np.eye(4)))
    seen = ref(mesh)
    assert sphere_tree(mesh, False) is sphere_tree(mesh, False)
    del mesh
    gc.collect()
    assert seen() is None
