# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Table of shapes: for each kind of shape, all that readers, checks and pictures need to know.

docs/add_a_shape.md explains how to add a kind.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.scene_arrays import (
    KIND_BOX,
    KIND_CAPSULE,
    KIND_CYLINDER,
    KIND_PLANE,
    KIND_SPHERE,
    KIND_TREE,
)
from dls_ik.core.types import Array
from dls_ik.model.rotations import rotation_from_z, transform
from dls_ik.scene.shapes import Box, Capsule, Cylinder, Mesh, Plane, Shape, Sphere

PRISM_SIDES = 64  # number of sides of the prism around a cylinder
DRAWN_SIDES = 24  # number of faces of a drawn round shape around its axis
SIDES_PER_ARC = 3  # a quarter circle is drawn with 1 / SIDES_PER_ARC as many faces
BOX_FACES = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))


class KernelShape(NamedTuple):
    """The numbers by which the collision kernels represent a shape."""

    kind: int  # a constant of dls_ik.core.scene_arrays, such as KIND_BOX
    size: Array  # (3,) meaning depends on the kind [m]
    # (4, 4) frame that the kernels use for this kind, in the frame of the shape
    T_shape_kernel: Array


@dataclass(frozen=True)
class ShapeKind:
    """Kind of shape. The functions take a shape of this kind.

    A kind has sizes (all positive lengths, such as a radius), or it is a plane or a mesh.
    """

    type: type[Shape]
    # Name in messages and .scene files, and in a URDF if URDF_SHAPES has it
    name: str
    make: Callable[..., Shape]  # returns the shape with given sizes [m]
    kernel: Callable[[Any], KernelShape]
    # Returns the point (3,) farthest along a unit vector (3,); None if the shape is unbounded there
    farthest: Callable[[Any, Array], Array | None]
    # Returns polygons (k, 3) of the surface, counter-clockwise seen from outside [m], for a number
    # of sides around the axis of a round shape
    faces: Callable[[Any, int], list[Array]]
    # Returns the geometry of the library coal (first argument); None: made from the triangles
    coal: Callable[[Any, Any], Any] | None = None
    sizes: tuple[str, ...] = ()  # names of the sizes, in the order of the fields of `type`
    primitive: int | None = None  # SolidPrimitive.type
    # SolidPrimitive.dimensions: name of each dimension, and its index in `sizes`
    dimensions: tuple[tuple[str, int], ...] = ()
    # Returns triangles (m, 3, 3) that enclose the shape [m], to which spheres are fitted
    enclosing: Callable[[Any], Array] | None = None
    # Returns shapes of kinds with messages, with their poses (4, 4); None: the shape itself, or
    # the mesh of `enclosing` if MoveIt has no message for the kind
    moveit_parts: Callable[[Any], list[tuple[Shape, Array]]] | None = None
    mujoco: str | None = None  # member of mujoco.mjtGeom with the sizes of the kernels; None: mesh

    def in_order(self, dimensions: Sequence[float]) -> list[float]:
        """Return the dimensions of a ``shape_msgs/SolidPrimitive``, reordered as in `sizes`."""
        places = [index for _, index in self.dimensions]
        return [dimensions[places.index(k)] for k in range(len(self.sizes))]


def kind_of(shape: Shape) -> ShapeKind:
    """Return the kind of a shape.

    Raises:
        TypeError: If the object is not a shape.
    """
    try:
        return _BY_TYPE[type(shape)]
    except KeyError:
        raise TypeError(f"not a shape: {shape!r}") from None


def sizes_of(shape: Shape) -> list[float]:
    """Return the sizes of a shape [m], in the order of ``ShapeKind.sizes``."""
    values: list[float] = np.hstack([getattr(shape, each.name) for each in fields(shape)]).tolist()
    return values


def scaled(shape: Shape, scale: float) -> Shape:
    """Return a shape scaled by the factor `scale` about its origin; planes are not scaled."""
    if scale == 1.0 or isinstance(shape, Plane):
        return shape
    if isinstance(shape, Mesh):
        return Mesh(shape.vertices * scale, shape.triangles)
    return kind_of(shape).make(*(scale * size for size in sizes_of(shape)))


def as_mesh(shape: Shape) -> Mesh:
    """Return a mesh that encloses a shape, or the shape if it is a mesh.

    Raises:
        TypeError: If the kind of shape has no triangles that enclose it.
    """
    if isinstance(shape, Mesh):
        return shape
    enclosing = kind_of(shape).enclosing
    if enclosing is None:
        raise TypeError(f"a {type(shape).__name__} has no triangles")
    corners = enclosing(shape)
    return Mesh(corners.reshape(-1, 3), np.arange(3 * len(corners)).reshape(-1, 3))


def drawn_triangles(shape: Shape, sides: int = DRAWN_SIDES) -> Array:
    """Return the triangles (m, 3, 3) of the surface of a shape, counter-clockwise from outside [m].

    Args:
        shape: Shape; a plane has no triangles.
        sides: Number of faces of a round shape around its axis.
    """
    faces = kind_of(shape).faces(shape, sides)
    fans = [face[[0, i, i + 1]] for face in faces for i in range(1, len(face) - 1)]
    corners = np.array(fans).reshape(-1, 3, 3)
    a, b, c = corners.swapaxes(0, 1)
    has_area = np.linalg.norm(np.cross(b - a, c - a), axis=1) > 0.0
    triangles: Array = corners[has_area]
    return triangles


def moveit_parts(shape: Shape, T: Array) -> list[tuple[Shape, Array]]:
    """Return the shapes that represent a shape in MoveIt, with their poses (4, 4).

    A capsule, for example, is represented by a cylinder and two spheres.

    Args:
        shape: Shape.
        T: (4, 4) pose of the shape.
    """
    kind = kind_of(shape)
    if kind.moveit_parts is not None:
        return [(part, T @ T_part) for part, T_part in kind.moveit_parts(shape)]
    if kind.sizes and kind.primitive is None:
        return [(as_mesh(shape), T)]
    return [(shape, T)]


def triangle_fans(polygons: Sequence[tuple[int, ...]]) -> NDArray[np.int64]:
    """Split convex polygons into triangles.

    Args:
        polygons: Vertex indices of each polygon.

    Returns:
        Vertex indices of the triangles (m, 3).
    """
    fans = [(polygon[0], *pair) for polygon in polygons for pair in pairwise(polygon[1:])]
    return np.array(fans)


# Boxes


def _box_corners(box: Box) -> Array:
    """Return the corners (8, 3) of a box [m]."""
    signs = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    corners: Array = 0.5 * box.size * signs
    return corners


# Round shapes


def _prism(shape: Cylinder) -> Array:
    """Return the corners (m, 3, 3) [m] of the triangles of a prism that encloses a cylinder."""
    angles = 2.0 * np.pi * np.arange(PRISM_SIDES) / PRISM_SIDES
    ring = (
        shape.radius / np.cos(np.pi / PRISM_SIDES) * np.stack([np.cos(angles), np.sin(angles)], 1)
    )
    half = np.full((PRISM_SIDES, 1), 0.5 * shape.length)
    points = np.concatenate([np.hstack([ring, -half]), np.hstack([ring, half])])
    i, k = range(PRISM_SIDES), PRISM_SIDES
    sides = [(a, (a + 1) % k, (a + 1) % k + k, a + k) for a in i]
    polygons = [tuple(reversed(i)), tuple(a + k for a in i), *sides]
    return np.asarray(points[triangle_fans(polygons)])


def _cylinder_faces(shape: Cylinder, sides: int) -> list[Array]:
    """Return the faces of a cylinder."""
    radius, half = shape.radius, 0.5 * shape.length
    return revolved([(0.0, -half), (radius, -half), (radius, half), (0.0, half)], sides)


def _ball_faces(radius: float, half: float, sides: int) -> list[Array]:
    """Return the faces of two half balls whose centres are at the heights -half and half [m]."""
    return revolved([*_arcs(radius, half, sides // SIDES_PER_ARC)], sides)


def _arcs(radius: float, half: float, count: int) -> Iterator[tuple[float, float]]:
    """Yield radius and height [m] of points on two quarter circles, from the bottom to the top.

    Each quarter circle has `count` points.
    """
    quarter = np.linspace(0.0, 0.5 * np.pi, count)[:-1].tolist()
    yield 0.0, -half - radius
    yield from ((radius * np.cos(a), -half - radius * np.sin(a)) for a in reversed(quarter))
    yield from ((radius * np.cos(a), half + radius * np.sin(a)) for a in quarter)
    yield 0.0, half + radius


def revolved(profile: Sequence[tuple[float, float]], sides: int) -> list[Array]:
    """Return the faces (4, 3) of the surface of revolution of a profile about z [m].

    Args:
        profile: Radius and height of each point, from the bottom to the top [m].
        sides: Number of faces around the axis.
    """
    angle = 2.0 * np.pi * np.arange(sides) / sides
    radius, height = np.array(profile).T[:, :, None]
    heights = np.broadcast_to(height, (len(profile), sides))
    points = np.stack([radius * np.cos(angle), radius * np.sin(angle), heights], axis=-1)
    points = np.concatenate([points, points[:, :1]], axis=1)  # equal corners at the seam
    corners = points[:-1, :-1], points[:-1, 1:], points[1:, 1:], points[1:, :-1]
    return [*np.stack(corners, axis=2).reshape(-1, 4, 3)]


def _farthest_of_cylinder(shape: Cylinder, n: Array) -> Array:
    """Return the point (3,) of a cylinder farthest along a unit vector (3,)."""
    across = n * [1.0, 1.0, 0.0]
    point: Array = shape.radius * across / max(float(np.linalg.norm(across)), 1e-12)
    point[2] = 0.5 * shape.length * np.sign(n[2])
    return point


def _capsule_parts(shape: Capsule) -> list[tuple[Shape, Array]]:
    """Return a cylinder and two spheres with their poses (4, 4)."""
    ends = (transform(translation=np.array([0.0, 0.0, z * shape.length])) for z in (0.5, -0.5))
    sphere = Sphere(shape.radius)
    return [(Cylinder(shape.radius, shape.length), np.eye(4)), *((sphere, end) for end in ends)]


# Planes


def _farthest_of_plane(shape: Plane, n: Array) -> Array | None:
    """Return the point (3,) of a half-space farthest along its normal, or None along others."""
    return None if n @ shape.normal < 1.0 - 1e-9 else np.asarray(shape.offset * shape.normal)


# Table

SHAPE_KINDS = (
    ShapeKind(
        type=Box,
        name="box",
        make=lambda *size: Box(np.array(size)),
        kernel=lambda box: KernelShape(KIND_BOX, 0.5 * box.size, np.eye(4)),
        farthest=lambda box, n: 0.5 * box.size * np.sign(n),
        faces=lambda box, _: [*_box_corners(box)[np.array(BOX_FACES)]],
        coal=lambda coal, box: coal.Box(*box.size.tolist()),
        sizes=("x", "y", "z"),
        primitive=1,
        dimensions=(("x", 0), ("y", 1), ("z", 2)),
        enclosing=lambda box: _box_corners(box)[triangle_fans(BOX_FACES)],
        mujoco="mjGEOM_BOX",
    ),
    ShapeKind(
        type=Sphere,
        name="sphere",
        make=Sphere,
        kernel=lambda ball: KernelShape(KIND_SPHERE, np.array([ball.radius, 0.0, 0.0]), np.eye(4)),
        farthest=lambda ball, n: ball.radius * n,
        faces=lambda ball, sides: _ball_faces(ball.radius, 0.0, sides),
        coal=lambda coal, ball: coal.Sphere(ball.radius),
        sizes=("radius",),
        primitive=2,
        dimensions=(("radius", 0),),
        mujoco="mjGEOM_SPHERE",
    ),
    ShapeKind(
        type=Cylinder,
        name="cylinder",
        make=Cylinder,
        kernel=lambda cylinder: KernelShape(
            KIND_CYLINDER, np.array([cylinder.radius, 0.5 * cylinder.length, 0.0]), np.eye(4)
        ),
        farthest=_farthest_of_cylinder,
        faces=_cylinder_faces,
        coal=lambda coal, cylinder: coal.Cylinder(cylinder.radius, cylinder.length),
        sizes=("radius", "length"),
        primitive=3,
        dimensions=(("height", 1), ("radius", 0)),
        enclosing=_prism,
        mujoco="mjGEOM_CYLINDER",
    ),
    ShapeKind(
        type=Capsule,
        name="capsule",
        make=Capsule,
        kernel=lambda capsule: KernelShape(
            KIND_CAPSULE, np.array([capsule.radius, 0.5 * capsule.length, 0.0]), np.eye(4)
        ),
        farthest=lambda capsule, n: (
            capsule.radius * n + np.array([0.0, 0.0, 0.5 * capsule.length * np.sign(n[2])])
        ),
        faces=lambda capsule, sides: _ball_faces(capsule.radius, 0.5 * capsule.length, sides),
        coal=lambda coal, capsule: coal.Capsule(capsule.radius, capsule.length),
        sizes=("radius", "length"),
        moveit_parts=_capsule_parts,
        mujoco="mjGEOM_CAPSULE",
    ),
    ShapeKind(
        type=Plane,
        name="plane",
        make=Plane,
        kernel=lambda plane: KernelShape(
            KIND_PLANE,
            np.zeros(3),
            transform(rotation_from_z(plane.normal), plane.offset * plane.normal),
        ),
        farthest=_farthest_of_plane,
        faces=lambda plane, _: [],
        coal=lambda coal, plane: coal.Halfspace(np.array(plane.normal), plane.offset),
        mujoco="mjGEOM_PLANE",
    ),
    ShapeKind(
        type=Mesh,
        name="mesh",
        make=Mesh,
        kernel=lambda _: KernelShape(KIND_TREE, np.zeros(3), np.eye(4)),
        farthest=lambda mesh, n: mesh.vertices[np.argmax(mesh.vertices @ n)],
        faces=lambda mesh, _: [*mesh.vertices[mesh.triangles]],
        enclosing=lambda mesh: mesh.vertices[mesh.triangles],
    ),
)
MESSAGE_KINDS = {kind.primitive: kind for kind in SHAPE_KINDS if kind.primitive is not None}
_BY_TYPE = {kind.type: kind for kind in SHAPE_KINDS}
