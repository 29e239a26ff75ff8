"""Trees of spheres fitted to shapes, with bounds from outside and inside; kept on disk.

A piece is the part of a solid in a box: the convex hull of the triangles clipped to the box, and of
those of its corners that are inside the solid, contains it. Pieces are cut in two until each has a
sphere whose outer radius, that of the piece about the centre, is hardly longer than the inner one,
the depth of the centre in the solid. Such spheres are large and deep: on a flat side a sphere of
radius R about a patch of half-width w stands out by w^2 / 2R only.
"""

import hashlib
import heapq
import io
import os
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.collision import check_rows
from dls_ik.core.jit import cache_folder
from dls_ik.core.scene_arrays import BOX, CYLINDER
from dls_ik.core.shape_distance import mesh_distances, primitive_distances, tightest_sphere
from dls_ik.core.types import Array, Indices
from dls_ik.scene.shapes import Box, Capsule, Cylinder, Mesh, Shape, Sphere
from dls_ik.scene.weak_memo import kept_with_owner

PACKAGE = Path(__file__).parents[1]
SOURCES = "core/shape_distance.py", "scene/shapes.py", "scene/spheres.py"  # that a fit depends on
GAP = 0.001  # [m] between outer and inner radius of a leaf that is not cut further
FINEST = 0.005  # of the size of the shape, the same
MOST_LEAVES = 1024
SURFACE = 4  # times as many leaves for a surface, whose spheres have no inside
NO_PROOF = -np.inf  # inner radius of a sphere whose centre is outside the solid
DEPTH = 60  # of a tree
CANDIDATES = 3000  # centres inside a shape
WORK = 400_000_000  # pairs of points and triangles for one shape, some seconds
ROUNDS, TRIES = 4, 16  # of the search for a better centre of a leaf
SIDES = 64  # of the prism about a cylinder
ROUNDING = 1e-9  # [m] by which radii are on the safe side, for a shape of a metre


class SphereTree(NamedTuple):
    """Spheres in the coordinates of a shape; see :mod:`dls_ik.core.scene_arrays`."""

    node: Array  # (N, 5) centre, outer and inner radius [m]; the first one is about the whole
    child: Indices  # (N,) first of two children, which follow each other; -1 for a leaf

    @property
    def gap(self) -> float:
        """Largest difference of the radii of a leaf [m]: the width of what spheres leave open."""
        leaf = self.node[self.child < 0]
        return float(np.max(leaf[:, 3] - np.maximum(leaf[:, 4], 0.0)))

    def placed(self, T: Array, scale: float = 1.0) -> "SphereTree":
        """Return the tree scaled, and then moved by T (4, 4)."""
        node = self.node * scale
        node[:, :3] = node[:, :3] @ T[:3, :3].T + T[:3, 3]
        return SphereTree(node, self.child)


@kept_with_owner
def sphere_tree(shape: Shape, keep: bool = True) -> SphereTree:
    """Return the tree of a shape from disk, else fit and keep it.

    Args:
        keep: False: in memory only.

    Raises:
        TypeError: a plane, which no spheres cover.
    """
    if isinstance(shape, (Sphere, Capsule)):
        return fit_spheres(shape)
    folder = kept_folder() if keep else None
    if folder is None:
        return fit_spheres(shape)
    path = os.path.join(folder, f"spheres.{shape_digest(shape)[:24]}")
    content = read_kept(path, SOURCES)
    if content is not None:
        return _tree_of(content)
    tree = fit_spheres(shape)
    write_kept(path, SOURCES, _content_of(tree))
    return tree


def fit_spheres(shape: Shape, gap: float = GAP, most: int = MOST_LEAVES) -> SphereTree:
    """Fit a tree of spheres to a shape.

    Args:
        gap: Pieces are cut until the radii of their spheres differ by less [m].
        most: Leaves at most.

    Raises:
        TypeError: a plane.
    """
    if isinstance(shape, Sphere):
        return SphereTree(np.array([[0.0, 0.0, 0.0, shape.radius, shape.radius]]), np.array([-1]))
    if isinstance(shape, Capsule):
        return _capsule_tree(shape, gap)
    solid = _solid(shape)
    return _Fit(solid, max(gap, FINEST * solid.extent), most).tree()


# Shapes as solids --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Solid:
    """A solid between two descriptions: it is inside the triangles, and has the distances."""

    corners: Array  # (m, 3, 3) of triangles around the solid
    # Signed, of points (b, 3) from the solid; with True of points that are known to be inside.
    distances: Callable[[Array, bool], Array]
    is_closed: bool  # else a surface

    @cached_property
    def extent(self) -> float:
        """Length of the diagonal of its box [m]."""
        points = self.corners.reshape(-1, 3)
        return float(np.linalg.norm(points.max(0) - points.min(0)))


def _solid(shape: Shape) -> _Solid:
    if isinstance(shape, Box):
        half = 0.5 * shape.size
        points = half * np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
        faces = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
        return _Solid(points[_fans(faces)], _primitive(BOX, half), True)
    if isinstance(shape, Cylinder):
        size = np.array([shape.radius, 0.5 * shape.length, 0.0])
        return _Solid(_prism(shape), _primitive(CYLINDER, size), True)
    if isinstance(shape, Mesh):
        corners = shape.vertices[shape.triangles]
        return _Solid(corners, _mesh_distances(corners, shape.is_watertight), shape.is_watertight)
    raise TypeError(f"no spheres cover a {type(shape).__name__}")


def _fans(faces: Sequence[tuple[int, ...]]) -> NDArray[np.int64]:
    """Cut convex faces into triangles, (m, 3)."""
    fans = [(face[0], *pair) for face in faces for pair in pairwise(face[1:])]
    return np.array(fans)


def _prism(shape: Cylinder) -> Array:
    """Return the triangles (m, 3, 3) of a prism about a cylinder."""
    angles = 2.0 * np.pi * np.arange(SIDES) / SIDES
    ring = shape.radius / np.cos(np.pi / SIDES) * np.stack([np.cos(angles), np.sin(angles)], 1)
    half = np.full((SIDES, 1), 0.5 * shape.length)
    points = np.concatenate([np.hstack([ring, -half]), np.hstack([ring, half])])
    i, k = range(SIDES), SIDES
    sides = [(a, (a + 1) % k, (a + 1) % k + k, a + k) for a in i]
    return np.asarray(points[_fans([tuple(reversed(i)), tuple(a + k for a in i), *sides])])


def _primitive(kind: int, size: Array) -> Callable[[Array, bool], Array]:
    def distances(points: Array, inside: bool) -> Array:
        out = np.empty(len(points))
        primitive_distances(kind, size, np.ascontiguousarray(points), out)
        return out

    return distances


def _mesh_distances(corners: Array, solid: bool) -> Callable[[Array, bool], Array]:
    def distances(points: Array, inside: bool) -> Array:
        out = np.empty(len(points))
        mesh_distances(corners, np.ascontiguousarray(points), solid and not inside, out)
        return -out if inside else out

    return distances


def _capsule_tree(shape: Capsule, gap: float) -> SphereTree:
    """Return spheres on the axis, so near each other that they stand out by half the gap."""
    radius, half = shape.radius, 0.5 * shape.length
    step = np.sqrt((radius + 0.5 * gap) ** 2 - radius**2)  # half the distance of two centres
    count = min(int(np.ceil(half / step)) + 1, MOST_LEAVES)
    step = half / (count - 1)
    node, child = np.zeros((2 * count - 1, 5)), np.full(2 * count - 1, -1)
    parts, filled = [(0, 0, count)], 1
    while parts:
        at, first, last = parts.pop()
        several = last - first > 1
        node[at, 2] = (first + last - 1) * step - half
        node[at, 3] = radius + (last - first) * step if several else np.hypot(radius, step)
        node[at, 4] = radius
        if several:
            middle = (first + last) // 2
            child[at] = filled
            parts += [(filled, first, middle), (filled + 1, middle, last)]
            filled += 2
    node[:, 3] += ROUNDING * (1.0 + half)
    node[:, 4] -= ROUNDING * (1.0 + half)
    return SphereTree(node, child)


# The fit ------------------------------------------------------------------------------------------


class _Piece(NamedTuple):
    """A solid in a box, and the sphere about it."""

    low: Array  # (3,) of the box
    high: Array  # (3,)
    corners: Array  # (m, 3, 3) triangles clipped to the box
    inside: NDArray[np.bool_]  # (2, 2, 2) which corners of the box are in the solid
    sphere: Array  # (5,)
    depth: int  # in the tree

    @property
    def points(self) -> Array:
        """Points (k, 3) whose convex hull contains the piece."""
        return _hull_points(self.low, self.high, self.corners, self.inside)


def _hull_points(low: Array, high: Array, corners: Array, inside: NDArray[np.bool_]) -> Array:
    chosen = np.argwhere(inside)
    return np.concatenate([corners.reshape(-1, 3), np.where(chosen == 0, low, high)])


class _Fit:
    """One fit of a solid."""

    def __init__(self, solid: _Solid, gap: float, most: int) -> None:
        self.solid, self.gap = solid, gap
        self.rng = np.random.default_rng(0)
        self.rounding = ROUNDING * (1.0 + solid.extent)
        points = solid.corners.reshape(-1, 3)
        self.low, self.high = points.min(0), points.max(0)
        budget = WORK // len(solid.corners)
        most *= 1 if solid.is_closed else SURFACE
        self.most = int(min(most, max(budget // 40, 32))) if solid.is_closed else most
        self.centres, self.depths = self._candidates(min(CANDIDATES, budget // 4))

    def tree(self) -> SphereTree:
        """Cut the piece with the widest gap, until all are narrow or there are enough."""
        margin = 0.01 * (self.high - self.low) + self.rounding
        low, high = self.low - margin, self.high + margin
        pieces = [self._piece(low, high, self.solid.corners, np.zeros((2, 2, 2), np.bool_), 0)]
        child, waiting, leaves = [-1], [(-np.inf, 0)], 1
        while waiting and leaves < self.most:
            _, at = heapq.heappop(waiting)
            parts = self._cut(pieces[at])
            if len(parts) < 2:
                continue
            child[at] = len(pieces)
            for part in parts:
                gap = _gap(part.sphere)
                if gap > self.gap and part.depth < DEPTH:
                    heapq.heappush(waiting, (-gap, len(pieces)))
                pieces.append(part)
                child.append(-1)
            leaves += 1
        spheres = [
            self._refined(piece) if first < 0 else piece.sphere
            for piece, first in zip(pieces, child, strict=True)
        ]
        node = np.array(spheres)
        node[0] = self._around(pieces[0])
        node[:, 3] += self.rounding
        node[:, 4] -= self.rounding
        return SphereTree(node, np.array(child))

    def _candidates(self, count: int) -> tuple[Array, Array]:
        """Return centres (c, 3) inside the solid, on a grid, and their depths (c,)."""
        if not self.solid.is_closed:
            return np.empty((0, 3)), np.empty(0)
        size = np.maximum(self.high - self.low, 1e-3 * self.solid.extent)
        step = (np.prod(size) / count) ** (1.0 / 3.0)
        axes = [
            low + (np.arange(n) + 0.5) / n * (high - low)
            for low, high, n in zip(
                self.low, self.high, np.maximum(np.ceil(size / step), 3).astype(int), strict=True
            )
        ]
        grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
        distances = self.solid.distances(grid, False)
        return grid[distances < 0.0], -distances[distances < 0.0]

    def _piece(
        self, low: Array, high: Array, corners: Array, inside: NDArray[np.bool_], depth: int
    ) -> _Piece:
        points = _hull_points(low, high, corners, inside)
        return _Piece(low, high, corners, inside, self._sphere(points), depth)

    def _sphere(self, points: Array) -> Array:
        """Choose the sphere (5,) about points with the least gap, among known centres."""
        middle = 0.5 * (points.min(0) + points.max(0))
        if not self.solid.is_closed:  # a point of the surface proves what it is in
            middle = points[np.argmin(np.linalg.norm(points - middle, axis=1))]
            return _first(middle, np.zeros(1), points)
        best = _first(middle, self._depths(middle[None]), points)
        tightest_sphere(self.centres, self.depths, points, best)
        return best

    def _depths(self, centres: Array) -> Array:
        """Return the depth (c,) of points (c, 3) in the solid [m], NO_PROOF outside."""
        if not self.solid.is_closed:
            return np.full(len(centres), NO_PROOF)
        distances = self.solid.distances(centres, False)
        return np.where(distances < 0.0, -distances, NO_PROOF)

    def _refined(self, piece: _Piece) -> Array:
        """Search near the centre of a leaf for one with a narrower gap."""
        best, points = piece.sphere.copy(), piece.points
        scale = 0.15 * max(best[3], 1e-6)
        for _ in range(ROUNDS):
            steps = scale * self.rng.normal(size=(TRIES, 3))
            if best[4] > 0.0:  # points nearer than the depth are inside
                steps *= min(1.0, 0.5 * best[4] / scale)
                steps = steps[np.linalg.norm(steps, axis=1) < best[4]]
                depths = -self.solid.distances(best[:3] + steps, True)
            else:
                depths = self._depths(best[:3] + steps)
            tightest_sphere(best[:3] + steps, depths, points, best)
            scale *= 0.5
        return best

    def _around(self, piece: _Piece) -> Array:
        """Return a small sphere about a piece (Badoiu & Clarkson 2003), with its depth."""
        points = piece.points
        centre = 0.5 * (points.min(0) + points.max(0))
        best = np.array([*centre, np.inf])
        for i in range(1, 200):
            distances = np.linalg.norm(points - centre, axis=1)
            farthest = int(np.argmax(distances))
            if distances[farthest] < best[3]:
                best = np.array([*centre, distances[farthest]])
            centre = centre + (points[farthest] - centre) / (i + 1)
        return np.append(best, self._depths(best[None, :3]))

    def _cut(self, piece: _Piece) -> list[_Piece]:
        """Cut a piece across its longest side; parts without a point of the solid are dropped."""
        points = piece.points
        low, high = points.min(0), points.max(0)
        axis = int(np.argmax(high - low))
        value = 0.5 * (low[axis] + high[axis])
        below, above = clip_triangles(piece.corners, axis, value)
        # Corners of the two boxes: four old ones each, and four new ones between.
        ends = np.array([piece.low, piece.high])
        new = ends.copy()
        new[:, axis] = value
        grid = np.array([[[(new[i, 0], new[j, 1], new[k, 2]) for k in (0, 1)] for j in (0, 1)]
                         for i in (0, 1)])  # fmt: skip
        between = np.take(grid, 0, axis).reshape(4, 3)
        if self.solid.is_closed:
            new_inside = (self.solid.distances(between, False) < 0.0).reshape(2, 2)
        else:
            new_inside = np.zeros((2, 2), np.bool_)
        parts = []
        for side, corners in enumerate((below, above)):
            inside = np.moveaxis(piece.inside, axis, 0).copy()
            inside[1 - side] = new_inside
            inside = np.moveaxis(inside, 0, axis)
            if len(corners) or inside.any():
                box = ends.copy()
                box[1 - side, axis] = value
                parts.append(self._piece(box[0], box[1], corners, inside, piece.depth + 1))
        return parts


def _gap(sphere: Array) -> float:
    return float(sphere[3] - max(sphere[4], 0.0))


def _first(centre: Array, depth: Array, points: Array) -> Array:
    """Return the sphere (5,) about points with a given centre (3,)."""
    radius = np.sqrt(np.max(np.sum((points - centre) ** 2, axis=1)))
    return np.array([*centre, radius, *depth])


def clip_triangles(corners: Array, axis: int, value: float) -> tuple[Array, Array]:
    """Cut triangles (m, 3, 3) by a plane across an axis: those below, those above.

    Triangles in the plane are on both sides; the turn of triangles is not kept.
    """
    side = corners[:, :, axis] - value
    is_below, is_above = (side <= 0.0).all(1), (side >= 0.0).all(1)
    crossing = ~(is_below | is_above)
    order = np.argsort(side[crossing], axis=1)
    rows = np.arange(len(order))[:, None]
    (a, b, c), s = np.moveaxis(corners[crossing][rows, order], 1, 0), side[crossing][rows, order]
    long = _between(a, c, s[:, 0], s[:, 2])
    low, high = s[:, 1] <= 0.0, s[:, 1] > 0.0
    short = np.empty_like(long)
    short[low] = _between(b[low], c[low], s[low, 1], s[low, 2])
    short[high] = _between(a[high], b[high], s[high, 0], s[high, 1])
    below = [(a, short, long), (a[low], b[low], short[low])]
    above = [(c, short, long), (c[high], b[high], short[high])]
    parts = ([corners[is_below]], [corners[is_above]])
    for part, cut in zip(parts, (below, above), strict=True):
        part.extend(np.stack(each, axis=1) for each in cut)
    return np.concatenate(parts[0]), np.concatenate(parts[1])


def _between(a: Array, b: Array, below: Array, above: Array) -> Array:
    """Return the points (k, 3) between a and b at value 0 of a number that is linear."""
    share = below / (below - above)
    return np.asarray(a + share[:, None] * (b - a))


# Files --------------------------------------------------------------------------------------------


def kept_folder() -> str | None:
    """Return the folder of compiled kernels, which other results are kept beside."""
    return cache_folder(check_rows)


def shape_digest(shape: Shape) -> str:
    """Return a digest of all numbers of a shape."""
    digest = hashlib.sha256(type(shape).__name__.encode())
    for value in (getattr(shape, each.name) for each in fields(shape)):
        digest.update(np.ascontiguousarray(value).tobytes())
    return digest.hexdigest()


def read_kept(path: str, sources: tuple[str, ...]) -> bytes | None:
    """Read what :func:`write_kept` wrote.

    Args:
        sources: Files of this package that the content depends on.

    Returns:
        None without a file, for one that is damaged, and for one of other sources.
    """
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError:
        return None
    return content[32:] if _stamp(sources, content[32:]) == content[:32] else None


def write_kept(path: str, sources: tuple[str, ...], content: bytes) -> None:
    """Write a file, whole or not at all; without a word where that is not possible."""
    part = f"{path}.{secrets.token_hex(8)}.part"
    try:
        with open(part, "wb") as file:
            file.write(_stamp(sources, content) + content)
        os.replace(part, path)
    except OSError:
        with suppress(OSError):
            os.unlink(part)


def _stamp(sources: tuple[str, ...], content: bytes) -> bytes:
    return hashlib.sha256(_digest(sources) + content).digest()


@cache
def _digest(sources: tuple[str, ...]) -> bytes:
    digest = hashlib.sha256()
    for name in sources:
        digest.update((PACKAGE / name).read_bytes())
    return digest.digest()


def _tree_of(content: bytes) -> SphereTree:
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return SphereTree(arrays["node"], arrays["child"])


def _content_of(tree: SphereTree) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, node=tree.node, child=tree.child)
    return buffer.getvalue()
