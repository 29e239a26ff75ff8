# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Cache of the sphere trees of shapes, in memory as long as the shape exists, and on disk."""

import hashlib
import io
import os
import secrets
from contextlib import suppress
from dataclasses import fields
from functools import cache

import numpy as np

from dls_ik.core.collision import check_rows
from dls_ik.core.jit import cache_folder
from dls_ik.model.files import PACKAGE_FOLDER
from dls_ik.scene.shapes import Shape
from dls_ik.scene.sphere_fit import DIRECT_TREES, MAX_LEAVES, SphereTree, fit_spheres
from dls_ik.scene.weak_memo import kept_with_owner

# Source files that determine a sphere tree; a change of a file invalidates the disk cache.
FIT_SOURCES = (
    "core/hulls.py",
    "core/shape_distance.py",
    "scene/shape_table.py",
    "scene/shapes.py",
    "scene/sphere_fit.py",
    "scene/spheres.py",
)


@kept_with_owner
def sphere_tree(shape: Shape, /, keep: bool = True, max_leaves: int = MAX_LEAVES) -> SphereTree:
    """Return the sphere tree of a shape from the cache, or fit a new tree and cache it.

    Args:
        shape: Shape.
        keep: Whether to use the disk cache in addition to the cache in memory.
        max_leaves: Maximum number of leaves of a new tree; see
            :func:`dls_ik.scene.sphere_fit.fit_spheres`.

    Raises:
        TypeError: If the shape is a plane, which spheres cannot cover.
    """
    if type(shape) in DIRECT_TREES:
        return fit_spheres(shape, max_leaves=max_leaves)
    folder = kept_folder() if keep else None
    if folder is None:
        return fit_spheres(shape, max_leaves=max_leaves)
    suffix = "" if max_leaves == MAX_LEAVES else f".{max_leaves}"
    path = os.path.join(folder, f"spheres.{shape_digest(shape)[:24]}{suffix}")
    content = read_kept(path, FIT_SOURCES)
    if content is not None:
        return _tree_of(content)
    tree = fit_spheres(shape, max_leaves=max_leaves)
    write_kept(path, FIT_SOURCES, _content_of(tree))
    return tree


# Disk cache ---------------------------------------------------------------------------------------


def kept_folder() -> str | None:
    """Return the folder of the disk cache, which is also the cache folder of compiled kernels.

    The result is None if kernels are not cached on disk.
    """
    return cache_folder(check_rows)


def shape_digest(shape: Shape) -> str:
    """Return a hexadecimal digest of the type of a shape and of all numbers that define it."""
    digest = hashlib.sha256(type(shape).__name__.encode())
    for value in (getattr(shape, each.name) for each in fields(shape)):
        digest.update(np.ascontiguousarray(value).tobytes())
    return digest.hexdigest()


def read_kept(path: str, sources: tuple[str, ...]) -> bytes | None:
    """Return the content of a cache file written by :func:`write_kept`.

    Args:
        path: Path of the file.
        sources: Source files of this package whose code computes the content.

    Returns:
        The content; None if the file is missing or damaged, or if a source file has changed since
        the file was written.
    """
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError:
        return None
    return content[32:] if _stamp(sources, content[32:]) == content[:32] else None


def write_kept(path: str, sources: tuple[str, ...], content: bytes) -> None:
    """Write a cache file for :func:`read_kept`.

    The file is written atomically. Errors are ignored, because the content can be computed again.

    Args:
        path: Path of the file.
        sources: Source files of this package whose code computes the content.
        content: Content.
    """
    part = f"{path}.{secrets.token_hex(8)}.part"
    try:
        with open(part, "wb") as file:
            file.write(_stamp(sources, content) + content)
        os.replace(part, path)
    except OSError:
        with suppress(OSError):
            os.unlink(part)


def _stamp(sources: tuple[str, ...], content: bytes) -> bytes:
    """Return the digest (32 bytes) of a content and of the source files that compute it."""
    return hashlib.sha256(_digest(sources) + content).digest()


@cache
def _digest(sources: tuple[str, ...]) -> bytes:
    """Return the digest (32 bytes) of the text of source files of this package."""
    digest = hashlib.sha256()
    for name in sources:
        digest.update((PACKAGE_FOLDER / name).read_bytes())
    return digest.digest()


def _tree_of(content: bytes) -> SphereTree:
    """Return the sphere tree that is stored in the content of a cache file."""
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return SphereTree(*(arrays[name] for name in SphereTree._fields))


def _content_of(tree: SphereTree) -> bytes:
    """Return the content of a cache file that stores a sphere tree."""
    buffer = io.BytesIO()
    np.savez(buffer, **tree._asdict())
    return buffer.getvalue()
