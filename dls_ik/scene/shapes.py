# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Shapes, bodies that consist of shapes, and the collision geometry of a URDF."""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dls_ik.core.types import Array
from dls_ik.errors import SceneError
from dls_ik.lazy_property import cached_property
from dls_ik.model.rotations import rigid_transform, rotation_from_rpy, transform
from dls_ik.model.tree import Description
from dls_ik.model.urdf import read_description
from dls_ik.model.xml import Schema, XmlElement, read_elements
from dls_ik.scene.collada import MAX_TRIANGLES
from dls_ik.scene.meshes import Triangles, find_mesh, read_mesh_file
from dls_ik.text import quoted

MIN_SHAPE_SIZE, MAX_SHAPE_SIZE = 1e-6, 1e6  # [m] minimum and maximum size of shapes
MAX_BODY_SHAPES = 10_000  # maximum number of shapes of a body
MIN_FLATNESS = 1e-12  # a triangle has no area if height / longest side is at most this


@dataclass(frozen=True, eq=False)
class Box:
    """A box, centred at its origin.

    Raises:
        SceneError: If the sizes are not three positive numbers.
    """

    size: Array  # (3,) edge lengths [m]

    def __post_init__(self) -> None:
        """Validate the size."""
        _set(self, size=_sizes(self.size, "the size of a box must be x, y, z"))


@dataclass(frozen=True, eq=False)
class Sphere:
    """A sphere, centred at its origin.

    Raises:
        SceneError: If the radius is not positive.
    """

    radius: float  # [m]

    def __post_init__(self) -> None:
        """Validate the radius."""
        (radius,) = _sizes([self.radius], "the size of a sphere must be a radius").tolist()
        _set(self, radius=radius)


@dataclass(frozen=True, eq=False)
class Cylinder:
    """A cylinder about the z axis, centred at its origin.

    Raises:
        SceneError: If the radius or the length is not positive.
    """

    radius: float  # [m]
    length: float  # [m]

    def __post_init__(self) -> None:
        """Validate the sizes."""
        given = [self.radius, self.length]
        radius, length = _sizes(given, "the size of a cylinder must be radius, length").tolist()
        _set(self, radius=radius, length=length)


@dataclass(frozen=True, eq=False)
class Capsule:
    """A cylinder about the z axis with a hemisphere at each end, centred at its origin.

    Raises:
        SceneError: If the radius or the length is not positive.
    """

    radius: float  # [m]
    length: float  # [m] length of the cylinder without the hemispheres

    def __post_init__(self) -> None:
        """Validate the sizes."""
        given = [self.radius, self.length]
        radius, length = _sizes(given, "the size of a capsule must be radius, length").tolist()
        _set(self, radius=radius, length=length)


@dataclass(frozen=True, eq=False)
class Plane:
    """A solid half-space, which contains the points x (3,) with ``normal . x <= offset``.

    Raises:
        SceneError: If the normal has zero length, or a number is not finite.
    """

    normal: Array  # (3,) unit vector that points out of the half-space; the constructor scales it
    offset: float = 0.0  # [m] distance of the boundary plane from the origin along the normal

    def __post_init__(self) -> None:
        """Validate the fields, and normalise the normal."""
        normal = _numbers(self.normal, (3,), "the normal of a plane must be x, y, z")
        length = float(np.linalg.norm(normal))
        if length < MIN_SHAPE_SIZE:
            raise SceneError(f"the normal of a plane is too short: {quoted(normal.tolist())}")
        offset = _numbers(self.offset, (), "the offset of a plane must be a number")
        _set(self, normal=normal / length, offset=float(offset))


@dataclass(frozen=True, eq=False)
class Mesh:
    """A surface of triangles, or a solid if the surface is watertight.

    The constructor merges equal vertices and drops triangles without area.

    Raises:
        SceneError: If there are no triangles or too many, or a vertex index is out of range.
    """

    vertices: Array  # (k, 3) [m]
    # (m, 3) int32 vertex indices of each triangle, counter-clockwise seen from outside
    triangles: NDArray[np.signedinteger[Any]]

    def __post_init__(self) -> None:
        """Validate the arrays, merge equal vertices, and drop triangles without area."""
        corners = _triangles(self.triangles)
        valid = "the vertices of a mesh must be rows of x, y, z"
        vertices = _numbers(self.vertices, (-1, 3), valid)
        if len(vertices) > 3 * MAX_TRIANGLES:
            limit = 3 * MAX_TRIANGLES
            raise SceneError(f"a mesh may have at most {limit} vertices; got {len(vertices)}")
        if corners.min() < 0 or corners.max() >= len(vertices):
            wrong = corners[(corners < 0) | (corners >= len(vertices))][0]
            last = len(vertices) - 1
            raise SceneError(f"vertex indices must be from 0 to {last}; got {wrong}")
        vertices, triangles = _merge_vertices(vertices, corners)
        _set(self, vertices=vertices, triangles=triangles)

    @cached_property
    def is_watertight(self) -> bool:
        """Whether the mesh encloses a solid.

        At each edge of a watertight mesh, exactly two triangles meet, and their orientations are
        consistent.
        """
        a, b = self.triangles, np.roll(self.triangles, -1, axis=1)
        count = len(self.vertices)
        edges = np.sort((a.astype(np.int64) * count + b).ravel())
        opposite = np.sort((b.astype(np.int64) * count + a).ravel())
        return bool((np.diff(edges) > 0).all()) and np.array_equal(edges, opposite)


Shape = Box | Sphere | Cylinder | Capsule | Plane | Mesh


@dataclass(frozen=True, eq=False)
class Body:
    """Shapes that move together: the collision geometry of a link, or the shapes of an object.

    Raises:
        SceneError: If the pose of a shape is not a rigid transform, or there are too many shapes.
    """

    name: str  # name of the link or object
    parts: tuple[tuple[Shape, Array], ...] = field(repr=False)  # shapes with T_body_shape (4, 4)

    def __post_init__(self) -> None:
        """Validate the number and the poses of the shapes."""
        if len(self.parts) > MAX_BODY_SHAPES:
            raise SceneError(
                f"{quoted(self.name)} may have at most {MAX_BODY_SHAPES} shapes; got "
                f"{len(self.parts)}"
            )
        name = f"the pose of a shape of {quoted(self.name)}"
        _set(self, parts=tuple((shape, checked_pose(T, name)) for shape, T in self.parts))


def checked_pose(given: Any, name: str) -> Array:
    """Validate a rigid transform, and return it as a read-only array (4, 4) [m].

    Args:
        given: Transform, a matrix (4, 4).
        name: Name of the transform for the error message.

    Raises:
        SceneError: If the matrix is not a rigid transform, or a coordinate of its position is
            larger than `MAX_SHAPE_SIZE`.
    """
    try:
        T = rigid_transform(given, name)
    except ValueError as error:
        raise SceneError(str(error)) from None
    if not (np.abs(T[:3, 3]) <= MAX_SHAPE_SIZE).all():
        given_position = quoted(T[:3, 3].tolist())
        raise SceneError(
            f"{name} must be within {MAX_SHAPE_SIZE:g} m; got position {given_position}"
        )
    T.flags.writeable = False
    return T


# Collision geometry of a URDF

# Shapes by URDF element, with the attributes of the element and their numbers of values
URDF_SHAPES: dict[str, tuple[Callable[..., Shape], dict[str, int]]] = {
    "box": (lambda *size: Box(np.array(size)), {"size": 3}),
    "sphere": (Sphere, {"radius": 1}),
    "cylinder": (Cylinder, {"radius": 1, "length": 1}),
    "capsule": (Capsule, {"radius": 1, "length": 1}),
}
GEOMETRIES = (*URDF_SHAPES, "mesh")
COLLISIONS: Schema = {"link": {"collision": {"origin": {}, "geometry": {"*": {}}}}}
MAX_ALL_TRIANGLES = 4 * MAX_TRIANGLES  # maximum number of triangles of all meshes of a robot


def link_bodies(
    urdf: Description | str | os.PathLike[str], allow: Iterable[str | os.PathLike[str]] = ()
) -> dict[str, Body]:
    """Return the collision geometry of a robot by link; links without geometry are left out.

    Args:
        urdf: ``tree.description`` of a robot, path of a URDF file, or URDF text.
        allow: Folders from which meshes may be read, in addition to the folder of the URDF and to
            ROS packages; see :func:`find_mesh`.

    Raises:
        SceneError: If a shape is not valid, or a mesh cannot be read; the message names the link,
            and either the line or the mesh file.
        RobotModelError: If the URDF cannot be read.
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
    """Reader of the mesh files that a robot description or scene description names.

    A file is read only once, even if several shapes use it.

    Args:
        folder: Folder of the description, to which relative paths refer; None if unknown.
        allow: Additional folders from which files may be read; see :func:`find_mesh`.
    """

    def __init__(self, folder: Path | None, allow: tuple[str | os.PathLike[str], ...] = ()) -> None:
        self._folder, self._allow = folder, allow
        self._read: dict[Path, Triangles] = {}
        self._scaled: dict[tuple[Path, tuple[float, ...]], Mesh] = {}

    def mesh(self, name: str, scale: ArrayLike = (1.0, 1.0, 1.0)) -> Mesh:
        """Return the mesh in a file, scaled about its origin.

        Args:
            name: ``package://NAME/PATH``, ``file://PATH``, or a path.
            scale: (3,) factors along x, y and z; negative factors mirror the mesh.

        Raises:
            SceneError: If the file is not found or not valid, a factor is zero, or the meshes read
                so far have too many triangles in total.
        """
        factors = _numbers(scale, (3,), "the scale of a mesh must be x, y, z")
        path = find_mesh(name, self._folder, self._allow)
        key = (path, tuple(factors.tolist()))
        if key not in self._scaled:
            if path not in self._read:
                self._read[path] = read_mesh_file(path)
                if sum(len(triangles) for _, triangles in self._read.values()) > MAX_ALL_TRIANGLES:
                    raise SceneError(f"all meshes have more than {MAX_ALL_TRIANGLES} triangles")
            vertices, triangles = self._read[path]
            mirrored = np.prod(np.sign(factors)) < 0.0
            with np.errstate(all="ignore"):  # class Mesh rejects vertices that are not finite
                scaled = vertices * factors
            try:
                self._scaled[key] = Mesh(scaled, triangles[:, ::-1] if mirrored else triangles)
            except SceneError as error:
                raise SceneError(f"mesh {quoted(name)}: {error}") from error
        return self._scaled[key]


def _part(collision: XmlElement, meshes: MeshLibrary) -> tuple[Shape, Array]:
    """Return the shape that a <collision> element of a URDF describes, and its pose (4, 4) [m].

    The pose is in the frame of the link.

    Raises:
        SceneError: If the element is not valid.
    """
    geometry = collision.first("geometry")
    given = [] if geometry is None else geometry.children
    if len(given) != 1:
        names = " and ".join(f"<{each.tag}>" for each in given[:3]) or "nothing"
        collision.refuse(f"<collision> must have one of {', '.join(GEOMETRIES)}; got {names}")
    origin, T = collision.first("origin"), np.eye(4)
    if origin is not None:
        if "quat_xyzw" in origin.attributes:
            origin.refuse("quat_xyzw is not supported; write the rotation as rpy")
        rpy = origin.numbers("rpy", 3, "0 0 0")
        if not np.isfinite(rpy).all():
            origin.refuse(f"rpy must be finite; got {rpy}")
        T = transform(rotation_from_rpy(*rpy), np.array(origin.numbers("xyz", 3, "0 0 0")))
    return _shape(given[0], meshes), T


def _shape(element: XmlElement, meshes: MeshLibrary) -> Shape:  # noqa: RET503
    """Return the shape that an element such as <box> inside <geometry> describes.

    Raises:
        SceneError: If the shape is unknown or not valid.
    """
    try:
        if element.tag in URDF_SHAPES:
            make, attributes = URDF_SHAPES[element.tag]
            given = [element.numbers(name, count) for name, count in attributes.items()]
            return make(*(value for values in given for value in values))
        if element.tag == "mesh":
            scale = element.attributes.get("scale", "1 1 1").split()
            factors = element.numbers("scale", len(scale) if len(scale) == 1 else 3, "1 1 1")
            return meshes.mesh(element.name("filename"), np.resize(factors, 3))
    except SceneError as error:
        if str(error).startswith("line "):
            raise
        element.refuse(str(error))
    element.refuse(f"unknown shape <{element.tag}>; known shapes: {', '.join(GEOMETRIES)}")


def _set(shape: object, **values: Any) -> None:
    """Set fields of a shape or body, which is a frozen dataclass; arrays become read-only."""
    for name, value in values.items():
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
        object.__setattr__(shape, name, value)


def _numbers(given: ArrayLike, shape: tuple[int, ...], what: str) -> Array:
    """Check the shape and the range of an array of numbers, and return a new array.

    Args:
        given: Numbers.
        shape: Required shape of the array; -1 stands for any number of rows.
        what: Start of the error message, which says what the numbers must be.

    Raises:
        SceneError: If the array has another shape, or the magnitude of a number is larger than
            `MAX_SHAPE_SIZE`.
    """
    try:
        values = np.array(given, np.float64) + 0.0  # -0.0 becomes 0.0
    except (TypeError, ValueError, OverflowError):
        raise SceneError(f"{what}; got {quoted(given)}") from None
    rows = values.shape[:1] if shape[:1] == (-1,) else shape[:1]
    if values.shape != rows + shape[1:]:
        is_flat = values.ndim == 1
        shown = f"{values.size} numbers" if is_flat else f"an array of shape {values.shape}"
        raise SceneError(f"{what}; got {shown}")
    outside = ~(np.abs(values) <= MAX_SHAPE_SIZE)
    if outside.any():
        raise SceneError(f"{what} within {MAX_SHAPE_SIZE:g} m; got {values[outside][0]:g}")
    return values


def _sizes(given: ArrayLike, what: str) -> Array:
    """Check the sizes of a shape, and return them as an array [m].

    Args:
        given: Sizes.
        what: Start of the error message, such as ``the size of a box must be x, y, z``. The sizes
            in this text are separated by commas, and define the required number of sizes.

    Raises:
        SceneError: If the number of sizes is wrong, or a size is not from `MIN_SHAPE_SIZE` to
            `MAX_SHAPE_SIZE`.
    """
    values = _numbers(given, (what.count(",") + 1,), what)
    if not (values >= MIN_SHAPE_SIZE).all():
        shown = " ".join(f"{value:g}" for value in values)
        valid = f"{what}, each" if "," in what else what
        bounds = f"from {MIN_SHAPE_SIZE:g} to {MAX_SHAPE_SIZE:g} m"
        raise SceneError(f"{valid} {bounds}; got {shown}")
    return values


def _triangles(given: ArrayLike) -> NDArray[np.int64]:
    """Return the triangles of a mesh as an array (m, 3) of vertex indices.

    The range of the indices is not checked.

    Raises:
        SceneError: If the triangles are not rows of three integers, or there are no triangles or
            too many.
    """
    what = "the triangles of a mesh must be rows of three indices"
    try:
        triangles = np.asarray(given)
    except (TypeError, ValueError, OverflowError):
        raise SceneError(f"{what}; got {quoted(given)}") from None
    if triangles.size == 0:
        raise SceneError("a mesh has no triangles")
    if triangles.ndim != 2 or triangles.shape[1] != 3:
        raise SceneError(f"{what}; got an array of shape {triangles.shape}")
    if triangles.dtype.kind not in "iu":
        raise SceneError(f"{what}; got the type {triangles.dtype}")
    if len(triangles) > MAX_TRIANGLES:
        raise SceneError(f"a mesh may have at most {MAX_TRIANGLES} triangles; got {len(triangles)}")
    return triangles.astype(np.int64)


def _merge_vertices(
    vertices: Array, triangles: NDArray[np.int64]
) -> tuple[Array, NDArray[np.int32]]:
    """Merge equal vertices, and drop triangles without area and vertices that no triangle uses.

    Args:
        vertices: (k, 3) vertices [m].
        triangles: (m, 3) vertex indices.

    Returns:
        The remaining vertices and triangles.

    Raises:
        SceneError: If all triangles have no area.
    """
    rows = np.ascontiguousarray(vertices).view("V24").ravel()
    _, first, inverse = np.unique(rows, return_index=True, return_inverse=True)
    triangles = first[inverse.ravel()[triangles]]
    a, b, c = (vertices[corner] for corner in triangles.T)
    twice_area = np.linalg.norm(np.cross(b - a, c - a), axis=1)
    longest = np.max([np.sum((p - q) ** 2, axis=1) for p, q in ((a, b), (b, c), (c, a))], axis=0)
    triangles = triangles[twice_area > MIN_FLATNESS * longest]
    if not len(triangles):
        raise SceneError("all triangles of the mesh have no area")
    used, indices = np.unique(triangles, return_inverse=True)
    return vertices[used], indices.reshape(triangles.shape).astype(np.int32)
