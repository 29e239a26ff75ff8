# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Reader of the triangles in COLLADA files (.dae), which need not be trusted."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.types import Array
from dls_ik.errors import SceneError
from dls_ik.model.rotations import rotation_about, transform
from dls_ik.model.xml import MAX_XML_DEPTH, XmlElement, read_elements
from dls_ik.text import quoted

MAX_TRIANGLES = 500_000
MAX_NODES = 20_000  # maximum number of visited nodes; a node counts at each of its instances
MAX_INPUTS = 64  # maximum number of <input> elements of a primitive
MAX_COLLADA_BYTES = 64 * 1024 * 1024

_LEAF: dict[str, Any] = {}
_PRIMITIVE = {"input": _LEAF, "p": _LEAF, "vcount": _LEAF, "ph": _LEAF}
_NODE: dict[str, Any] = dict.fromkeys(
    ("matrix", "translate", "rotate", "scale", "lookat", "skew", "instance_geometry"), _LEAF
)
_NODE |= {"instance_node": _LEAF, "instance_controller": _LEAF, "node": _NODE}
_SOURCE = {"float_array": _LEAF, "technique_common": {"accessor": _LEAF}}
# Tags of primitives with an area; lines are ignored
_AREAS = ("triangles", "polylist", "polygons", "tristrips", "trifans")
_MESH = {"source": _SOURCE, "vertices": {"input": _LEAF}, **dict.fromkeys(_AREAS, _PRIMITIVE)}
_GEOMETRY = {"mesh": _MESH, "convex_mesh": _LEAF, "spline": _LEAF}
COLLADA_SCHEMA = {
    "asset": {"unit": _LEAF},
    "library_geometries": {"geometry": _GEOMETRY},
    "library_nodes": {"node": _NODE},
    "library_visual_scenes": {"visual_scene": {"node": _NODE}},
    "scene": {"instance_visual_scene": _LEAF},
}
Part = tuple[Array, NDArray[np.int64]]


def read_collada(content: bytes) -> Part:
    """Return vertices (k, 3) [m] and triangles (m, 3) (vertex indices) of a COLLADA file.

    Raises:
        SceneError: If the content is not COLLADA, a geometry is skinned, not valid or not made of
            polygons, or there are too many triangles. The message gives the line.
    """
    root = read_elements(content, COLLADA_SCHEMA, "mesh", "COLLADA", SceneError, MAX_COLLADA_BYTES)
    parts = _Document(root).draw()
    if not parts:
        raise SceneError("the scene has no triangles")
    counts = np.cumsum([0, *(len(vertices) for vertices, _ in parts)])
    triangles = [part[1] + before for part, before in zip(parts, counts[:-1], strict=True)]
    return np.concatenate([vertices for vertices, _ in parts]), np.concatenate(triangles)


def read_unit(content: bytes) -> float:
    """Return the length unit [m] of a COLLADA file; 1 if the file does not define a unit.

    Raises:
        SceneError: If the content is not COLLADA, or the unit is not positive.
    """
    schema = {"asset": COLLADA_SCHEMA["asset"]}
    return _unit(read_elements(content, schema, "mesh", "COLLADA", SceneError, MAX_COLLADA_BYTES))


def _unit(root: XmlElement) -> float:
    """Return the length unit [m] that the root element of a document defines; 1 by default.

    Raises:
        SceneError: If the unit is not positive.
    """
    asset = root.first("asset")
    unit = None if asset is None else asset.first("unit")
    if unit is None or "meter" not in unit.attributes:
        return 1.0
    (meter,) = unit.numbers("meter", 1)
    if not 0.0 < meter < np.inf:
        unit.refuse(f"the unit must be a positive number of metres; got {meter:g}")
    return meter


class _Document:
    """The elements of a COLLADA document by id, and a reader of the triangles in its scene.

    The attribute `parts` has the triangles read so far.
    """

    def __init__(self, root: XmlElement) -> None:
        self.root = root
        self.geometries = {
            each.attributes.get("id", ""): each
            for library in root.all("library_geometries")
            for each in library.all("geometry")
        }
        self.nodes: dict[str, XmlElement] = {}
        for library in root.all("library_nodes", "library_visual_scenes"):
            waiting = [*library.children]
            while waiting:
                node = waiting.pop()
                self.nodes.setdefault(node.attributes.get("id", ""), node)
                waiting += node.all("node")
        self.read: dict[str, list[Part]] = {}  # triangles of a geometry in its frame, by its id
        self.parts: list[Part] = []
        self.triangles = self.drawn = 0  # numbers of triangles and of nodes so far

    def draw(self) -> list[Part]:
        """Return the triangles of the scene as a list of parts.

        A part has vertices (k, 3) in the frame of the scene [m], and triangles (m, 3) of vertex
        indices.
        """
        scene = self._scene()
        meter = _unit(self.root)
        for node in scene.all("node"):
            self._draw(node, np.diag([meter, meter, meter, 1.0]), 0)
        return self.parts

    def _scene(self) -> XmlElement:
        """Return the <visual_scene> element that the document shows.

        Raises:
            SceneError: If there is no scene, or there are several scenes and no <scene> element
                that selects one.
        """
        scenes = [
            each
            for library in self.root.all("library_visual_scenes")
            for each in library.all("visual_scene")
        ]
        chosen = self.root.first("scene")
        instance = None if chosen is None else chosen.first("instance_visual_scene")
        if instance is not None:
            url = _target(instance)
            scenes = [each for each in scenes if each.attributes.get("id") == url]
        if len(scenes) != 1:
            raise SceneError(f"there must be one scene to draw; got {len(scenes)}")
        return scenes[0]

    def _draw(self, node: XmlElement, T_above: Array, depth: int) -> None:
        """Add the triangles of a <node> element and of its child nodes to `parts`.

        Args:
            node: Element.
            T_above: (4, 4) affine transform from the parent node's frame to the scene [m].
            depth: Number of nodes above the node.

        Raises:
            SceneError: If the node is not valid, or there are too many nodes or triangles.
        """
        self.drawn += 1
        if self.drawn > MAX_NODES:
            node.refuse(f"more than {MAX_NODES} nodes are drawn")
        if depth > MAX_XML_DEPTH:
            node.refuse(f"nodes are nested deeper than {MAX_XML_DEPTH} levels")
        T = T_above
        for child in node.children:  # the transforms are applied to all contents of the node
            if child.tag in _TRANSFORMS:
                T = T @ _transform(child)
            elif child.tag in ("lookat", "skew", "instance_controller"):
                child.refuse(f"<{child.tag}> is not supported")
        if not np.isfinite(T).all():
            node.refuse("a transform is not finite")
        for child in node.children:
            if child.tag == "instance_geometry":
                self._place(child, T)
            elif child.tag == "instance_node":
                self._draw(_found(self.nodes, child), T, depth + 1)
            elif child.tag == "node":
                self._draw(child, T, depth + 1)

    def _place(self, instance: XmlElement, T: Array) -> None:
        """Add the transformed triangles of a geometry to `parts`.

        Args:
            instance: <instance_geometry> element, which refers to the geometry.
            T: (4, 4) affine transform from the geometry's frame to the scene [m].

        Raises:
            SceneError: If the geometry is not valid, or there are too many triangles.
        """
        geometry = _found(self.geometries, instance)
        key = geometry.attributes.get("id", "")
        if key not in self.read:
            self.read[key] = _geometry(geometry)
        for vertices, triangles in self.read[key]:
            self.triangles += len(triangles)
            if self.triangles > MAX_TRIANGLES:
                instance.refuse(f"the scene has more than {MAX_TRIANGLES} triangles")
            turned = triangles[:, ::-1] if np.linalg.det(T[:3, :3]) < 0.0 else triangles
            with np.errstate(all="ignore"):  # class Mesh rejects vertices that are not finite
                self.parts.append((vertices @ T[:3, :3].T + T[:3, 3], turned))


def _rotation(values: Array) -> Array:
    """Return the transform (4, 4) of a rotation; the identity if the axis is zero.

    Args:
        values: (4,) axis x y z and angle [deg].
    """
    length = np.linalg.norm(values[:3])
    if not length > 0.0:
        return np.eye(4)
    return transform(rotation_about(values[:3] / length, np.deg2rad(values[3])))


_TRANSFORMS: dict[str, tuple[int, Callable[[Array], Array]]] = {
    "matrix": (16, lambda values: values.reshape(4, 4)),
    "rotate": (4, _rotation),
    "scale": (3, lambda values: np.diag([*values, 1.0])),
    "translate": (3, lambda values: transform(translation=values)),
}


def _transform(element: XmlElement) -> Array:
    """Return the transform (4, 4) of a <matrix>, <translate>, <rotate> or <scale> element.

    Raises:
        SceneError: If the element does not have the right number of finite numbers.
    """
    count, read = _TRANSFORMS[element.tag]
    values = _floats(element)
    if len(values) != count or not np.isfinite(values).all():
        element.refuse(
            f"<{element.tag}> must be {count} finite numbers; got {len(values)} numbers, "
            f"{np.isfinite(values).sum()} finite"
        )
    return read(values)


def _target(instance: XmlElement) -> str:
    """Return the id of the element to which the ``url`` attribute of an element refers.

    Raises:
        SceneError: If the attribute refers to another file.
    """
    url = instance.attributes.get("url", "")
    if not url.startswith("#"):
        instance.refuse(f"<{instance.tag}> must refer to the same file; got {quoted(url)}")
    return url[1:]


def _found(known: dict[str, XmlElement], instance: XmlElement) -> XmlElement:
    """Return the element to which the ``url`` attribute of an element refers.

    Args:
        known: Possible elements by id.
        instance: Element with the attribute.

    Raises:
        SceneError: If `known` does not have the element, or the attribute refers to another file.
    """
    target = known.get(_target(instance))
    if target is None:
        instance.refuse(f"<{instance.tag}> refers to {quoted(_target(instance))}, which is unknown")
    return target


def _floats(element: XmlElement) -> Array:
    """Return the numbers in the text of an element as an array.

    Raises:
        SceneError: If a word of the text is not a number.
    """
    try:
        return np.array(element.text.split(), np.float64)
    except ValueError:
        element.refuse(f"<{element.tag}> must contain numbers only")


def _integers(element: XmlElement) -> NDArray[np.int64]:
    """Return the integers in the text of an element as an array.

    Raises:
        SceneError: If a word of the text is not an integer.
    """
    try:
        return np.array(element.text.split(), np.int64)
    except (ValueError, OverflowError):
        element.refuse(f"<{element.tag}> must contain integers only")


def _geometry(geometry: XmlElement) -> list[Part]:
    """Return the triangles of a <geometry> element, one part for each primitive such as <polylist>.

    A part has vertices (k, 3) in the frame and length unit of the geometry, and triangles (m, 3) of
    vertex indices.

    Raises:
        SceneError: If the geometry is not valid.
    """
    mesh = geometry.first("mesh")
    if mesh is None:
        geometry.refuse("a geometry must be a mesh")
    sources = {each.attributes.get("id", ""): each for each in mesh.all("source")}
    positions: dict[str, Array] = {}
    for vertices in mesh.all("vertices"):
        given = [each for each in vertices.all("input") if _semantic(each) == "POSITION"]
        if len(given) == 1:
            name = given[0].attributes.get("source", "")[1:]
            if name not in sources:
                vertices.refuse(f"the positions have an unknown source {quoted(name)}")
            positions[vertices.attributes.get("id", "")] = _positions(sources[name])
    return [_polygons(each, positions) for each in mesh.all(*_AREAS)]


def _semantic(element: XmlElement) -> str:
    """Return the ``semantic`` attribute of an <input> element, such as VERTEX or POSITION."""
    return element.attributes.get("semantic", "")


def _positions(source: XmlElement) -> Array:
    """Return the vertex positions (k, 3) in a <source> element, in the geometry's length unit.

    Raises:
        SceneError: If the element has no numbers, or the number of numbers is wrong.
    """
    array = source.first("float_array")
    if array is None:
        source.refuse("the source of positions has no <float_array>")
    values = _floats(array)
    common = source.first("technique_common")
    accessor = None if common is None else common.first("accessor")
    given = {} if accessor is None else accessor.attributes
    stride, offset = _natural(source, given, "stride", 3), _natural(source, given, "offset", 0)
    count = _natural(source, given, "count", len(values) // 3)
    if stride < 3 or offset + count * stride > len(values):
        source.refuse(f"{count} positions with stride {stride} do not fit {len(values)} numbers")
    return values[offset : offset + count * stride].reshape(count, stride)[:, :3]


def _natural(element: XmlElement, attributes: dict[str, str], key: str, default: int) -> int:
    """Return the value of an attribute that is an integer from 0 to 999999999.

    Args:
        element: Element, for the error message.
        attributes: Values of attributes by name.
        key: Name of the attribute.
        default: Value of a missing attribute.

    Raises:
        SceneError: If the value is not an integer in this range.
    """
    text = attributes.get(key, str(default)).strip()
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        element.refuse(f"{key} must be an integer from 0 to 999999999; got {quoted(text)}")
    return int(text)


def _polygons(primitive: XmlElement, positions: dict[str, Array]) -> Part:
    """Return the polygons of a primitive, such as <polylist>, split into triangles.

    Args:
        primitive: Element with polygons.
        positions: Vertex positions (k, 3) by the id of a <vertices> element.

    Returns:
        Vertex positions (k, 3), and triangles (m, 3) of vertex indices.

    Raises:
        SceneError: If the primitive is not valid.
    """
    inputs = [*primitive.all("input")]
    offsets = [_natural(each, each.attributes, "offset", 0) for each in inputs]
    vertex = [i for i, each in enumerate(inputs) if _semantic(each) == "VERTEX"]
    if len(vertex) != 1 or max(offsets) >= MAX_INPUTS:
        primitive.refuse(
            f"<{primitive.tag}> needs one input VERTEX, and offsets below {MAX_INPUTS}"
        )
    name = inputs[vertex[0]].attributes.get("source", "")[1:]
    if name not in positions:
        primitive.refuse(f"<{primitive.tag}> has unknown vertices {quoted(name)}")
    if primitive.first("ph") is not None:
        primitive.refuse("polygons with holes are not supported")
    width, column = max(offsets) + 1, offsets[vertex[0]]
    runs = []  # vertex indices of each <p> element
    for indices in map(_integers, primitive.all("p")):
        if len(indices) % width:
            primitive.refuse(f"{len(indices)} indices cannot be divided among {width} inputs")
        runs.append(indices.reshape(-1, width)[:, column])
    triangles = _triangles(primitive, runs)
    if triangles.size and not 0 <= triangles.min() <= triangles.max() < len(positions[name]):
        primitive.refuse(f"a vertex index is not below {len(positions[name])}, the vertex count")
    return positions[name], triangles


def _triangles(primitive: XmlElement, runs: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Split the polygons of a primitive into triangles (m, 3) of vertex indices.

    Args:
        primitive: Element with polygons; its tag says what the sequences mean.
        runs: Sequence of vertex indices in each <p> element.

    Raises:
        SceneError: If the number of vertex indices does not fit the polygons.
    """
    if primitive.tag == "triangles":
        joined = np.concatenate([*runs, np.empty(0, np.int64)])
        if len(joined) % 3:
            primitive.refuse(f"{len(joined)} corners cannot be divided into triangles")
        return joined.reshape(-1, 3)
    if primitive.tag == "polylist":
        joined = np.concatenate([*runs, np.empty(0, np.int64)])
        sizes = np.concatenate([np.empty(0, np.int64), *map(_integers, primitive.all("vcount"))])
        if (sizes < 1).any() or (sizes > len(joined)).any() or sizes.sum() != len(joined):
            primitive.refuse(f"vcount does not add up to the {len(joined)} corners")
        runs = np.split(joined, np.cumsum(sizes)[:-1]) if len(sizes) else []
    strips = primitive.tag == "tristrips"
    found = [
        (run[i], run[i + 1], run[i + 2]) if strips and i % 2 == 0
        else (run[i + 1], run[i], run[i + 2]) if strips
        else (run[0], run[i + 1], run[i + 2])
        for run in runs
        for i in range(len(run) - 2)
    ]  # fmt: skip
    return np.array(found, np.int64).reshape(-1, 3)
