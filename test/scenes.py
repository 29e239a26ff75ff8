# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Arms with collision geometry of every kind, and worlds around them: table, shelf, cage, box."""

from functools import cache

import numpy as np
import trimesh
from arms import published

from dls_ik import PlanningScene, RobotModel
from dls_ik.model.rotations import rotation_from_z, transform
from dls_ik.scene.shapes import Body, Box, Capsule, Cylinder, Mesh, Sphere

ARMS = ("wam", "fr3", "ur5e")
WORLDS = ("table", "shelf", "cage", "box")


def mesh_of(found):
    return Mesh(np.array(found.vertices), np.array(found.faces))


def bracket(size=0.12):
    """Return a closed concave mesh: an L of two boxes."""
    outline = np.array([[0, 0], [1, 0], [1, 0.4], [0.4, 0.4], [0.4, 1], [0, 1]]) * size
    triangles = [[0, 1, 2], [0, 2, 3], [0, 3, 4], [0, 4, 5]]
    return mesh_of(trimesh.creation.extrude_triangulation(outline, triangles, height=0.5 * size))


def gem(radius, rng):
    """Return a convex mesh."""
    points = rng.normal(size=(24, 3))
    points *= radius / np.linalg.norm(points, axis=1)[:, None]
    return mesh_of(trimesh.convex.convex_hull(points))


def cup(radius, height):
    """Return an open surface: a tube that is open at both ends."""
    angles = 2 * np.pi * np.arange(12) / 12
    ring = np.stack([radius * np.cos(angles), radius * np.sin(angles), 0 * angles], 1)
    vertices = np.vstack([ring, ring + np.array([0, 0, height])])
    i = np.arange(12)
    j = (i + 1) % 12
    return Mesh(
        vertices, np.vstack([np.stack([i, j, j + 12], 1), np.stack([i, j + 12, i + 12], 1)])
    )


def bodies_of(tree):
    """Return shapes for the links of a robot without shapes: capsules, cylinders, and meshes."""
    rng, bodies = np.random.default_rng(0), {}
    for i, link in enumerate(tree.links):
        below = tree.child_joints[link]
        way = below[0].origin[:3, 3] if below else np.zeros(3)
        length = float(np.linalg.norm(way))
        if length < 0.05:
            parts = ((Sphere(0.06), np.eye(4)),)
        else:
            T = transform(rotation_from_z(way / length), 0.5 * way)
            kind = Capsule if i % 2 else Cylinder
            parts = ((kind(0.05, length), T), (gem(0.07, rng), np.eye(4)))
        if not below:
            parts = ((bracket(), np.eye(4)), (cup(0.04, 0.1), transform(None, [0.0, 0.0, 0.05])))
        bodies[link] = Body(link, parts)
    return bodies


@cache
def arm(name):
    """Return an arm and the geometry of its links; None: the geometry of its URDF."""
    if name == "wam":
        return RobotModel.wam(), None
    robot = published(name)
    return robot, bodies_of(robot.tree)


def world(name, reach):
    """Return the objects of a world: name, shape, position, scaled by the reach of an arm [m]."""
    wide, thin = 1.2 * reach, 0.02 * reach
    if name == "table":
        return (
            ("top", Box([wide, wide, thin]), (0.5 * wide + 0.15, 0, 0.1 * reach)),
            ("jug", Cylinder(0.06, 0.25), (0.55 * reach, 0.1, 0.1 * reach + 0.14)),
            ("ball", Sphere(0.07), (0.4 * reach, -0.3, 0.1 * reach + 0.09)),
        )
    if name == "shelf":
        boards = [
            (f"board{i}", Box([0.3 * reach, wide, thin]), (0.7 * reach, 0, 0.25 * i * reach))
            for i in range(1, 5)
        ]
        back = ("back", Box([thin, wide, reach]), (0.85 * reach, 0, 0.6 * reach))
        return (*boards, back)
    if name == "cage":
        angles = np.pi / 4 * np.arange(8)
        return tuple(
            (f"bar{i}", Capsule(0.02, wide), (0.6 * reach * c, 0.6 * reach * s, 0.5 * wide))
            for i, (c, s) in enumerate(zip(np.cos(angles), np.sin(angles), strict=True))
        )
    box = trimesh.creation.box([0.5 * reach, 0.5 * reach, 0.4 * reach])
    inner = trimesh.creation.box([0.46 * reach, 0.46 * reach, 0.4 * reach])
    inner.apply_translation([0, 0, thin])
    open_box = trimesh.boolean.difference([box, inner], engine="manifold")
    return (
        ("box", mesh_of(open_box), (0.6 * reach, 0.1 * reach, 0.2 * reach)),
        ("stone", gem(0.1, np.random.default_rng(1)), (0.3 * reach, -0.5 * reach, 0.3 * reach)),
    )


@cache
def scene_of(name, world_name):
    """Return a shared planning scene; tests that change a scene create their own."""
    robot, bodies = arm(name)
    scene = PlanningScene(robot, bodies=bodies)
    length = float(np.linalg.norm(robot.chain.fixed[:, :, 3], axis=1).sum())
    for each, shape, position in world(world_name, length):
        scene.add(each, shape, transform(None, np.array(position, float)))
    scene.add_plane("floor", offset=-0.2 * length)
    scene.allow("floor", robot.tree.root)  # stands on it
    return scene
