# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Trees of spheres fitted to shapes, in bounded time and memory.

Solids are divided by boxes; a piece is the intersection of a solid and a box. It is contained in
the convex hull of the solid's triangles clipped to the box and of those corners of the box that are
inside the solid. A sphere with two radii is fitted to each piece: the sphere with the outer radius
contains the piece, and the sphere with the inner radius (the distance of the centre from the
surface) is inside the solid. The gap of a piece is the difference of the radii. Pieces are split
into two until the gap of each piece is small. The spheres of such pieces are large, and their
centres are deep in the solid: if a sphere of radius R covers a patch of half-width w of a flat
side, it protrudes only by w^2 / 2R.

Splitting stops when the work or the number of clipped triangles reaches a limit. In this case the
outer spheres still contain the shape, but protrude farther. Shapes that are fitted together share a
:class:`WorkBudget`; a shape whose share of the work is too small for a fit gets its bounding box.
"""

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.hulls import choose_corners
from dls_ik.core.shape_distance import (
    MAX_CLIPPED,
    clip_to_box,
    mesh_distances,
    primitive_distances,
    tightest_sphere,
)
from dls_ik.core.types import Array, Indices
from dls_ik.lazy_property import cached_property
from dls_ik.scene.shape_table import kind_of
from dls_ik.scene.shapes import Capsule, Mesh, Shape, Sphere

GAP = 0.001  # [m] default maximum gap (outer minus inner radius) of a piece that is not split
RELATIVE_GAP = 0.005  # minimum of this maximum gap, relative to the size of the shape
MAX_LEAVES = 1024  # default maximum number of leaves of a tree
SURFACE_LEAVES = 4  # factor of the maximum number of leaves for surfaces, which have no inside
MANY_MESHES = 16  # number of shapes in a scene above which each shape gets fewer leaves
NO_PROOF = -np.inf  # inner radius of a sphere whose centre is outside the solid
MAX_TREE_DEPTH = 60  # maximum depth of a tree
MAX_CANDIDATES = 3000  # maximum number of candidate centres inside a shape
# Work is counted in units of the distance between a point and a triangle, approximately 10 ns.
MAX_FIT_WORK = 300_000_000  # approximate maximum work for a tree
ANGLE_WORK, CLIP_WORK = 3, 30  # work of a signed distance to a triangle, and of clipping a triangle
HULL_WORK = 40  # work for each combination of a point and a corner of a hull
STEP_WORK = 10_000  # work for splitting a piece or refining a leaf, in addition to that for points
SHARED_WORK = 2 * MAX_FIT_WORK  # maximum work for all shapes that are fitted together
MIN_WORK = 300  # work of the shortest fit, for each triangle and each vertex
MAX_CLIPPED_TRIANGLES = 1_000_000  # maximum number of clipped triangles of all pieces together
MAX_HULL_POINTS = 512  # maximum number of points of a leaf that gets a hull
MAX_HULL_BALLS = 16  # maximum number of balls (corners) of the hull of a piece
HULL_TOLERANCE = 0.02  # error of a hull, relative to the gap (leaf) or outer radius (inner node)
# Number of rounds of the search for a better centre of a leaf, and number of centres in a round
REFINE_ROUNDS, REFINE_CENTRES = 4, 16
RADIUS_ROUNDING = 1e-9  # [m] allowance for rounding errors of radii, for a shape with a size of 1 m


class SphereTree(NamedTuple):
    """Binary tree of N spheres in the frame of a shape; see :mod:`dls_ik.core.scene_arrays`.

    Each node is a sphere with an outer radius, which contains a piece of the shape, and an inner
    radius, within which all points are in the shape. The first node contains the whole shape. A
    node may also have a hull: M balls whose convex hull contains the piece more tightly.
    """

    node: Array  # (N, 5) centre x, y, z, outer radius and inner radius [m]
    child: Indices  # (N,) index of the first of two successive children; -1 for a leaf
    hull: Indices  # (N, 2) index of the first ball of a node's hull, and number of its balls
    ball: Array  # (M, 4) centre x, y, z and radius of the balls of all hulls [m]

    @property
    def gap(self) -> float:
        """Largest difference [m] of outer and inner radius of a leaf.

        The difference is the width of the region around the surface in which the spheres prove
        neither a contact nor its absence.
        """
        leaf = self.node[self.child < 0]
        return float(np.max(leaf[:, 3] - np.maximum(leaf[:, 4], 0.0)))

    def placed(self, T: Array, scale: float = 1.0) -> "SphereTree":
        """Return the tree scaled about the origin by `scale`, and then transformed by T (4, 4)."""
        node, ball = self.node * scale, self.ball * scale
        for each in (node, ball):
            x, y, z = each[:, :3].T.copy()  # one axis at a time; small matrix products take longer
            for axis, (a, b, c, d) in enumerate(T[:3]):
                each[:, axis] = a * x + b * y + c * z + d
        return self._replace(node=node, ball=ball)


def without_hulls(node: Array, child: Indices) -> SphereTree:
    """Return a sphere tree whose nodes have no hulls.

    Args:
        node: (N, 5) nodes; see :class:`SphereTree`.
        child: (N,) children; see :class:`SphereTree`.
    """
    return SphereTree(node, child, np.zeros((len(child), 2), np.int64), np.empty((0, 4)))


class WorkBudget:
    """Work that the fits of several shapes share, in units of a point-triangle distance.

    Attributes:
        left: Remaining work; negative after a fit that exceeded its share.
        coarse: Names of the objects that got coarser spheres because of the budget.
    """

    def __init__(self, work: int | None = None) -> None:
        self.left = SHARED_WORK if work is None else work
        self.coarse: list[str] = []

    def share(self, count: int) -> int:
        """Return the share of each of `count` shapes in the remaining work."""
        return max(min(self.left // count, MAX_FIT_WORK), 0)


class SphereFit(NamedTuple):
    """Result of a fit."""

    tree: SphereTree
    work: int  # work done, in units of a point-triangle pair
    is_coarse: bool  # whether a limit below MAX_WORK made the spheres larger


def fit_spheres(shape: Shape, gap: float = GAP, max_leaves: int = MAX_LEAVES) -> SphereTree:
    """Fit a tree of spheres to a shape.

    Args:
        shape: Shape.
        gap: Maximum difference of outer and inner radius of a piece that is not split [m].
        max_leaves: Maximum number of leaves for a solid. A surface, which has no inside, may get
            four times as many leaves.

    Raises:
        TypeError: If the shape is a plane.
    """
    return fit_within(shape, gap, max_leaves, MAX_FIT_WORK).tree


def fit_within(shape: Shape, gap: float, max_leaves: int, max_work: int) -> SphereFit:
    """Fit a tree of spheres to a shape with limited work.

    Args:
        shape: Shape.
        gap: As for :func:`fit_spheres` [m].
        max_leaves: As for :func:`fit_spheres`.
        max_work: Limit of the work, in units of a point-triangle pair. The last step may exceed the
            limit.

    Raises:
        TypeError: If the shape is a plane.
    """
    direct = DIRECT_TREES.get(type(shape))
    if direct is not None:
        return SphereFit(direct(shape, gap, max_leaves), 0, False)
    solid = _solid(shape)
    is_limited, num_points = max_work < MAX_FIT_WORK, len(solid.points)
    if is_limited and max_work < STEP_WORK + MIN_WORK * (len(solid.corners) + num_points):
        return SphereFit(_box_tree(solid), STEP_WORK + num_points, True)
    fit = _Fit(solid, max(gap, RELATIVE_GAP * solid.extent), max_leaves, max_work)
    return SphereFit(fit.tree(), fit.work, is_limited and fit.was_cut)


def leaves_each(count: int) -> int:
    """Return the maximum number of leaves of each sphere tree in a scene of `count` shapes.

    The maximum is halved each time `count` doubles, beyond a certain count. This bounds the number
    of leaves of all shapes together. The maximum changes rarely when shapes are added; a change
    requires new fits of all shapes.
    """
    doubled = (max(count, MANY_MESHES) - 1) // MANY_MESHES
    return max(MAX_LEAVES >> doubled.bit_length(), 1)


# Shapes as solids --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Solid:
    """A solid, described by triangles that enclose it and by a signed distance function.

    An open mesh, which is a surface without inside, is described in the same form.
    """

    corners: Array  # (m, 3, 3) corners of the triangles that enclose the solid [m]
    points: Array  # (k, 3) all corners, some of which may be repeated [m]
    # Function of points (b, 3) and a flag that returns signed distances (b,) [m], negative inside.
    # The flag is True if all points are known to be inside.
    distances: Callable[[Array, bool], Array]
    is_closed: bool  # False for a surface, which has no inside

    @cached_property
    def extent(self) -> float:
        """Length of the diagonal of the bounding box [m]."""
        return float(np.linalg.norm(self.points.max(0) - self.points.min(0)))


def _solid(shape: Shape) -> _Solid:
    """Return the description of a shape as a solid, by the triangles of its kind.

    Raises:
        TypeError: If no triangles enclose the kind of shape, such as a plane.
    """
    if isinstance(shape, Mesh):
        corners = shape.vertices[shape.triangles]
        is_closed = shape.is_watertight
        return _Solid(corners, shape.vertices, _mesh_distances(corners, is_closed), is_closed)
    kind = kind_of(shape)
    if kind.enclosing is None:
        raise TypeError(f"a {type(shape).__name__} cannot be covered by spheres")
    corners, (number, size, _) = kind.enclosing(shape), kind.kernel(shape)
    return _Solid(corners, corners.reshape(-1, 3), _primitive(number, size), True)


def _primitive(kind: int, size: Array) -> Callable[[Array, bool], Array]:
    """Return the function `distances` of :class:`_Solid` for a box or cylinder.

    Args:
        kind: Kind of the kernels, such as `KIND_BOX`.
        size: (3,) sizes of this kind [m].
    """

    def distances(points: Array, inside: bool) -> Array:
        out = np.empty(len(points))
        primitive_distances(kind, size, np.ascontiguousarray(points), out)
        return out

    return distances


def _mesh_distances(corners: Array, solid: bool) -> Callable[[Array, bool], Array]:
    """Return the function `distances` of :class:`_Solid` for a mesh.

    Args:
        corners: (m, 3, 3) corners of the triangles [m].
        solid: Whether the mesh is watertight; if not, all distances are positive.
    """

    def distances(points: Array, inside: bool) -> Array:
        out = np.empty(len(points))
        mesh_distances(corners, np.ascontiguousarray(points), solid and not inside, out)
        return -out if inside else out

    return distances


def _ball_tree(shape: Sphere, gap: float, max_leaves: int) -> SphereTree:
    """Return the tree of a sphere: the sphere itself."""
    return without_hulls(np.array([[0.0, 0.0, 0.0, shape.radius, shape.radius]]), np.array([-1]))


def _capsule_tree(shape: Capsule, gap: float, max_leaves: int) -> SphereTree:
    """Return a tree of spheres whose centres are on the axis of a capsule.

    Args:
        shape: Capsule.
        gap: Twice the maximum distance by which the leaves protrude from the capsule [m].
        max_leaves: Maximum number of leaves; if it is too small, the leaves protrude farther.
    """
    radius, half = shape.radius, 0.5 * shape.length
    step = np.sqrt((radius + 0.5 * gap) ** 2 - radius**2)  # half the distance between centres
    count = min(int(np.ceil(half / step)) + 1, max(max_leaves, 2))
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
    node[:, 3] += RADIUS_ROUNDING * (1.0 + half)
    node[:, 4] -= RADIUS_ROUNDING * (1.0 + half)
    return without_hulls(node, child)


# Functions of a shape, the gap [m] and the maximum number of leaves, for kinds without a fit
DIRECT_TREES: dict[type, Callable[..., SphereTree]] = {Sphere: _ball_tree, Capsule: _capsule_tree}


def _box_tree(solid: _Solid) -> SphereTree:
    """Return a tree of one sphere, whose hull is the bounding box of a solid."""
    low, high = solid.points.min(0), solid.points.max(0)
    middle, rounding = 0.5 * (low + high), RADIUS_ROUNDING * (1.0 + solid.extent)
    radius = float(np.linalg.norm(solid.points - middle, axis=1).max()) + rounding
    corners = [(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)]
    ball = np.column_stack([np.where(corners, high, low), np.full(len(corners), rounding)])
    node = np.array([[*middle, radius, NO_PROOF]])
    return SphereTree(node, np.array([-1]), np.array([[0, len(ball)]]), ball)


# The fit ------------------------------------------------------------------------------------------


class _Piece(NamedTuple):
    """A piece: the intersection of a solid and a box, with a sphere that contains the piece."""

    low: Array  # (3,) lower corner of the box [m]
    high: Array  # (3,) upper corner of the box [m]
    rows: Indices  # (m,) indices of the triangles that are at least partly in the box
    inside: NDArray[np.bool_]  # (2, 2, 2) whether each corner of the box is in the solid
    sphere: Array  # (5,) centre x, y, z, outer radius and inner radius [m]
    depth: int  # depth of the piece in the tree, 0 for the whole solid


class _Fit:
    """Computation of the sphere tree of a solid.

    The module docstring defines pieces and gaps. A sphere is an array (5,) with centre x, y, z,
    outer radius and inner radius [m].

    Args:
        solid: Solid.
        gap: Maximum gap of a piece that is not split [m].
        max_leaves: Maximum number of leaves for a solid; a surface may get more leaves.
        max_work: Maximum work, in units of the distance between a point and a triangle.

    Attributes:
        work: Work done so far, in the same units.
        clipped: Number of clipped triangles in all current leaves.
        was_cut: Whether the maximum work stopped the fit.
    """

    def __init__(self, solid: _Solid, gap: float, max_leaves: int, max_work: int) -> None:
        self.solid, self.gap, self.max_work, self.was_cut = solid, gap, max_work, False
        self.rng = np.random.default_rng(0)
        self.rounding = RADIUS_ROUNDING * (1.0 + solid.extent)
        self.low, self.high = solid.points.min(0), solid.points.max(0)
        self.max_leaves = max_leaves * (1 if solid.is_closed else SURFACE_LEAVES)
        self.around_steps = 200 if max_leaves >= 64 else 20
        self.work, self.clipped = 0, len(solid.corners)
        count = max_work // (4 * ANGLE_WORK * len(solid.corners))
        self.centres, self.depths = self._candidates(min(MAX_CANDIDATES, max(count, 8)))

    def tree(self) -> SphereTree:
        """Compute and return the sphere tree.

        The piece with the largest gap is split until all gaps are small enough, or until the number
        of leaves, the work or the number of clipped triangles reaches a limit.
        """
        pieces, child = [self._root()], [-1]
        waiting, leaves = [(-np.inf, 0)], 1
        while waiting and leaves < self.max_leaves and self.work < self.max_work // 2:
            _, at = heapq.heappop(waiting)
            if self.clipped + len(pieces[at].rows) > MAX_CLIPPED_TRIANGLES:
                continue  # splitting the piece would exceed the limit
            parts = self._cut(pieces[at])
            self.clipped += sum(len(part.rows) for part in parts)
            if len(parts) < 2:
                self.clipped -= sum(len(part.rows) for part in parts)
                continue
            self.clipped -= len(pieces[at].rows)
            pieces[at] = pieces[at]._replace(rows=np.empty(0, np.int64))
            child[at] = len(pieces)
            for part in parts:
                gap = _gap(part.sphere)
                if gap > self.gap and part.depth < MAX_TREE_DEPTH:
                    heapq.heappush(waiting, (-gap, len(pieces)))
                pieces.append(part)
                child.append(-1)
            leaves += 1
        self.was_cut = bool(waiting) and self.work >= self.max_work // 2
        return self._finished(pieces, np.array(child))

    def _finished(self, pieces: Sequence[_Piece], child: Indices) -> SphereTree:
        """Improve the spheres of the leaves, add hulls, and return the sphere tree.

        For each leaf, beginning with the largest gap, a sphere with a smaller gap is searched, and
        a hull is computed, until the work reaches its limit.

        Args:
            pieces: Pieces of the tree.
            child: (N,) index of the first of two successive children; -1 for a leaf.
        """
        node = np.array([piece.sphere for piece in pieces])
        widest = sorted(np.flatnonzero(child < 0).tolist(), key=lambda at: -_gap(node[at]))
        balls = [np.empty((0, 4))] * len(node)
        for at in widest:
            if self.work > self.max_work:
                self.was_cut = True
                break
            self.work += STEP_WORK
            points = self._points(pieces[at])
            node[at] = self._refined(pieces[at].sphere, points)
            if len(points) <= MAX_HULL_POINTS:
                points = np.column_stack([points, np.zeros(len(points))])
                balls[at] = self._hull(points, HULL_TOLERANCE * self.gap)
        for at in np.flatnonzero(child >= 0)[::-1].tolist():
            parts = [balls[child[at]], balls[child[at] + 1]]
            if all(len(part) for part in parts):
                balls[at] = self._hull(np.concatenate(parts), HULL_TOLERANCE * node[at, 3])
        node[0] = pieces[0].sphere
        node[:, 3] += self.rounding
        node[:, 4] -= self.rounding
        counts = np.array([len(each) for each in balls])
        hull = np.column_stack([np.cumsum(counts) - counts, counts])
        return SphereTree(node, child, hull, np.concatenate(balls))

    def _hull(self, balls: Array, tolerance: float) -> Array:
        """Return a few balls (m, 4) whose convex hull contains the convex hull of given balls.

        Args:
            balls: (k, 4) centre and radius of the given balls [m].
            tolerance: Maximum distance of given centres from the convex hull of the returned
                centres [m]. The returned radii are increased by the actual distance.
        """
        balls, radius = balls.copy(), float(balls[:, 3].max())
        balls[:, 3] = 0.0
        count, outside = choose_corners(balls, MAX_HULL_BALLS, tolerance)
        self.work += HULL_WORK * count * len(balls)
        balls[:count, 3] = outside + radius + self.rounding
        return balls[:count]

    def _distances(self, points: Array, is_inside: bool = False) -> Array:
        """Return the signed distances (b,) [m] of points (b, 3) from the surface of the solid.

        Distances are negative inside the solid. The work is added to `work`.

        Args:
            points: (b, 3) points [m].
            is_inside: Whether all points are known to be inside, which saves time.
        """
        cost = 1 if is_inside or not self.solid.is_closed else ANGLE_WORK
        self.work += cost * len(points) * len(self.solid.corners)
        return self.solid.distances(points, is_inside)

    def _candidates(self, count: int) -> tuple[Array, Array]:
        """Return grid points inside the solid, which are candidates for centres of spheres.

        Args:
            count: Approximate number of grid points in the bounding box of the solid.

        Returns:
            Points (c, 3) [m], and their distances (c,) [m] from the surface.
        """
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
        distances = self._distances(grid)
        return grid[distances < 0.0], -distances[distances < 0.0]

    def _root(self) -> _Piece:
        """Return the piece that contains the whole solid."""
        margin = 0.01 * (self.high - self.low) + self.rounding
        rows = np.arange(len(self.solid.corners))
        nowhere = np.zeros((2, 2, 2), np.bool_)
        low, high = self.low - margin, self.high + margin
        return _Piece(low, high, rows, nowhere, self._around(), 0)

    def _piece(
        self, low: Array, high: Array, rows: Indices, inside: NDArray[np.bool_], depth: int
    ) -> _Piece | None:
        """Return the piece in a box, or None if no part of the solid is in the box.

        Args:
            low: (3,) lower corner of the box [m].
            high: (3,) upper corner of the box [m].
            rows: Indices of the triangles that may be at least partly in the box.
            inside: (2, 2, 2) whether each corner of the box is in the solid.
            depth: Depth of the piece in the tree.
        """
        corners, rows = self._clipped(low, high, rows)
        if not len(rows) and not inside.any():
            return None
        points = _with_corners(corners, low, high, inside)
        return _Piece(low, high, rows, inside, self._sphere(points), depth)

    def _clipped(self, low: Array, high: Array, rows: Indices) -> tuple[Array, Indices]:
        """Clip triangles to a box.

        Args:
            low: (3,) lower corner of the box [m].
            high: (3,) upper corner of the box [m].
            rows: Indices of the triangles.

        Returns:
            Corners (k, 3) [m] of the clipped triangles, and indices of those triangles that are at
            least partly in the box.
        """
        self.work += CLIP_WORK * len(rows)
        points, kept = np.empty((MAX_CLIPPED * len(rows), 3)), np.empty(len(rows), np.int64)
        count, used = clip_to_box(self.solid.corners, rows, low, high, points, kept)
        return points[:count], kept[:used].copy()

    def _points(self, piece: _Piece) -> Array:
        """Return points (k, 3) [m] whose convex hull contains a piece."""
        corners, _ = self._clipped(piece.low, piece.high, piece.rows)
        return _with_corners(corners, piece.low, piece.high, piece.inside)

    def _sphere(self, points: Array) -> Array:
        """Return a sphere (5,) that contains points (k, 3) [m], with a gap as small as possible.

        The centre is the middle of the bounding box of the points, or one of the candidates for
        centres inside the solid. For a surface, the centre is the point closest to the middle.
        """
        middle = 0.5 * (points.min(0) + points.max(0))
        if not self.solid.is_closed:  # only a centre on the surface can prove a contact
            middle = points[np.argmin(np.linalg.norm(points - middle, axis=1))]
            return _first(middle, np.zeros(1), points)
        best = _first(middle, self._depths(middle[None]), points)
        self.work += 10 * (len(points) + len(self.centres))  # most centres are rejected fast
        tightest_sphere(self.centres, self.depths, np.ascontiguousarray(points), best)
        return best

    def _depths(self, centres: Array) -> Array:
        """Return the distances (c,) [m] of points (c, 3) in the solid from its surface.

        The distance of a point outside the solid is `NO_PROOF`.
        """
        if not self.solid.is_closed:
            return np.full(len(centres), NO_PROOF)
        distances = self._distances(centres)
        return np.where(distances < 0.0, -distances, NO_PROOF)

    def _refined(self, sphere: Array, points: Array) -> Array:
        """Search for a sphere of a leaf with a smaller gap, and return the best sphere (5,).

        Args:
            sphere: (5,) current sphere of the leaf. The search tries random centres near its
                centre, and returns this sphere if no other sphere is better.
            points: (k, 3) points whose convex hull contains the piece of the leaf [m].
        """
        best, rows = sphere.copy(), np.ascontiguousarray(points)
        scale = 0.15 * max(best[3], 1e-6)
        for _ in range(REFINE_ROUNDS):
            steps = scale * self.rng.normal(size=(REFINE_CENTRES, 3))
            if best[4] > 0.0:  # all points within the inner radius best[4] are inside the solid
                steps *= min(1.0, 0.5 * best[4] / scale)
                steps = steps[np.linalg.norm(steps, axis=1) < best[4]]
                depths = -self._distances(best[:3] + steps, True)
            else:
                depths = self._depths(best[:3] + steps)
            self.work += len(points) * len(steps) // 4
            tightest_sphere(best[:3] + steps, depths, rows, best)
            scale *= 0.5
        return best

    def _around(self) -> Array:
        """Return an almost minimal sphere (5,) that contains the solid (Badoiu & Clarkson 2003)."""
        points = self.solid.points
        self.work += self.around_steps * len(points)
        centre = 0.5 * (self.low + self.high)
        best = np.array([*centre, np.inf])
        for i in range(1, self.around_steps):
            distances = np.linalg.norm(points - centre, axis=1)
            farthest = int(np.argmax(distances))
            if distances[farthest] < best[3]:
                best = np.array([*centre, distances[farthest]])
            centre = centre + (points[farthest] - centre) / (i + 1)
        return np.append(best, self._depths(best[None, :3]))

    def _cut(self, piece: _Piece) -> list[_Piece]:
        """Split a piece by a plane across its longest extent, and return the two new pieces.

        If only one side of the plane contains points of the solid, only this piece is returned.
        """
        self.work += STEP_WORK
        points = self._points(piece)
        low, high = points.min(0), points.max(0)
        axis = int(np.argmax(high - low))
        value = 0.5 * (low[axis] + high[axis])
        # Each half has four corners of the old box, and both share four new corners in between.
        ends = np.array([piece.low, piece.high])
        new = ends.copy()
        new[:, axis] = value
        grid = np.array([[[(new[i, 0], new[j, 1], new[k, 2]) for k in (0, 1)] for j in (0, 1)]
                         for i in (0, 1)])  # fmt: skip
        between = np.take(grid, 0, axis).reshape(4, 3)
        if self.solid.is_closed:
            new_inside = (self._distances(between) < 0.0).reshape(2, 2)
        else:
            new_inside = np.zeros((2, 2), np.bool_)
        parts = []
        for side in range(2):
            inside = np.moveaxis(piece.inside, axis, 0).copy()
            inside[1 - side] = new_inside
            inside = np.moveaxis(inside, 0, axis)
            box = ends.copy()
            box[1 - side, axis] = value
            parts.append(self._piece(box[0], box[1], piece.rows, inside, piece.depth + 1))
        return [part for part in parts if part is not None]


def _with_corners(points: Array, low: Array, high: Array, inside: NDArray[np.bool_]) -> Array:
    """Return given points, followed by those corners of a box that are inside a solid.

    Args:
        points: (k, 3) points [m].
        low: (3,) lower corner of the box [m].
        high: (3,) upper corner of the box [m].
        inside: (2, 2, 2) whether each corner of the box is in the solid.
    """
    return np.concatenate([points, np.where(np.argwhere(inside) == 0, low, high)])


def _gap(sphere: Array) -> float:
    """Return the gap of a sphere (5,), the difference [m] of its outer and its inner radius.

    An inner radius below 0 (centre outside the solid) counts as 0.
    """
    return float(sphere[3] - max(sphere[4], 0.0))


def _first(centre: Array, depth: Array, points: Array) -> Array:
    """Return the smallest sphere (5,) with a given centre that contains given points.

    Args:
        centre: (3,) centre [m].
        depth: (1,) inner radius [m].
        points: (k, 3) points [m].
    """
    radius = np.sqrt(np.max(np.sum((points - centre) ** 2, axis=1)))
    return np.array([*centre, radius, *depth])
