"""Shapes, bodies made of them, and the collision geometry of a URDF."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dls_ik.core.types import Array
from dls_ik.errors import SceneError
from dls_ik.model.rotations import rigid_transform, rotation_from_rpy, transform
from dls_ik.model.tree import Description
from dls_ik.model.urdf import read_description
from dls_ik.model.xml import Schema, XmlElement, read_elements
from dls_ik.scene.collada import MAX_TRIANGLES
from dls_ik.scene.meshes import Triangles, find_mesh, read_mesh_file
from dls_ik.text import quoted

SMALLEST, LARGEST = 1e-6, 1e6  # [m] sizes of shapes
MAX_PARTS = 10_000  # of a body
THINNEST = (
    1e-12  # height of a triangle over its longest edge, by that edge; flatter ones have no area
)


@dataclass(frozen=True, eq=False)
class Box:
    """A box, centred.

    Raises:
        SceneError: If the sizes are not three positive numbers.
    """

    size: Array  # (3,) edge lengths [m]

    def __post_init__(self) -> None:
        """Check."""
        _set(self, size=_sizes(self.size, "a box is x, y, z"))


@dataclass(frozen=True, eq=False)
class Sphere:
    """A sphere, centred.

    Raises:
        SceneError: If the radius is not positive.
    """

    radius: float  # [m]

    def __post_init__(self) -> None:
        """Check."""
        (radius,) = _sizes([self.radius], "a sphere is its radius").tolist()
        _set(self, radius=radius)


@dataclass(frozen=True, eq=False)
class Cylinder:
    """A cylinder about the z axis, centred.

    Raises:
        SceneError: If the radius or the length is not positive.
    """

    radius: float  # [m]
    length: float  # [m]

    def __post_init__(self) -> None:
        """Check."""
        given = [self.radius, self.length]
        radius, length = _sizes(given, "a cylinder is radius, length").tolist()
        _set(self, radius=radius, length=length)


@dataclass(frozen=True, eq=False)
class Capsule:
    """A cylinder about the z axis with half a sphere at either end, centred.

    Raises:
        SceneError: If the radius or the length is not positive.
    """

    radius: float  # [m]
    length: float  # [m] of the cylinder, without the half spheres

    def __post_init__(self) -> None:
        """Check."""
        given = [self.radius, self.length]
        radius, length = _sizes(given, "a capsule is radius, length").tolist()
        _set(self, radius=radius, length=length)


@dataclass(frozen=True, eq=False)
class Plane:
    """The half-space below a plane, ``normal . x <= offset``, which is solid.

    Raises:
        SceneError: If the normal has zero length, or a number is not finite.
    """

    normal: Array  # (3,), made a unit
    offset: float = 0.0  # [m] along the unit normal

    def __post_init__(self) -> None:
        """Check and normalise."""
        normal = _numbers(self.normal, (3,), "the normal of a plane is x, y, z")
        length = float(np.linalg.norm(normal))
        if length < SMALLEST:
            raise SceneError(f"the normal of a plane has no direction: {quoted(normal.tolist())}")
        offset = _numbers(self.offset, (), "the offset of a plane is a number")
        _set(self, normal=normal / length, offset=float(offset))


@dataclass(frozen=True, eq=False)
class Mesh:
    """A surface of triangles; equal vertices are made one, triangles without area left out.

    Raises:
        SceneError: If there are no triangles or too many, or a triangle lacks vertices.
    """

    vertices: Array  # (k, 3) [m]
    triangles: NDArray[np.signedinteger[Any]]  # (m, 3) int32 indices, counter-clockwise outside

    def __post_init__(self) -> None:
        """Check, and make it one surface."""
        corners = _triangles(self.triangles)
        vertices = _numbers(self.vertices, (-1, 3), "the vertices of a mesh are rows of x, y, z")
        if len(vertices) > 3 * MAX_TRIANGLES:
            most = 3 * MAX_TRIANGLES
            raise SceneError(f"a mesh has at most {most} vertices, not {len(vertices)}")
        if corners.min() < 0 or corners.max() >= len(vertices):
            wrong = corners[(corners < 0) | (corners >= len(vertices))][0]
            raise SceneError(f"a triangle names vertex {wrong}; there are {len(vertices)}, from 0")
        vertices, triangles = _joined(vertices, corners)
        _set(self, vertices=vertices, triangles=triangles)

    @cached_property
    def is_watertight(self) -> bool:
        """Check that each edge has two triangles that turn the same way, so that it is closed."""
        a, b = self.triangles, np.roll(self.triangles, -1, axis=1)
        count = len(self.vertices)
        edges = np.sort((a.astype(np.int64) * count + b).ravel())
        opposite = np.sort((b.astype(np.int64) * count + a).ravel())
        return bool((np.diff(edges) > 0).all()) and np.array_equal(edges, opposite)


Shape = Box | Sphere | Cylinder | Capsule | Plane | Mesh


@dataclass(frozen=True, eq=False)
class Body:
    """Shapes that move together: the collision geometry of a link, or an object.

    Raises:
        SceneError: If a pose is not a rigid transform, or there are too many parts.
    """

    name: str
    parts: tuple[tuple[Shape, Array], ...] = field(repr=False)  # with (4, 4) T_body_shape each

    def __post_init__(self) -> None:
        """Check."""
        if len(self.parts) > MAX_PARTS:
            raise SceneError(
                f"{quoted(self.name)} has {len(self.parts)} shapes, at most {MAX_PARTS} are taken"
            )
        name = f"of {quoted(self.name)} the pose of a shape"
        _set(self, parts=tuple((shape, checked_pose(T, name)) for shape, T in self.parts))


def checked_pose(given: Any, name: str) -> Array:
    """Return a rigid transform (4, 4), read-only.

    Raises:
        SceneError: If the pose is not a rigid transform, or is farther than `LARGEST` [m].
    """
    try:
        T = rigid_transform(given, name)
    except ValueError as error:
        raise SceneError(str(error)) from None
    if not (np.abs(T[:3, 3]) <= LARGEST).all():
        raise SceneError(f"{name} is within {LARGEST:g} m, not at {quoted(T[:3, 3].tolist())}")
    T.flags.writeable = False
    return T


# Collision geometry of a URDF

GEOMETRIES = ("box", "sphere", "cylinder", "capsule", "mesh")
COLLISIONS: Schema = {"link": {"collision": {"origin": {}, "geometry": {"*": {}}}}}
MAX_ALL_TRIANGLES = 4 * MAX_TRIANGLES  # of a robot


def link_bodies(
    urdf: Description | str | os.PathLike[str], allow: Iterable[str | os.PathLike[str]] = ()
) -> dict[str, Body]:
    """Read the collision geometry of a robot, of all links that have one.

    Args:
        urdf: ``tree.description`` of a robot; or a file, or the text of one.
        allow: Folders in which meshes may be read, beside those of :func:`find_mesh`.

    Raises:
        SceneError: If a shape is not usable, or a mesh cannot be read; the message names the link,
            and the line or the file.
        RobotModelError: If a file cannot be read.
    """
    description = urdf if isinstance(urdf, Description) else read_description(urdf)
    root = read_elements(description.urdf, COLLISIONS, "URDF", "robot", SceneError)
    meshes = MeshLibrary(description.folder, tuple(allow))
    bodies = {}
    for link in root.all("link"):
        name = link.name()
        try:
            parts = tuple(_part(each, meshes) for each in link.all("collision"))
            if parts:
                bodies[name] = Body(name, parts)
        except SceneError as error:
            raise SceneError(f"collision geometry of link {name!r}: {error}") from error
    return bodies


class MeshLibrary:
    """Reads the meshes that a description names, each file once.

    Args:
        folder: As for :func:`find_mesh`.
        allow: As for :func:`find_mesh`.
    """

    def __init__(self, folder: Path | None, allow: tuple[str | os.PathLike[str], ...] = ()) -> None:
        self._folder, self._allow = folder, allow
        self._read: dict[Path, Triangles] = {}
        self._scaled: dict[tuple[Path, tuple[float, ...]], Mesh] = {}

    def mesh(self, name: str, scale: ArrayLike = (1.0, 1.0, 1.0)) -> Mesh:
        """Return a mesh by the name of its file, with (3,) factors along its axes.

        Raises:
            SceneError: If :func:`find_mesh` or :func:`read_mesh_file` raises it, all meshes
                together have too many triangles, or a scale is zero.
        """
        factors = _numbers(scale, (3,), "the scale of a mesh is x, y, z")
        path = find_mesh(name, self._folder, self._allow)
        key = (path, tuple(factors.tolist()))
        if key not in self._scaled:
            if path not in self._read:
                self._read[path] = read_mesh_file(path)
                if sum(len(triangles) for _, triangles in self._read.values()) > MAX_ALL_TRIANGLES:
                    raise SceneError(f"more than {MAX_ALL_TRIANGLES} triangles in all meshes")
            vertices, triangles = self._read[path]
            mirrored = np.prod(np.sign(factors)) < 0.0
            with np.errstate(all="ignore"):  # the mesh refuses what is not finite
                scaled = vertices * factors
            try:
                self._scaled[key] = Mesh(scaled, triangles[:, ::-1] if mirrored else triangles)
            except SceneError as error:
                raise SceneError(f"mesh {quoted(name)}: {error}") from error
        return self._scaled[key]


def _part(collision: XmlElement, meshes: MeshLibrary) -> tuple[Shape, Array]:
    geometry = collision.first("geometry")
    given = [] if geometry is None else geometry.children
    if len(given) != 1:
        names = " and ".join(f"<{each.tag}>" for each in given[:3]) or "nothing"
        collision.refuse(f"<collision> has one of {', '.join(GEOMETRIES)}, not {names}")
    origin, T = collision.first("origin"), np.eye(4)
    if origin is not None:
        if "quat_xyzw" in origin.attributes:
            origin.refuse("quat_xyzw is not supported, write the rotation as rpy")
        rpy = origin.numbers("rpy", 3, "0 0 0")
        if not np.isfinite(rpy).all():
            origin.refuse(f"rpy must be finite, given {rpy}")
        T = transform(rotation_from_rpy(*rpy), np.array(origin.numbers("xyz", 3, "0 0 0")))
    return _shape(given[0], meshes), T


def _shape(element: XmlElement, meshes: MeshLibrary) -> Shape:  # noqa: RET503
    """Return the shape of an element below <geometry>."""
    try:
        if element.tag == "box":
            return Box(np.array(element.numbers("size", 3)))
        if element.tag == "sphere":
            return Sphere(*element.numbers("radius", 1))
        if element.tag == "cylinder":
            return Cylinder(*element.numbers("radius", 1), *element.numbers("length", 1))
        if element.tag == "capsule":
            return Capsule(*element.numbers("radius", 1), *element.numbers("length", 1))
        if element.tag == "mesh":
            scale = element.attributes.get("scale", "1 1 1").split()
            factors = element.numbers("scale", len(scale) if len(scale) == 1 else 3, "1 1 1")
            return meshes.mesh(element.name("filename"), np.resize(factors, 3))
    except SceneError as error:
        if str(error).startswith("line "):
            raise
        element.refuse(str(error))
    element.refuse(f"unknown shape <{element.tag}>; known: {', '.join(GEOMETRIES)}")


def _set(shape: object, **values: Any) -> None:
    """Set fields of a frozen dataclass, arrays read-only."""
    for name, value in values.items():
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
        object.__setattr__(shape, name, value)


def _numbers(given: ArrayLike, shape: tuple[int, ...], what: str) -> Array:
    """Return a new array of a shape, in which -1 is any length."""
    try:
        values = np.array(given, np.float64) + 0.0  # no negative zeros
    except (TypeError, ValueError, OverflowError):
        raise SceneError(f"{what}, not {quoted(given)}") from None
    rows = values.shape[:1] if shape[:1] == (-1,) else shape[:1]
    if values.shape != rows + shape[1:]:
        given_as = f"{values.size} numbers" if values.ndim == 1 else f"of shape {values.shape}"
        raise SceneError(f"{what}, not {given_as}")
    outside = ~(np.abs(values) <= LARGEST)
    if outside.any():
        raise SceneError(f"{what} within {LARGEST:g} m, not {values[outside][0]:g}")
    return values


def _sizes(given: ArrayLike, what: str) -> Array:
    """Return positive sizes [m], as many as the description has commas and one."""
    values = _numbers(given, (what.count(",") + 1,), what)
    if not (values >= SMALLEST).all():
        shown = " ".join(f"{value:g}" for value in values)
        raise SceneError(f"{what}, each from {SMALLEST:g} to {LARGEST:g} m, not {shown}")
    return values


def _triangles(given: ArrayLike) -> NDArray[np.int64]:
    """Return rows of three indices, whose range is not checked."""
    what = "the triangles of a mesh are rows of three indices"
    try:
        triangles = np.asarray(given)
    except (TypeError, ValueError, OverflowError):
        raise SceneError(f"{what}, not {quoted(given)}") from None
    if triangles.size == 0:
        raise SceneError("a mesh has no triangles")
    if triangles.ndim != 2 or triangles.shape[1] != 3:
        raise SceneError(f"{what}, not of shape {triangles.shape}")
    if triangles.dtype.kind not in "iu":
        raise SceneError(f"{what}, not of type {triangles.dtype}")
    if len(triangles) > MAX_TRIANGLES:
        raise SceneError(f"a mesh has at most {MAX_TRIANGLES} triangles, not {len(triangles)}")
    return triangles.astype(np.int64)


def _joined(vertices: Array, triangles: NDArray[np.int64]) -> tuple[Array, NDArray[np.int32]]:
    """Make equal vertices one, and drop triangles without area and vertices without triangles."""
    rows = np.ascontiguousarray(vertices).view("V24").ravel()
    _, first, inverse = np.unique(rows, return_index=True, return_inverse=True)
    triangles = first[inverse.ravel()[triangles]]
    a, b, c = (vertices[corner] for corner in triangles.T)
    twice_area = np.linalg.norm(np.cross(b - a, c - a), axis=1)
    longest = np.max([np.sum((p - q) ** 2, axis=1) for p, q in ((a, b), (b, c), (c, a))], axis=0)
    triangles = triangles[twice_area > THINNEST * longest]
    if not len(triangles):
        raise SceneError("a mesh has only triangles without area")
    used, indices = np.unique(triangles, return_inverse=True)
    return vertices[used], indices.reshape(triangles.shape).astype(np.int32)
