# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Random meshes that are hard to fit, by kind of shape."""

from collections.abc import Callable

import numpy as np

from dls_ik.core.types import Array
from dls_ik.scene.shapes import Mesh

Rng = np.random.Generator

TETRAHEDRON = np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]])
UNIT_CORNERS = np.vstack([np.zeros(3), np.eye(3)])


def slivers(rng: Rng, count: int, width: float = 1e-3) -> Mesh:
    """Long thin triangles in all directions, which cross each other."""
    start = rng.normal(size=(count, 3))
    along, across = rng.normal(size=(2, count, 3))
    corners = np.stack([start, start + along, start + width * across], axis=1)
    return Mesh(corners.reshape(-1, 3), np.arange(3 * count).reshape(-1, 3))


def bundle(rng: Rng, count: int, width: float = 1e-3) -> Mesh:
    """Long thin triangles side by side, so that a box about a part of one has a part of each."""
    start = width * rng.normal(size=(count, 3))
    along = np.array([1.0, 0.9, 0.8]) + width * rng.normal(size=(count, 3))
    across = width * rng.normal(size=(count, 3))
    corners = np.stack([start, start + along, start + across], axis=1)
    return Mesh(corners.reshape(-1, 3), np.arange(3 * count).reshape(-1, 3))


def fan(rng: Rng, count: int, height: float = 0.0) -> Mesh:
    """Triangles that share one corner: a polygon of many corners, as OBJ files have them."""
    angles = np.linspace(0.0, 1.9 * np.pi, count + 2)
    ring = np.stack([np.cos(angles), np.sin(angles), height * rng.normal(size=count + 2)], 1)
    i = np.arange(1, count + 1)
    return Mesh(ring, np.stack([0 * i, i, i + 1], axis=1))


def shells(rng: Rng, count: int, size: float = 0.05, spread: float = 1.0) -> Mesh:
    """Separate closed tetrahedra, which overlap if they are large for their spread."""
    corners = size * UNIT_CORNERS + spread * rng.normal(size=(max(count // 4, 1), 1, 3))
    first = 4 * np.arange(len(corners))[:, None, None]
    return Mesh(corners.reshape(-1, 3), (TETRAHEDRON + first).reshape(-1, 3))


def spikes(rng: Rng, count: int, width: float = 1e-3) -> Mesh:
    """Closed tetrahedra, long and thin, through a common centre."""
    corners = rng.normal(size=(max(count // 4, 1), 4, 3))
    corners[:, 1:] = -corners[:, :1] + width * rng.normal(size=(len(corners), 3, 3))
    first = 4 * np.arange(len(corners))[:, None, None]
    return Mesh(corners.reshape(-1, 3), (TETRAHEDRON + first).reshape(-1, 3))


def nested(rng: Rng, count: int) -> Mesh:
    """Closed tetrahedra inside each other."""
    sizes = np.linspace(0.1, 1.0, max(count // 4, 1))[:, None, None]
    corners = sizes * (UNIT_CORNERS - 0.25) + 1e-4 * rng.normal(size=(len(sizes), 1, 3))
    first = 4 * np.arange(len(sizes))[:, None, None]
    return Mesh(corners.reshape(-1, 3), (TETRAHEDRON + first).reshape(-1, 3))


def soup(rng: Rng, count: int) -> Mesh:
    """Triangles of any size and direction, which cross each other."""
    corners = rng.normal(size=(count, 3, 3)) * 10.0 ** rng.uniform(-3.0, 0.0, (count, 1, 1))
    return Mesh(corners.reshape(-1, 3), np.arange(3 * count).reshape(-1, 3))


KINDS: dict[str, Callable[[Rng, int], Mesh]] = {
    each.__name__: each for each in (slivers, bundle, fan, shells, spikes, nested, soup)
}


def points_on(mesh: Mesh, rng: Rng, count: int = 2000) -> Array:
    """Corners of a mesh, and points (k, 3) on its triangles, at their edges too."""
    rows = rng.integers(len(mesh.triangles), size=count)
    weights = rng.dirichlet([0.3] * 3, count)
    on = np.einsum("ij,ijk->ik", weights, mesh.vertices[mesh.triangles[rows]])
    return np.asarray(np.vstack([on, mesh.vertices[:count]]))
