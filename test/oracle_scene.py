# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Naive oracle of collisions, by coal and trimesh; uses only shapes and trees of the package."""

from functools import lru_cache

import coal
import numpy as np
import trimesh

from dls_ik.scene.shapes import Box, Capsule, Cylinder, Mesh, Plane, Sphere


@lru_cache(maxsize=1000)
def geometry(shape):
    match shape:
        case Box(size=size):
            return coal.Box(*size)
        case Sphere(radius=radius):
            return coal.Sphere(radius)
        case Cylinder(radius=radius, length=length):
            return coal.Cylinder(radius, length)
        case Capsule(radius=radius, length=length):
            return coal.Capsule(radius, length)
        case Plane(normal=normal, offset=offset):
            return coal.Halfspace(np.array(normal), offset)
    model = coal.BVHModelOBBRSS()
    model.beginModel(len(shape.triangles), len(shape.vertices))
    model.addVertices(np.array(shape.vertices))
    model.addTriangles(shape.triangles.astype(int))
    model.endModel()
    return model


@lru_cache(maxsize=1000)
def solid(mesh):
    return trimesh.Trimesh(mesh.vertices, mesh.triangles, process=False)


def contains(outer, T_outer, inner, T_inner):
    """Return whether a closed mesh contains a point of the other shape."""
    if not (isinstance(outer, Mesh) and outer.is_watertight) or isinstance(inner, Plane):
        return False
    point = inner.vertices[:1] if isinstance(inner, Mesh) else np.zeros((1, 3))
    point = point @ T_inner[:3, :3].T + T_inner[:3, 3]
    return bool(solid(outer).contains((point - T_outer[:3, 3]) @ T_outer[:3, :3])[0])


def touch(one, T_one, two, T_two):
    request = coal.CollisionRequest()
    request.gjk_tolerance = 1e-10
    poses = [coal.Transform3s(T[:3, :3], T[:3, 3]) for T in (T_one, T_two)]
    shapes = geometry(one), geometry(two)
    found = coal.collide(shapes[0], poses[0], shapes[1], poses[1], request, coal.CollisionResult())
    return found > 0 or contains(one, T_one, two, T_two) or contains(two, T_two, one, T_one)


def distance(one, T_one, two, T_two):
    """Return the distance of two separate shapes [m]."""
    request = coal.DistanceRequest()
    request.gjk_tolerance = 1e-10
    poses = [coal.Transform3s(T[:3, :3], T[:3, 3]) for T in (T_one, T_two)]
    shapes = geometry(one), geometry(two)
    return coal.distance(shapes[0], poses[0], shapes[1], poses[1], request, coal.DistanceResult())


class Oracle:
    """Snapshot at a configuration, with the parts of links and objects by name."""

    def __init__(self, snapshot, q):
        values = {**snapshot.values, **dict(zip(snapshot.joint_names, q, strict=True))}
        self.parts = {}
        for name, body in snapshot.links.items():
            T = snapshot.tree.pose(name, values)
            self.parts[name] = [(shape, T @ T_part) for shape, T_part in body.parts]
        for name, each in snapshot.attached.items():
            T = snapshot.tree.pose(each.link, values) @ each.T
            self.parts[name] = [(shape, T @ T_part) for shape, T_part in each.body.parts]
        for name, each in snapshot.objects.items():
            self.parts[name] = [(shape, each.T @ T_part) for shape, T_part in each.body.parts]

    def touch(self, a, b):
        return any(touch(*one, *two) for one in self.parts[a] for two in self.parts[b])

    def distance(self, a, b):
        return min(distance(*one, *two) for one in self.parts[a] for two in self.parts[b])
