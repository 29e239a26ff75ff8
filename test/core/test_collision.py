# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tests of distances of primitives and triangles, and of link kinematics, against NumPy."""

import numpy as np
import pytest
from arms import random_arm
from hypothesis import example, given
from hypothesis import strategies as st

from dls_ik.core.collision import link_poses
from dls_ik.core.scene_arrays import (
    KIND_BOX,
    KIND_CAPSULE,
    KIND_CYLINDER,
    KIND_PLANE,
    KIND_SPHERE,
    pack_scene,
)
from dls_ik.core.shape_distance import mesh_distances, primitive_distances
from dls_ik.scene.pack import link_frames, pack_shapes, pack_trees


def box(size, p):
    """Return the signed distance from a box."""
    nearest = np.clip(p, -size, size)
    outside = np.linalg.norm(p - nearest)
    return outside if outside > 0 else -np.min(np.r_[size - p, size + p])


def capsule(size, p):
    return np.linalg.norm(p - [0, 0, np.clip(p[2], -size[1], size[1])]) - size[0]


def cylinder(size, p):
    """Return the signed distance from a cylinder: a rectangle in the half-plane of the axis."""
    rho = np.hypot(p[0], p[1])
    nearest = np.array([min(rho, size[0]), np.clip(p[2], -size[1], size[1])])
    outside = np.linalg.norm([rho, p[2]] - nearest)
    return outside if outside > 0 else -min(size[0] - rho, size[1] - abs(p[2]))


ORACLE = {
    KIND_BOX: box,
    KIND_CAPSULE: capsule,
    KIND_CYLINDER: cylinder,
    KIND_PLANE: lambda size, p: p[2],
    KIND_SPHERE: lambda size, p: np.linalg.norm(p) - size[0],
}
NUMBERS = st.floats(-3, 3, allow_subnormal=False)
POINT = st.tuples(NUMBERS, NUMBERS, NUMBERS).map(np.array)
SIZE = st.tuples(*3 * [st.floats(0.01, 2)]).map(np.array)


@given(kind=st.sampled_from(sorted(ORACLE)), size=SIZE, p=POINT)
@example(kind=KIND_CYLINDER, size=np.array([0.1, 0.5, 0.0]), p=np.zeros(3))  # no normal by division
def test_signed_distance_of_primitives_matches_numpy(kind, size, p):
    out = np.empty(1)
    primitive_distances(kind, size, p[None], out)
    assert out[0] == pytest.approx(ORACLE[kind](size, p), abs=1e-12)


def segment(a, b, p):
    t = np.clip((p - a) @ (b - a) / max((b - a) @ (b - a), 1e-300), 0, 1)
    return np.linalg.norm(a + t * (b - a) - p)


def triangle(a, b, c, p):
    """Return the distance from the plane if the foot is in the triangle, else from the edges."""
    n = np.cross(b - a, c - a)
    edges = min(segment(a, b, p), segment(b, c, p), segment(c, a, p))
    ends = ((a, b), (b, c), (c, a))
    inside = all(np.cross(v - u, p - u) @ n >= 0 for u, v in ends)
    return min(edges, abs((p - a) @ n) / np.linalg.norm(n)) if inside else edges


@given(seed=st.integers(0, 2**32 - 1))
def test_triangle_distance_matches_numpy(seed):
    rng = np.random.default_rng(seed)
    corners, points, out = rng.normal(size=(1, 3, 3)), rng.normal(size=(20, 3)) * 2, np.empty(20)
    mesh_distances(corners, points, False, out)
    assert out == pytest.approx([triangle(*corners[0], p) for p in points], abs=1e-9)


@pytest.mark.parametrize("variables", ["all", "some"])
def test_link_poses_match_the_tree(variables):
    """Check all links of an arm with mimic and sliding joints, and joints outside the chain."""
    rng = np.random.default_rng(1)
    tree = random_arm(rng, "revolute", "mimic", "prismatic", "continuous", "bent", "mimic").tree
    free = [joint.name for joint in tree.joints if joint.is_driven and joint.mimic is None]
    names = free if variables == "all" else free[::2]
    held = {name: rng.uniform(-0.5, 0.5) for name in free}
    frames = link_frames(tree, names, tree.values(held))
    arrays = pack_shapes(frames, [], [], [], [], pack_trees([]))
    poses = np.empty((len(frames.parent), 3, 4))
    for _ in range(5):
        q = rng.uniform(-1, 1, len(names))
        link_poses(pack_scene(arrays), q, poses)
        values = {**held, **dict(zip(names, q, strict=True))}
        for link, (frame, T) in frames.links.items():
            found = np.vstack([poses[frame], [0, 0, 0, 1]]) @ T
            assert found == pytest.approx(tree.pose(link, values), abs=1e-12)
