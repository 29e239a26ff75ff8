# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Trees of spheres contain their shapes, and the inner spheres are inside."""

import numpy as np
import pytest
import scenes
import trimesh

from dls_ik.core.hulls import hull_distance, hull_scratch
from dls_ik.model import kept_files
from dls_ik.scene import spheres
from dls_ik.scene.shapes import Box, Capsule, Cylinder, Plane, Sphere
from dls_ik.scene.sphere_fit import fit_spheres
from dls_ik.scene.spheres import sphere_tree

SHAPES = {
    "box": Box([0.3, 0.2, 0.02]),
    "sphere": Sphere(0.1),
    "cylinder": Cylinder(0.05, 0.3),
    "capsule": Capsule(0.05, 0.2),
    "gem": scenes.gem(0.1, np.random.default_rng(0)),
    "bracket": scenes.bracket(),
    "cup": scenes.cup(0.05, 0.1),
}


def points_of(shape, rng, count=3000):
    """Return points of a shape: inside and on its surface, including edges and corners."""
    node = sphere_tree(shape).node[0]
    p = node[:3] + 1.3 * node[3] * rng.uniform(-1, 1, (count, 3))
    rho = np.hypot(p[:, 0], p[:, 1])[:, None]
    match shape:
        case Box(size=size):
            return np.clip(p, -0.5 * size, 0.5 * size)
        case Cylinder(radius=radius, length=length):
            z = np.clip(p[:, 2:], -0.5 * length, 0.5 * length)
            return np.hstack([p[:, :2] * np.minimum(1, radius / rho), z])
        case Sphere(radius=radius) | Capsule(radius=radius):
            half = 0.5 * getattr(shape, "length", 0.0)
            axis = np.clip(p[:, 2:], -half, half) * [0, 0, 1]
            return (
                axis
                + (p - axis) * np.minimum(1, radius / np.linalg.norm(p - axis, axis=1))[:, None]
            )
    a, b, c = np.moveaxis(shape.vertices[shape.triangles], 1, 0)
    s, t = rng.uniform(size=(2, count, 1))
    s, t = np.where(s + t > 1, 1 - s, s), np.where(s + t > 1, 1 - t, t)
    k = rng.integers(len(a), size=count)
    surface = np.vstack([a[k] + s * (b - a)[k] + t * (c - a)[k], shape.vertices])
    return np.vstack([surface, p[is_inside(shape, p)]]) if shape.is_watertight else surface


def is_inside(shape, p):
    rho = np.hypot(p[:, 0], p[:, 1])
    match shape:
        case Box(size=size):
            return (abs(p) <= 0.5 * size).all(1)
        case Sphere(radius=radius):
            return np.linalg.norm(p, axis=1) <= radius
        case Cylinder(radius=radius, length=length):
            return (rho <= radius) & (abs(p[:, 2]) <= 0.5 * length)
        case Capsule(radius=radius, length=length):
            return np.hypot(rho, np.maximum(abs(p[:, 2]) - 0.5 * length, 0)) <= radius
    return trimesh.Trimesh(shape.vertices, shape.triangles).contains(p)


@pytest.mark.parametrize("name", SHAPES)
def test_spheres_cover_the_shape_at_every_level(name):
    """Each point of the shape is in the spheres of a path of nodes from the root to a leaf."""
    shape, rng = SHAPES[name], np.random.default_rng(0)
    tree, points = sphere_tree(shape), points_of(SHAPES[name], rng)
    node, child = tree.node, tree.child
    squared = sum((points[:, i, None] - node[:, i]) ** 2 for i in range(3))  # (points, nodes)
    inside = squared <= (node[:, 3] + 1e-12) ** 2
    for at in range(len(node))[::-1]:  # reversed, because children come after their parent
        if child[at] >= 0:
            inside[:, at] &= inside[:, child[at]] | inside[:, child[at] + 1]
    assert inside[:, 0].all()


@pytest.mark.parametrize("name", ["box", "cylinder", "gem", "bracket", "cup"])
def test_hulls_contain_the_shape_at_every_level(name):
    """Each point of the shape is in the hulls of a path of nodes from the root to a leaf."""
    shape, rng = SHAPES[name], np.random.default_rng(0)
    tree, points = fit_spheres(shape, max_leaves=200), points_of(SHAPES[name], rng, 300)
    assert (tree.hull[:, 1] > 0).all()
    hull = np.vstack([tree.hull, [len(tree.ball), 1]])
    T, work = np.eye(4)[:3].copy(), hull_scratch()
    for point in rng.permutation(points)[:60]:
        ball, inside = np.vstack([tree.ball, [*point, 0.0]]), np.zeros(len(tree.node), bool)
        for at in range(len(tree.node))[::-1]:  # reversed, because children come after their parent
            upper = hull_distance(hull, ball, at, len(tree.node), T, np.inf, work)[1]
            inside[at] = upper <= 1e-9
            if tree.child[at] >= 0:
                inside[at] &= inside[tree.child[at]] or inside[tree.child[at] + 1]
        assert inside[0]


def test_scaled_and_placed_hulls_contain_the_placed_shape():
    tree, T = fit_spheres(SHAPES["gem"], max_leaves=50), np.eye(4)
    T[:3, 3] = 1.0, 2.0, 3.0
    placed = tree.placed(T, 2.0)
    assert np.allclose(placed.ball[:, :3], 2.0 * tree.ball[:, :3] + T[:3, 3])
    assert np.allclose(placed.ball[:, 3], 2.0 * tree.ball[:, 3])


@pytest.mark.parametrize("name", [name for name in SHAPES if name != "cup"])
def test_inner_spheres_are_inside(name):
    shape, rng = SHAPES[name], np.random.default_rng(0)
    node = sphere_tree(shape).node
    node = node[node[:, 4] > 0]
    ways = rng.normal(size=(40, 3))
    ways /= np.linalg.norm(ways, axis=1)[:, None]
    points = (node[:, None, :3] + 0.9999 * node[:, None, 4:] * ways).reshape(-1, 3)
    assert is_inside(shape, points).all()
    assert len(node) > 0


@pytest.mark.parametrize("name", ["gem", "bracket", "cylinder", "capsule"])
def test_sphere_tree_gap_is_below_5_mm(name):
    """The exact library decides only within a few millimetres, for shapes of decimetres."""
    assert sphere_tree(SHAPES[name]).gap < 0.005


def test_fitting_spheres_to_a_plane_raises():
    with pytest.raises(TypeError, match="a Plane cannot be covered"):
        fit_spheres(Plane([0, 0, 1]))


def new_box():
    """Return a box whose tree is not in memory, but may be on disk."""
    return Box([0.1, 0.1, 0.1])


def test_damaged_cache_files_are_replaced(tmp_path, monkeypatch):
    monkeypatch.setattr(spheres, "kept_folder", lambda: str(tmp_path))
    whole = spheres.sphere_tree(new_box())
    (file,) = tmp_path.iterdir()
    content = file.read_bytes()
    for damaged in (content[:100], content[:-1] + b"x", b""):
        file.write_bytes(damaged)
        assert np.array_equal(spheres.sphere_tree(new_box()).node, whole.node)
        assert file.read_bytes() == content


def test_cache_files_of_other_code_are_replaced(tmp_path, monkeypatch):
    """A tree fitted by other code is not used, whatever version it states."""
    monkeypatch.setattr(spheres, "kept_folder", lambda: str(tmp_path))
    package = tmp_path / "package"
    spheres.sphere_tree(new_box())
    (file,) = tmp_path.iterdir()
    content = file.read_bytes()
    for name in spheres.FIT_SOURCES:
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_bytes((kept_files.PACKAGE_FOLDER / name).read_bytes() + b"# changed")
    monkeypatch.setattr(kept_files, "PACKAGE_FOLDER", package)
    monkeypatch.setattr(kept_files, "_digest", kept_files._digest.__wrapped__)
    spheres.sphere_tree(new_box())
    again = file.read_bytes()
    assert again[:32] != content[:32]
    assert again[32:] == content[32:]


def test_unwritable_cache_folder_does_not_prevent_the_fit(monkeypatch):
    monkeypatch.setattr(spheres, "kept_folder", lambda: "/nowhere")
    assert spheres.sphere_tree(new_box()).gap < 0.01
