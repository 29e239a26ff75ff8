# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Exact collision checks and distances between two shapes, computed by the library coal.

A watertight mesh is a solid; any other mesh is a surface. If a mesh is not convex, coal uses only
its surface, and does not notice that the mesh contains another shape. Therefore this module also
tests whether a solid mesh contains a point of each connected part of the other shape.
"""

from functools import lru_cache
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from dls_ik.core.shape_distance import mesh_distances
from dls_ik.core.types import Array
from dls_ik.errors import SceneError
from dls_ik.scene.shape_table import as_mesh, kind_of
from dls_ik.scene.shapes import Mesh, Plane, Shape
from dls_ik.scene.weak_memo import kept_with_owner

GJK_TOLERANCE = 1e-9  # [m] tolerance of distances, which the algorithm GJK computes
# [m] tolerance of penetration depths, which the algorithm EPA computes; EPA diverges below 1e-7
EPA_TOLERANCE = 1e-6
MAX_GJK_ITERATIONS = 1000  # maximum number of iterations of GJK and of EPA
# Maximum distance of a vertex of a convex mesh beyond the plane of any triangle, relative to the
# size of the mesh
CONVEXITY_TOLERANCE = 1e-9
MAX_CONVEX_TRIANGLES = 2000  # meshes with more triangles are not tested for convexity
MAX_MESH_CONTACTS = 200  # maximum number of contacts of two meshes that are compared in depth


class Separation(NamedTuple):
    """Distance between two shapes; if they overlap, penetration depth.

    The penetration depth is the length of the shortest translation that separates the shapes.
    """

    distance: float  # [m]; minus the penetration depth if the shapes overlap
    points: Array  # (2, 3) closest points on the first and the second shape [m]
    normal: Array  # (3,) unit vector from the first to the second shape


class PlacedShape(NamedTuple):
    """A shape and its pose T (4, 4) [m] in a frame that all compared shapes have in common."""

    shape: Shape
    T: Array


def collide(a: PlacedShape, b: PlacedShape, margin: float = 0.0) -> bool:
    """Return whether two shapes touch or overlap, or are closer than a margin.

    Args:
        a: First shape.
        b: Second shape.
        margin: Distance below which shapes count as touching [m].

    Raises:
        SceneError: If coal is not installed.
    """
    coal = library()
    request = coal.CollisionRequest()
    _set_precision(request)
    request.security_margin = margin
    one, two = _geometry(a.shape), _geometry(b.shape)
    touching = coal.collide(one, _pose(a), two, _pose(b), request, coal.CollisionResult())
    return touching > 0 or _contains(a, b) or _contains(b, a)


def separation(a: PlacedShape, b: PlacedShape) -> Separation:
    """Return the distance between two shapes, the closest points and the direction between them.

    If the shapes overlap, the penetration depth of coal is reduced to the overlap of the shapes
    along an axis of one of them, if this overlap is smaller.

    Raises:
        SceneError: If coal is not installed.
    """
    coal = library()
    request, result = coal.DistanceRequest(), coal.DistanceResult()
    _set_precision(request)
    one, two, T_a, T_b = _geometry(a.shape), _geometry(b.shape), _pose(a), _pose(b)
    d = coal.distance(one, T_a, two, T_b, request, result)
    points = np.array([result.getNearestPoint1(), result.getNearestPoint2()])
    found = Separation(float(d), points, np.array(result.normal))
    if d > 0.0 and not (_contains(a, b) or _contains(b, a)):
        return found
    if d > 0.0 or isinstance(a.shape, Mesh) or isinstance(b.shape, Mesh):
        found = _deepest(a, b, found)
    return _limit_depth(a, b, found)


def _deepest(a: PlacedShape, b: PlacedShape, found: Separation) -> Separation:
    """Return the separation at the deepest contact of two overlapping shapes.

    At least one of the shapes is a mesh. If their surfaces do not touch, one shape contains the
    other, and the depth is the distance between the surfaces.

    Args:
        a: First shape.
        b: Second shape.
        found: Separation that coal computed for the surfaces of the shapes.
    """
    coal = library()
    request, result = coal.CollisionRequest(), coal.CollisionResult()
    _set_precision(request)
    request.enable_contact, request.num_max_contacts = True, MAX_MESH_CONTACTS
    coal.collide(_geometry(a.shape), _pose(a), _geometry(b.shape), _pose(b), request, result)
    contacts = [result.getContact(i) for i in range(result.numContacts())]
    if not contacts:  # one shape contains the other without touching its surface
        return found._replace(distance=-abs(found.distance), normal=-found.normal)
    deepest = max(contacts, key=lambda contact: float(contact.penetration_depth))
    points = np.array([deepest.getNearestPoint1(), deepest.getNearestPoint2()])
    depth = abs(float(deepest.penetration_depth))
    return Separation(min(-depth, found.distance), points, np.array(deepest.normal))


def _limit_depth(a: PlacedShape, b: PlacedShape, found: Separation) -> Separation:
    """Reduce a penetration depth to the smallest overlap of two shapes along one of several axes.

    A translation by the overlap along an axis separates the shapes. The penetration depth is the
    length of the shortest separating translation; therefore it is at most the smallest overlap. The
    axes are those of the frames of both shapes, and the normals of planes.

    Args:
        a: First shape.
        b: Second shape.
        found: Separation of the shapes; it is returned unchanged if its depth is small enough.
    """
    axes = np.concatenate([a.T[:3, :3].T, b.T[:3, :3].T, _plane_normals(a, b)])
    for normal in np.concatenate([axes, -axes]):
        first, second = _farthest_point(a, normal), _farthest_point(b, -normal)
        if first is None or second is None:
            continue
        overlap = float(normal @ (first - second))
        if not -found.distance <= overlap + 2.0 * EPA_TOLERANCE:
            found = Separation(-max(overlap, 0.0), np.array([first, second]), normal)
    return found


def _plane_normals(*shapes: PlacedShape) -> Array:
    """Return the unit normals (k, 3) of those k shapes that are planes, in the common frame."""
    planes = [
        each.T[:3, :3] @ each.shape.normal for each in shapes if isinstance(each.shape, Plane)
    ]
    return np.array(planes).reshape(-1, 3)


def _farthest_point(placed: PlacedShape, direction: Array) -> Array | None:
    """Return the point (3,) [m] of a shape that is farthest along a unit vector `direction` (3,).

    The result is None if the shape is unbounded in this direction.
    """
    n = direction @ placed.T[:3, :3]
    local = kind_of(placed.shape).farthest(placed.shape, n)
    if local is None:
        return None
    return np.asarray(placed.T[:3, :3] @ local + placed.T[:3, 3])


@lru_cache(maxsize=1)
def library() -> Any:
    """Import and return the module coal.

    Raises:
        SceneError: If coal is not installed.
    """
    try:
        return import_module("coal")
    except ImportError as error:
        raise SceneError(
            f"exact collision checks need coal: pip install 'dls_ik[collision]', or use "
            f"PlanningScene(robot, exact=False), which checks spheres around the shapes ({error})"
        ) from error


def _set_precision(request: Any) -> None:
    """Set the tolerances and iteration limits of a collision or distance request of coal."""
    request.gjk_tolerance, request.epa_tolerance = GJK_TOLERANCE, EPA_TOLERANCE
    request.gjk_max_iterations = request.epa_max_iterations = MAX_GJK_ITERATIONS


def _pose(placed: PlacedShape) -> Any:
    """Return the pose of a shape as a ``coal.Transform3s``."""
    return library().Transform3s(placed.T[:3, :3], placed.T[:3, 3])


@kept_with_owner
def _geometry(shape: Shape, /) -> Any:
    """Return coal's geometry object of a shape; it is cached as long as the shape exists."""
    make = kind_of(shape).coal
    if make is not None:
        return make(library(), shape)
    mesh = as_mesh(shape)
    return _convex(mesh) if is_convex(mesh) else _surface(mesh)


def _surface(mesh: Mesh) -> Any:
    """Return coal's geometry object of a mesh as a surface, for meshes that are not convex."""
    model = library().BVHModelOBBRSS()
    model.beginModel(len(mesh.triangles), len(mesh.vertices))
    model.addVertices(np.array(mesh.vertices))
    model.addTriangles(mesh.triangles.astype(np.int64))
    model.endModel()
    return model


def _convex(mesh: Mesh) -> Any:
    """Return coal's geometry object of a convex mesh, which is a solid."""
    coal = library()
    vertices, triangles = coal.StdVec_Vec3s(), coal.StdVec_Triangle()
    for vertex in mesh.vertices:
        vertices.append(np.array(vertex))
    for triangle in mesh.triangles.tolist():
        triangles.append(coal.Triangle(*triangle))
    return coal.Convex(vertices, triangles)


@kept_with_owner
def is_convex(mesh: Mesh, /) -> bool:
    """Return whether a mesh is watertight, and no vertex is outside the plane of any triangle.

    The result is also False if the mesh has more than `MAX_CONVEX_TRIANGLES` triangles.
    """
    if not mesh.is_watertight or len(mesh.triangles) > MAX_CONVEX_TRIANGLES:
        return False
    a, b, c = np.moveaxis(mesh.vertices[mesh.triangles], 1, 0)
    normals = np.cross(b - a, c - a)
    normals /= np.linalg.norm(normals, axis=1)[:, None]
    beyond = mesh.vertices @ normals.T - np.sum(normals * a, axis=1)
    size = float(np.ptp(mesh.vertices, axis=0).max())
    return bool(beyond.max() <= CONVEXITY_TOLERANCE * size)


def _contains(outer: PlacedShape, inner: PlacedShape) -> bool:
    """Return whether the solid mesh `outer` contains a connected part of the shape `inner`.

    The surfaces of `outer` and `inner` must not touch. The result is False if `outer` is not a
    watertight mesh. It is also False if `outer` is convex, because coal checks convex solids.
    """
    if not isinstance(outer.shape, Mesh) or isinstance(inner.shape, Plane):
        return False
    if not outer.shape.is_watertight or is_convex(outer.shape):  # coal checks these
        return False
    points = _part_points(inner.shape) @ inner.T[:3, :3].T + inner.T[:3, 3]
    local = np.ascontiguousarray((points - outer.T[:3, 3]) @ outer.T[:3, :3])
    low, high = outer.shape.vertices.min(0), outer.shape.vertices.max(0)
    local = local[((local >= low) & (local <= high)).all(1)]
    distances = np.empty(len(local))
    corners = outer.shape.vertices[outer.shape.triangles]
    mesh_distances(corners, local, True, distances)
    return bool((distances < 0.0).any())


@kept_with_owner
def _part_points(shape: Shape, /) -> Array:
    """Return one point of each of the k connected parts of a shape (k, 3) [m]."""
    if not isinstance(shape, Mesh):
        return np.zeros((1, 3))
    label = np.arange(len(shape.vertices))
    while True:
        smallest = label[shape.triangles].min(axis=1)
        new = label.copy()
        np.minimum.at(new, shape.triangles.ravel(), np.repeat(smallest, 3))
        new = new[new]
        if np.array_equal(new, label):
            return np.asarray(shape.vertices[np.unique(label)])
        label = new
