# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Conversion of shapes to MuJoCo geometry; MuJoCo supports contacts of convex meshes only."""

from collections import OrderedDict
from collections.abc import Iterator
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.errors import RobotModelError
from dls_ik.model.rotations import quaternion_from_rotation, transform
from dls_ik.scene.shape_table import as_mesh, kind_of
from dls_ik.scene.shapes import Mesh, Shape
from dls_ik.text import quoted

LIBRARY = "mujoco"
MIN_THICKNESS = 1e-4  # [m] thinner meshes are replaced by boxes
MAX_HULL_EXCESS = 1e-3  # relative volume by which the hull of a convex mesh may exceed the mesh
MAX_FACETS = 1000  # a concave mesh with more triangles is replaced by its hull
MAX_FACET_DEPTH = 0.02  # [m] maximum depth of a tetrahedron behind a triangle
MAX_HULL_VERTICES = 1000  # MuJoCo simplifies hulls with more vertices
MAX_KEPT = 256  # maximum number of converted meshes in the cache


class PhysicsError(RobotModelError):
    """Error that is raised if MuJoCo is missing, or cannot simulate the robot and its objects."""


@lru_cache(None)
def mujoco() -> Any:
    """Return the Python module of MuJoCo.

    Raises:
        PhysicsError: If MuJoCo is not installed, or cannot be imported.
    """
    if find_spec(LIBRARY) is None:
        raise PhysicsError("physics needs MuJoCo: pip install 'dls_ik[physics]'")
    try:
        return import_module(LIBRARY)
    except (ImportError, OSError) as error:
        raise PhysicsError(f"MuJoCo is installed, but cannot be imported: {error}") from error


def compiled(spec: Any) -> Any:
    """Return the model (mujoco.MjModel) that MuJoCo compiles from a specification (mujoco.MjSpec).

    Raises:
        PhysicsError: If MuJoCo cannot compile the specification.
    """
    try:
        return spec.compile()
    except (ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        raise PhysicsError(f"MuJoCo cannot compile the model: {quoted(reason, 200)}") from error


def wxyz(T: Array) -> list[float]:
    """Return the rotation of a pose (4, 4) as a quaternion (w, x, y, z), the order of MuJoCo."""
    x, y, z, w = quaternion_from_rotation(T[:3, :3])
    return [w, x, y, z]


def mujoco_pose(T: Array) -> dict[str, Any]:
    """Return the MuJoCo attributes `pos` and `quat` (w, x, y, z) that describe a pose (4, 4)."""
    return {"pos": T[:3, 3], "quat": wxyz(T)}


class Solid(NamedTuple):
    """Mesh, and the convex parts that replace the mesh in MuJoCo."""

    mesh: Mesh
    hull: Array  # (h, 3) vertices of the convex hull [m]; (0, 3): the mesh is flat
    facets: Array  # (f, 4, 3) tetrahedra that replace a concave mesh [m]; (0, 4, 3): use the hull
    is_hull: bool  # whether the mesh is concave, so that its hull is larger than the mesh


class SolidLibrary:
    """Cache of the last `MAX_KEPT` meshes that were converted to convex parts."""

    def __init__(self) -> None:
        self._solids: OrderedDict[int, Solid] = OrderedDict()
        self.note = ""  # warning that concave meshes were replaced by convex hulls, or empty

    def geoms(self, spec: Any, shape: Shape, T: Array, by_facets: bool) -> Iterator[dict[str, Any]]:
        """Yield the arguments of MuJoCo's ``add_geom``, once for each convex part of a shape.

        Args:
            spec: Specification (mujoco.MjSpec) to which the meshes of the shape are added.
            shape: Shape.
            T: (4, 4) pose of the shape in the frame of its body.
            by_facets: Whether a concave mesh is replaced by one tetrahedron for each triangle, if
                possible; if False, it is replaced by its convex hull.
        """
        kind = kind_of(shape)
        if kind.mujoco is None:
            yield from self._mesh_geoms(spec, as_mesh(shape), T, by_facets)
            return
        _, size, T_shape_kernel = kind.kernel(shape)
        yield {
            "type": getattr(mujoco().mjtGeom, kind.mujoco),
            "size": size if kind.sizes else [0, 0, 1],  # planes are infinite
            **mujoco_pose(T @ T_shape_kernel),
        }

    def _mesh_geoms(
        self, spec: Any, mesh: Mesh, T: Array, by_facets: bool
    ) -> Iterator[dict[str, Any]]:
        solid = self._solid(mesh)
        if not len(solid.hull):
            centre, R, half = _flat_box(mesh.vertices)
            pose = mujoco_pose(T @ transform(R, centre))
            yield {"type": mujoco().mjtGeom.mjGEOM_BOX, "size": half, **pose}
            return
        parts = solid.facets if by_facets and len(solid.facets) else solid.hull[None]
        if solid.is_hull and len(parts) == 1:
            self.note = "some concave meshes are replaced by their convex hulls in contacts"
        for k, vertices in enumerate(parts):
            name = f"mesh {id(mesh)} {k} of {len(parts)}"
            if spec.mesh(name) is None:
                made = spec.add_mesh(name=name)
                made.uservert = vertices.ravel().tolist()
                made.inertia = mujoco().mjtMeshInertia.mjMESH_INERTIA_CONVEX
            yield {"type": mujoco().mjtGeom.mjGEOM_MESH, "meshname": name, **mujoco_pose(T)}

    def _solid(self, mesh: Mesh) -> Solid:
        key = id(mesh)  # unique, because the cached solid holds a reference to the mesh
        if key not in self._solids:
            self._solids[key] = _solid(mesh)
            if len(self._solids) > MAX_KEPT:
                self._solids.popitem(last=False)
        self._solids.move_to_end(key)
        return self._solids[key]


def _solid(mesh: Mesh) -> Solid:
    no_hull, no_facets = np.zeros((0, 3)), np.zeros((0, 4, 3))
    if _flat_box(mesh.vertices)[2].min() <= MIN_THICKNESS:
        return Solid(mesh, no_hull, no_facets, False)
    model = compiled(_spec_of(mesh.vertices[None]))
    R = np.zeros(9)
    mujoco().mju_quat2Mat(R, model.mesh_quat[0])
    vertices = model.mesh_vert @ R.reshape(3, 3).T + model.mesh_pos[0]
    hull = vertices[np.unique(model.mesh_face)]
    corners = mesh.vertices[mesh.triangles]
    bulge = _volume(vertices[model.mesh_face]) * (1.0 - MAX_HULL_EXCESS) - _volume(corners)
    if mesh.is_watertight and bulge <= 0.0:
        return Solid(mesh, hull, no_facets, False)
    if len(corners) <= MAX_FACETS:
        facets = _facets(corners, mesh.is_watertight)
        try:
            compiled(_spec_of(facets))
        except PhysicsError:  # some triangles are too small
            return Solid(mesh, hull, no_facets, True)
        return Solid(mesh, hull, facets, True)
    return Solid(mesh, hull, no_facets, True)


def _spec_of(parts: Array) -> Any:
    """Return a MuJoCo specification whose only body consists of f convex parts.

    Args:
        parts: (f, k, 3) vertices of the parts, k for each part [m].
    """
    mj = mujoco()
    spec = mj.MjSpec()
    for k, vertices in enumerate(parts):
        made = spec.add_mesh(name=f"part {k}")
        made.uservert = vertices.ravel().tolist()
        made.maxhullvert = MAX_HULL_VERTICES
        made.inertia = mj.mjtMeshInertia.mjMESH_INERTIA_CONVEX
        spec.worldbody.add_geom(type=mj.mjtGeom.mjGEOM_MESH, meshname=f"part {k}")
    return spec


def _facets(corners: Array, is_solid: bool) -> Array:
    """Return one tetrahedron for each triangle of a mesh, shape (m, 4, 3) [m].

    The triangle is the base of its tetrahedron; the apex is behind the triangle, opposite to its
    normal.

    Args:
        corners: (m, 3, 3) corners of the triangles [m].
        is_solid: Whether the triangles enclose a solid. If True, a tetrahedron is at most half as
            deep as the solid behind its triangle; if False, it is MIN_THICKNESS deep.
    """
    middle = corners.mean(axis=1)
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normal /= np.linalg.norm(normal, axis=1)[:, None]
    depth = np.full(len(corners), MIN_THICKNESS)
    if is_solid:
        thickness = [
            _distance_along(corners, each, -n) for each, n in zip(middle, normal, strict=True)
        ]
        depth = np.clip(0.5 * np.array(thickness), MIN_THICKNESS, MAX_FACET_DEPTH)
    apex = middle - depth[:, None] * normal
    return np.concatenate([corners, apex[:, None]], axis=1)


def _distance_along(corners: Array, point: Array, direction: Array) -> float:
    """Return the distance [m] along a ray to the first triangle that the ray meets.

    Return 2 MAX_FACET_DEPTH if the ray meets no triangle within this distance. Triangles closer
    than MIN_THICKNESS are ignored.

    Args:
        corners: (m, 3, 3) corners of the triangles [m].
        point: (3,) start of the ray [m].
        direction: (3,) unit vector along the ray.
    """
    a, u, v = corners[:, 0], corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    across = np.cross(direction, v)
    scale = np.einsum("ij,ij->i", u, across)
    with np.errstate(divide="ignore", invalid="ignore"):
        offset = point - a
        s = np.einsum("ij,ij->i", offset, across) / scale
        beside = np.cross(offset, u)
        t = beside @ direction / scale
        distance = np.einsum("ij,ij->i", v, beside) / scale
        met = (s >= 0.0) & (t >= 0.0) & (s + t <= 1.0) & (distance > MIN_THICKNESS)
    return float(distance[met].min(initial=2.0 * MAX_FACET_DEPTH))


def _volume(corners: Array) -> float:
    """Return the volume [m^3] enclosed by the triangles of a closed mesh, corners (m, 3, 3) [m]."""
    a, b, c = corners.swapaxes(0, 1) - corners[0, 0]
    return abs(float(np.einsum("ij,ij->", a, np.cross(b, c)))) / 6.0


def _flat_box(vertices: Array) -> tuple[Array, Array, Array]:
    """Return the bounding box of vertices (m, 3) [m] along the principal axes of the vertices.

    Returns:
        Centre of the box (3,) [m], axes of the box as columns of a rotation (3, 3), and half sizes
        of the box (3,) [m], which are at least MIN_THICKNESS.
    """
    middle = vertices.mean(axis=0)
    R = np.linalg.eigh((vertices - middle).T @ (vertices - middle))[1]
    R[:, 2] *= np.sign(np.linalg.det(R))
    along = (vertices - middle) @ R
    low, high = along.min(axis=0), along.max(axis=0)
    return middle + R @ (0.5 * (low + high)), R, np.maximum(0.5 * (high - low), MIN_THICKNESS)
