"""Mesh files, which need not be trusted: STL, OBJ and COLLADA to vertices and triangles.

Whatever a file has and is not understood is an error: a surface that is left out would count as
free.
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
STL_HEADER, STL_TRIANGLE = 84, 50  # bytes
STL_LAYOUT = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
STL_VERTEX = re.compile(rb"\bvertex\s+(\S+)\s+(\S+)\s+(\S+)", re.IGNORECASE)
STL_END = re.compile(rb"\bendfacet\b", re.IGNORECASE)

Triangles = tuple[Array, NDArray[np.int64]]  # (k, 3) vertices [m], (m, 3) indices of them


# Files


def find_mesh(name: str, folder: Path | None, allow: Iterable[str | os.PathLike[str]] = ()) -> Path:
    """Find the file that a description names: ``package://NAME/PATH``, ``file://PATH``, a path.

    Files are read in ROS packages (AMENT_PREFIX_PATH, ROS_PACKAGE_PATH); and of a description with
    a folder in that folder, the one above it, and the packages beside them and above.

    Args:
        folder: Where the description is, to which paths are relative; None: unknown.
        allow: Further folders in which files are looked for and may be read.

    Raises:
        SceneError: If the file is not found, or is in none of these folders.
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
    except (OSError, ValueError):  # not a possible name of a file
        raise SceneError(f"there is no file {quoted(name)}") from None
    if file is not None:
        return file
    if found and not inside:
        known = f"in {listing(dict.fromkeys(map(str, allowed)))}" if allowed else "in no folder"
        raise SceneError(f"{quoted(name)} is not where meshes may be read: {known}")
    hint = ""
    if name.startswith(PACKAGE_SCHEME):
        hint = "; packages are looked for in AMENT_PREFIX_PATH and ROS_PACKAGE_PATH"
        hint += ", and beside the description" if folder is not None else ""
    raise SceneError(f"there is no file {quoted(name)}{hint}")


def read_mesh_file(path: str | os.PathLike[str]) -> Triangles:
    """Read a mesh; COLLADA in [m] by its unit, the others as they are.

    The up axis of COLLADA is ignored, as RViz and MoveIt do.

    Raises:
        SceneError: If the file is not a complete mesh; the message names the file.
    """
    suffix = Path(path).suffix.lower()
    shown = quoted(os.fspath(path))
    if suffix not in READERS:
        raise SceneError(f"{shown} is not a mesh: files end in {listing(READERS)}")
    try:
        content = read_file(path, MAX_MESH_BYTES)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise SceneError(f"cannot read the mesh {shown}: {reason}") from error
    try:
        return READERS[suffix](content)
    except SceneError as error:
        raise SceneError(f"cannot read the mesh {shown}: {error}") from error


def _checked(count: int) -> int:
    if count > MAX_TRIANGLES:
        raise SceneError(f"{count} triangles, at most {MAX_TRIANGLES} are read")
    return count


# STL


def read_stl(content: bytes) -> Triangles:
    """Read an STL, binary or text.

    Raises:
        SceneError: If the size of the data does not match its header, or facets lack vertices.
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
        raise SceneError(f"it has {len(content)} bytes, and is neither a text nor a binary STL")
    else:
        have = (len(content) - STL_HEADER) // STL_TRIANGLE
        raise SceneError(f"its header says {count} triangles, it has {have}")
    return corners, np.arange(len(corners)).reshape(-1, 3)


def _corners_of_text(content: bytes) -> Array:
    facets = _checked(sum(1 for _ in STL_END.finditer(content)))
    words = STL_VERTEX.findall(content)
    if len(words) != 3 * facets:
        raise SceneError(f"{facets} facets with {len(words)} vertices")
    try:
        return np.array(words, np.float64).reshape(-1, 3)
    except ValueError:
        raise SceneError("a vertex is not three numbers") from None


# OBJ


def read_obj(content: bytes) -> Triangles:
    """Read vertices and faces of an OBJ; polygons become fans.

    Raises:
        SceneError: If a vertex or a face is not valid; the message gives the line.
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
                    raise ValueError("a face has at least three corners")
                pairs = pairwise(corners[1:])
                triangles += [(corners[0], b, c) for b, c in pairs]
                _checked(len(triangles))
        except ValueError:  # noqa: PERF203
            raise SceneError(f"line {number}: {quoted(line.strip(), 60)}") from None
    if not vertices or not triangles:
        raise SceneError("it has no faces")
    return np.array(vertices), np.array(triangles)


def _obj_index(word: str, count: int) -> int:
    """Return an index from 0; negative ones count back from the last vertex so far."""
    index = int(word.partition("/")[0])
    if index == 0 or index < -count:
        raise ValueError("no such vertex")
    return index - 1 if index > 0 else count + index


READERS: dict[str, Callable[[bytes], Triangles]] = {
    ".stl": read_stl,
    ".obj": read_obj,
    ".dae": read_collada,
}
