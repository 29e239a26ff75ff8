# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Cache of the sphere trees of shapes, in memory as long as the shape exists, and on disk."""

import hashlib
import io
import os
from collections.abc import Sequence
from dataclasses import fields
from typing import NamedTuple

import numpy as np

from dls_ik.core.collision import check_rows
from dls_ik.core.jit import cache_folder
from dls_ik.model.kept_files import read_kept, write_kept
from dls_ik.scene.shapes import Mesh, Shape
from dls_ik.scene.sphere_fit import (
    DIRECT_TREES,
    GAP,
    MAX_FIT_WORK,
    MAX_LEAVES,
    SphereFit,
    SphereTree,
    WorkBudget,
    fit_within,
)
from dls_ik.scene.weak_memo import kept_with_owner

READ_WORK = 100_000  # work of a lookup on disk, in the units of `WorkBudget`
# Source files that determine a sphere tree; a change of a file invalidates the disk cache.
FIT_SOURCES = (
    "core/hulls.py",
    "core/shape_distance.py",
    "scene/shape_table.py",
    "scene/shapes.py",
    "scene/sphere_fit.py",
    "scene/spheres.py",
)


class WantedTree(NamedTuple):
    """A shape of an object, and the arguments of :func:`sphere_tree` for it."""

    name: str  # name of the object
    shape: Shape
    keep: bool
    max_leaves: int


def fit_trees(wanted: Sequence[WantedTree], budget: WorkBudget) -> None:
    """Fit the sphere trees that are not in memory yet within a budget of work.

    Smaller meshes are fitted first. Each shape gets an equal share of the remaining work, so that
    larger meshes get the work that smaller meshes do not need.

    Args:
        wanted: Shapes.
        budget: Budget; names of objects that get coarser spheres are added to `budget.coarse`.
    """
    missing = {
        (id(each.shape), each.max_leaves): each
        for each in wanted
        if each.max_leaves not in _known_trees(each.shape)
    }
    for i, each in enumerate(sorted(missing.values(), key=lambda each: _num_triangles(each.shape))):
        share = budget.share(len(missing) - i)
        known = _known_trees(each.shape)
        if share < READ_WORK and known:  # a tree for another number of leaves
            known[each.max_leaves] = known[max(known)]
            continue
        tree, work, is_coarse = _read_or_fit(each.shape, each.keep, each.max_leaves, share)
        known[each.max_leaves] = tree
        budget.left -= work
        if is_coarse and each.name not in budget.coarse[-1:]:
            budget.coarse.append(each.name)


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
    known = _known_trees(shape)
    if max_leaves not in known:
        known[max_leaves] = _read_or_fit(shape, keep, max_leaves, MAX_FIT_WORK).tree
    return known[max_leaves]


@kept_with_owner
def _known_trees(shape: Shape, /) -> dict[int, SphereTree]:
    """Return the sphere trees of a shape by `max_leaves`; callers add new trees."""
    return {}


def _num_triangles(shape: Shape) -> int:
    """Return the number of triangles of a mesh, and 0 for other shapes."""
    return len(shape.triangles) if isinstance(shape, Mesh) else 0


def _read_or_fit(shape: Shape, keep: bool, max_leaves: int, max_work: int) -> SphereFit:
    """Return the sphere tree of a shape from disk, or fit a tree with limited work.

    A tree that became coarser because of the limit is not written to disk.
    """
    is_simple = type(shape) in DIRECT_TREES
    folder = None if is_simple or not keep or max_work < READ_WORK else kept_folder()
    if folder is None:
        return fit_within(shape, GAP, max_leaves, max_work)
    suffix = "" if max_leaves == MAX_LEAVES else f".{max_leaves}"
    path = os.path.join(folder, f"spheres.{shape_digest(shape)[:24]}{suffix}")
    content = read_kept(path, FIT_SOURCES)
    if content is not None:
        return SphereFit(_tree_of(content), READ_WORK, False)
    fit = fit_within(shape, GAP, max_leaves, max_work)
    if not fit.is_coarse:
        write_kept(path, FIT_SOURCES, _content_of(fit.tree))
    return fit._replace(work=fit.work + READ_WORK)


# Files --------------------------------------------------------------------------------------------


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


def _tree_of(content: bytes) -> SphereTree:
    """Return the sphere tree that is stored in the content of a cache file."""
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return SphereTree(*(arrays[name] for name in SphereTree._fields))


def _content_of(tree: SphereTree) -> bytes:
    """Return the content of a cache file that stores a sphere tree."""
    buffer = io.BytesIO()
    np.savez(buffer, **tree._asdict())
    return buffer.getvalue()
