# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Readers of the vertices and triangles in STL, OBJ and COLLADA files, which need not be trusted.

Unknown content is an error, because a surface that a reader ignores would be missing in collision
checks.
"""

import os
import re
from collections.abc import Callable, Iterable
from itertools import chain, pairwise
from os.path import abspath, normpath
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.types import Array
from dls_ik.errors import SceneError
from dls_ik.model.files import (
    PACKAGE_SCHEME,
    package_roots,
    read_file,
    resource_candidates,
    resource_packages,
)
from dls_ik.scene.collada import MAX_TRIANGLES, read_collada
from dls_ik.text import listing, quoted

MAX_MESH_BYTES = 64 * 1024 * 1024
STL_HEADER, STL_TRIANGLE = 84, 50  # sizes of the header and of a triangle in binary STL [bytes]
STL_LAYOUT = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
STL_VERTEX = re.compile(rb"\bvertex\s+(\S+)\s+(\S+)\s+(\S+)", re.IGNORECASE)
STL_END = re.compile(rb"\bendfacet\b", re.IGNORECASE)

Triangles = tuple[Array, NDArray[np.int64]]  # vertices (k, 3) [m] and vertex indices (m, 3)


# Files


def find_mesh(name: str, folder: Path | None, allow: Iterable[str | os.PathLike[str]] = ()) -> Path:
    """Return the path of a mesh file that a robot description or scene description names.

    Only files in certain folders may be read. These are the folders of ROS packages
    (AMENT_PREFIX_PATH, ROS_PACKAGE_PATH) and the folders in `allow`. If the folder of the
    description is known, files may also be read from this folder, from its parent folder, and from
    the ROS package NAME of the file name, if the package is in this folder, above this folder, or
    in a folder above this folder.

    Args:
        name: ``package://NAME/PATH``, ``file://PATH``, or a path.
        folder: Folder of the description, to which relative paths refer; None if unknown.
        allow: Additional folders in which files are searched and from which files may be read.

    Raises:
        SceneError: If the file is not found, or is outside all allowed folders.
    """
    further = [Path(normpath(abspath(root))) for root in allow]
    allowed = [*(Path(normpath(abspath(root))) for root in package_roots()), *further]
    if folder is not None:
        here = Path(abspath(folder))
        allowed += [here, here.parent, *resource_packages(name, here)]
    try:
        paths = chain.from_iterable(resource_candidates(name, each) for each in (folder, *further))
        found = [Path(normpath(abspath(path))) for path in paths]
        inside = [path for path in found if any(map(path.is_relative_to, allowed))]
        file = next((path for path in inside if path.is_file()), None)
    except (OSError, ValueError):  # the name is not a valid file name
        raise SceneError(f"there is no file {quoted(name)}") from None
    if file is not None:
        return file
    if found and not inside:
        known = listing(dict.fromkeys(map(str, allowed))) if allowed else "none"
        raise SceneError(
            f"{quoted(name)} is outside the folders from which meshes may be read: {known}"
        )
    hint = ""
    if name.startswith(PACKAGE_SCHEME):
        hint = "; searched the folders in AMENT_PREFIX_PATH and ROS_PACKAGE_PATH"
        hint += ", and next to the description" if folder is not None else ""
        hint += (
            "; source the workspace of the package, or add the folder that contains the package to "
            "ROS_PACKAGE_PATH"
        )
    raise SceneError(f"there is no file {quoted(name)}{hint}")


def read_mesh_file(path: str | os.PathLike[str]) -> Triangles:
    """Read the vertices and triangles of a mesh file.

    Vertices of a COLLADA file are converted to [m] by the unit in the file; other formats have no
    unit. The up axis in a COLLADA file is ignored, as RViz and MoveIt do.

    Raises:
        SceneError: If the file is not a complete mesh; the message names the file.
    """
    suffix = Path(path).suffix.lower()
    shown = quoted(os.fspath(path))
    if suffix not in MESH_READERS:
        raise SceneError(f"{shown} is not a mesh file; valid endings: {listing(MESH_READERS)}")
    try:
        content = read_file(path, MAX_MESH_BYTES)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise SceneError(f"cannot read the mesh {shown}: {reason}") from error
    try:
        return MESH_READERS[suffix](content)
    except SceneError as error:
        raise SceneError(f"cannot read the mesh {shown}: {error}") from error


def _checked(count: int) -> int:
    """Check that a number of triangles is at most `MAX_TRIANGLES`, and return it unchanged.

    Raises:
        SceneError: If there are too many triangles.
    """
    if count > MAX_TRIANGLES:
        raise SceneError(f"a mesh may have at most {MAX_TRIANGLES} triangles; got {count}")
    return count


# STL


def read_stl(content: bytes) -> Triangles:
    """Return the vertices and triangles in the content of a binary or text STL file.

    Raises:
        SceneError: If the size of the data does not match the header, or a facet lacks vertices.
    """
    count = int.from_bytes(content[STL_HEADER - 4 : STL_HEADER], "little")
    size = STL_HEADER + STL_TRIANGLE * count
    is_text = content[:80].lstrip()[:5].lower() == b"solid"
    if len(content) == size or (len(content) > size >= STL_HEADER and not is_text and count):
        rows = np.frombuffer(content, STL_LAYOUT, _checked(count), STL_HEADER)
        corners = rows["corners"].reshape(-1, 3).astype(np.float64)
    elif is_text:
        corners = _corners_of_text(content)
    elif len(content) < STL_HEADER:
        raise SceneError(f"{len(content)} bytes are neither a text nor a binary STL")
    else:
        have = (len(content) - STL_HEADER) // STL_TRIANGLE
        raise SceneError(f"the header announces {count} triangles, but the file has {have}")
    return corners, np.arange(len(corners)).reshape(-1, 3)


def _corners_of_text(content: bytes) -> Array:
    """Return the corners (3 m, 3) of the m triangles in a text STL file.

    Raises:
        SceneError: If vertices are missing or are not numbers.
    """
    facets = _checked(sum(1 for _ in STL_END.finditer(content)))
    words = STL_VERTEX.findall(content)
    if len(words) != 3 * facets:
        raise SceneError(f"{facets} facets need {3 * facets} vertices; got {len(words)}")
    try:
        return np.array(words, np.float64).reshape(-1, 3)
    except ValueError:
        raise SceneError("a vertex must be three numbers") from None


# OBJ


def read_obj(content: bytes) -> Triangles:
    """Return the vertices and triangles in the content of an OBJ file.

    A face with more than three corners is split into triangles with a common corner.

    Raises:
        SceneError: If a vertex or a face is not valid (the message gives the line), there is no
            face, or there are too many triangles.
    """
    vertices: list[tuple[float, float, float]] = []
    triangles: list[tuple[int, int, int]] = []
    text = content.decode("utf-8", "replace").replace("\\\r\n", " ").replace("\\\n", " ")
    for number, line in enumerate(text.split("\n"), start=1):
        try:
            if line.startswith(("v ", "v\t")):
                x, y, z = map(float, line.split()[1:4])
                vertices.append((x, y, z))
            elif line.startswith(("f ", "f\t")):
                corners = [_obj_index(word, len(vertices)) for word in line.split()[1:]]
                if len(corners) < 3:
                    raise ValueError("a face needs at least three corners")
                pairs = pairwise(corners[1:])
                triangles += [(corners[0], b, c) for b, c in pairs]
                _checked(len(triangles))
        except ValueError:  # noqa: PERF203
            raise SceneError(
                f"line {number}: {quoted(line.strip(), 60)} is neither a vertex (v X Y Z) nor a "
                "face (f and the numbers of at least three previous vertices)"
            ) from None
    if not vertices or not triangles:
        raise SceneError("the file has no faces")
    return np.array(vertices), np.array(triangles)


def _obj_index(word: str, count: int) -> int:
    """Return the index, counted from 0, of the vertex to which a word of an OBJ face refers.

    OBJ files count vertices from 1. A negative number counts backward from the last vertex before
    the face.

    Args:
        word: Word of a face, such as ``3`` or ``3/1/2``, which begins with the vertex number.
        count: Number of vertices before the face.

    Raises:
        ValueError: If there is no such vertex.
    """
    index = int(word.partition("/")[0])
    if index == 0 or index < -count:
        raise ValueError("there is no such vertex")
    return index - 1 if index > 0 else count + index


MESH_READERS: dict[str, Callable[[bytes], Triangles]] = {
    ".stl": read_stl,
    ".obj": read_obj,
    ".dae": read_collada,
}
