# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Bounds on the distance of convex hulls of balls (Gilbert, Johnson & Keerthi 1988).

Each leaf of a sphere tree contains a piece of a solid, and may have balls of equal radius whose
convex hull also contains the piece. The distance of two hulls along a unit vector, from the
farthest point of the first hull to the closest point of the second hull, is a lower bound on the
distance of the two pieces for every unit vector. The algorithm improves the vector until the bound
equals the distance; the bound is valid whenever the algorithm stops.
"""

from math import sqrt
from typing import NamedTuple

import numpy as np

from dls_ik.core.jit import allocating, force_inline, kernel
from dls_ik.core.types import Array, Indices

BALL_RADIUS = 3  # column of the radius in a row of balls
WEIGHT = 6  # column of the weight in a row of a simplex
SHARP_RANGE = 0.005  # [m] hulls are used for distances up to the minimum distance plus this value
MAX_HULL_ITERATIONS = 40
HULL_DISTANCE_TOLERANCE = 1e-10  # [m] difference of the bounds at which the algorithm stops
MIN_RELATIVE_VOLUME = 1e-9  # tetrahedra with a smaller volume, relative to edges, count as flat


class HullScratch(NamedTuple):
    """Scratch arrays of one thread for distances of hulls.

    The simplex has up to four corners. A corner is the difference of the centres of two balls, one
    of each hull. The point of the simplex closest to the origin is the weighted sum of the corners.
    """

    simplex: Array  # (4, 7) each corner: difference of centres, centre of the second ball, weight
    normal: Array  # (3,) unit vector from the first hull to the second


@allocating
def hull_scratch() -> HullScratch:
    """Allocate the scratch arrays of one thread; the unit vector is initially x."""
    normal = np.zeros(3)
    normal[0] = 1.0
    return HullScratch(np.zeros((4, 7)), normal)


# The distance -------------------------------------------------------------------------------------


@kernel
def hull_distance(
    hull: Indices, ball: Array, one: int, two: int, T: Array, enough: float, work: HullScratch
) -> tuple[float, float]:
    """Return a lower and an upper bound on the distance [m] of two hulls.

    Args:
        hull: (N, 2) first ball and number of balls, at least one, of each hull.
        ball: (M, 4) centres and radii [m].
        one, two: Indices of the hulls.
        T: (3, 4) transform from the frame of the second hull to that of the first.
        enough: The algorithm may stop when the lower bound reaches this value [m].
        work: `normal` holds the initial unit vector, in the frame of the first hull, and is
            replaced by the unit vector of the lower bound. `simplex` is written; its weights define
            the closest points of the hulls.

    Returns:
        The lower and the upper bound; -inf and 0 if the hulls overlap.
    """
    simplex, normal = work.simplex, work.normal
    radii = ball[hull[one, 0], BALL_RADIUS] + ball[hull[two, 0], BALL_RADIUS]
    lower, upper, size = -np.inf, np.inf, 0
    nx, ny, nz = normal[0], normal[1], normal[2]
    for _ in range(MAX_HULL_ITERATIONS):
        far, near = _support(hull, ball, one, two, T, nx, ny, nz)
        bx, by, bz = ball[near, 0], ball[near, 1], ball[near, 2]
        x = T[0, 0] * bx + T[0, 1] * by + T[0, 2] * bz + T[0, 3] - ball[far, 0]
        y = T[1, 0] * bx + T[1, 1] * by + T[1, 2] * bz + T[1, 3] - ball[far, 1]
        z = T[2, 0] * bx + T[2, 1] * by + T[2, 2] * bz + T[2, 3] - ball[far, 2]
        bound = nx * x + ny * y + nz * z
        if bound > lower:
            lower = bound
            normal[0], normal[1], normal[2] = nx, ny, nz
        if lower - radii >= enough or upper - lower <= HULL_DISTANCE_TOLERANCE:
            break
        is_known = False
        for i in range(size):
            is_known = is_known or (
                simplex[i, 0] == x and simplex[i, 1] == y and simplex[i, 2] == z
            )
        if is_known:
            break
        simplex[size, 0], simplex[size, 1], simplex[size, 2] = x, y, z
        simplex[size, 3], simplex[size, 4], simplex[size, 5] = bx, by, bz
        size = _nearest_weights(simplex, size + 1)
        if size == 4:
            return -np.inf, 0.0
        x = y = z = 0.0
        for i in range(size):
            x += simplex[i, WEIGHT] * simplex[i, 0]
            y += simplex[i, WEIGHT] * simplex[i, 1]
            z += simplex[i, WEIGHT] * simplex[i, 2]
        length = sqrt(x * x + y * y + z * z)
        if length <= HULL_DISTANCE_TOLERANCE:
            return -np.inf, 0.0
        if length >= upper:
            break
        upper = length
        nx, ny, nz = x / length, y / length, z / length
    for i in range(size, 4):
        simplex[i, WEIGHT] = 0.0
    if lower <= 0.0:
        return -np.inf, max(upper - radii, 0.0)
    return lower - radii, max(upper - radii, 0.0)


@kernel
def keeps_along(
    hull: Indices, ball: Array, one: int, two: int, T: Array, distance: float, work: HullScratch
) -> bool:
    """Return whether two hulls are at least `distance` [m] apart along ``work.normal``.

    The arguments are those of :func:`hull_distance`. False is returned if a leaf has no hull.
    """
    if hull[one, 1] == 0 or hull[two, 1] == 0:
        return False
    nx, ny, nz = work.normal[0], work.normal[1], work.normal[2]
    x = T[0, 0] * nx + T[1, 0] * ny + T[2, 0] * nz
    y = T[0, 1] * nx + T[1, 1] * ny + T[2, 1] * nz
    z = T[0, 2] * nx + T[1, 2] * ny + T[2, 2] * nz
    first, nearest = hull[two, 0], np.inf
    for i in range(first, first + hull[two, 1]):
        nearest = min(nearest, x * ball[i, 0] + y * ball[i, 1] + z * ball[i, 2])
    radii = ball[first, BALL_RADIUS] + ball[hull[one, 0], BALL_RADIUS]
    most = nearest + nx * T[0, 3] + ny * T[1, 3] + nz * T[2, 3] - radii - distance
    first = hull[one, 0]
    for i in range(first, first + hull[one, 1]):
        if not nx * ball[i, 0] + ny * ball[i, 1] + nz * ball[i, 2] <= most:
            return False
    return True


@force_inline
def _support(
    hull: Indices, ball: Array, one: int, two: int, T: Array, nx: float, ny: float, nz: float
) -> tuple[int, int]:
    """Find the balls of two hulls that determine their distance along a unit vector (nx, ny, nz).

    Args:
        hull, ball, one, two, T: As in :func:`hull_distance`.
        nx, ny, nz: Unit vector in the frame of the first hull.

    Returns:
        Index of the farthest ball of the first hull along the vector, and index of the nearest ball
        of the second hull.
    """
    first = hull[one, 0]
    far, farthest = first, -np.inf
    for i in range(first, first + hull[one, 1]):
        s = nx * ball[i, 0] + ny * ball[i, 1] + nz * ball[i, 2]
        if s > farthest:
            far, farthest = i, s
    x = T[0, 0] * nx + T[1, 0] * ny + T[2, 0] * nz
    y = T[0, 1] * nx + T[1, 1] * ny + T[2, 1] * nz
    z = T[0, 2] * nx + T[1, 2] * ny + T[2, 2] * nz
    first = hull[two, 0]
    near, nearest = first, np.inf
    for i in range(first, first + hull[two, 1]):
        s = x * ball[i, 0] + y * ball[i, 1] + z * ball[i, 2]
        if s < nearest:
            near, nearest = i, s
    return far, near


# The point of a simplex closest to the origin -----------------------------------------------------


@kernel
def _nearest_weights(simplex: Array, size: int) -> int:
    """Express the point of a simplex closest to the origin as a weighted sum of its corners.

    The weights are written to the simplex, and corners of weight zero are removed.

    Args:
        simplex: (4, 7) as in :class:`HullScratch`, read and written.
        size: Number of corners, 1 to 4.

    Returns:
        The number of remaining corners; 4 if the simplex contains the origin.
    """
    if size == 1:
        simplex[0, WEIGHT] = 1.0
        return 1
    a = b = c = 0.0
    i, j, k = 0, 1, 2
    if size == 2:
        b = _share_of_edge(simplex, 0, 1)
        a = 1.0 - b
    elif size == 3:
        a, b, c = _weights_of_triangle(simplex, 0, 1, 2)
    else:
        best, is_inside = np.inf, True
        for face in range(4):
            one = 1 if face == 0 else 0
            two = 1 if face > 1 else 2
            three = 2 if face == 3 else 3
            if _contains_side(simplex, one, two, three, face):
                continue
            is_inside = False
            u, v, w = _weights_of_triangle(simplex, one, two, three)
            squared = 0.0
            for axis in range(3):
                part = u * simplex[one, axis] + v * simplex[two, axis] + w * simplex[three, axis]
                squared += part * part
            if squared < best:
                best, i, j, k, a, b, c = squared, one, two, three, u, v, w
        if is_inside:
            return 4
    simplex[i, WEIGHT], simplex[j, WEIGHT] = a, b
    if size > 2:
        simplex[k, WEIGHT] = c
    if size == 4:
        simplex[6 - i - j - k, WEIGHT] = 0.0
    left = 0
    for at in range(size):
        if simplex[at, WEIGHT] > 0.0:
            for column in range(7):
                simplex[left, column] = simplex[at, column]
            left += 1
    return left


@force_inline
def _contains_side(simplex: Array, i: int, j: int, k: int, top: int) -> bool:
    """Return whether the origin and corner `top` are on the same side of the face (i, j, k).

    The result is False for a flat tetrahedron.
    """
    ax, ay, az = simplex[i, 0], simplex[i, 1], simplex[i, 2]
    ux, uy, uz = simplex[j, 0] - ax, simplex[j, 1] - ay, simplex[j, 2] - az
    vx, vy, vz = simplex[k, 0] - ax, simplex[k, 1] - ay, simplex[k, 2] - az
    x, y, z = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
    wx, wy, wz = simplex[top, 0] - ax, simplex[top, 1] - ay, simplex[top, 2] - az
    up, origin = x * wx + y * wy + z * wz, -(x * ax + y * ay + z * az)
    squared = (ux * ux + uy * uy + uz * uz) * (vx * vx + vy * vy + vz * vz)
    scale = sqrt(squared * (wx * wx + wy * wy + wz * wz))
    return abs(up) > MIN_RELATIVE_VOLUME * scale and up * origin >= 0.0


@force_inline
def _share_of_edge(simplex: Array, i: int, j: int) -> float:
    """Return the weight, 0 to 1, of corner j in the point of edge (i, j) closest to the origin."""
    along = squared = 0.0
    for axis in range(3):
        u = simplex[j, axis] - simplex[i, axis]
        along -= u * simplex[i, axis]
        squared += u * u
    if along <= 0.0:
        return 0.0
    return 1.0 if along >= squared else along / squared


@kernel
def _weights_of_triangle(simplex: Array, i: int, j: int, k: int) -> tuple[float, float, float]:
    """Return the weights of three corners in the point of their triangle closest to the origin.

    The method is that of Ericson 2005, 5.1.5.

    Args:
        simplex: (4, 7) as in :class:`HullScratch`.
        i, j, k: Indices of the corners.
    """
    ax, ay, az = simplex[i, 0], simplex[i, 1], simplex[i, 2]
    bx, by, bz = simplex[j, 0], simplex[j, 1], simplex[j, 2]
    cx, cy, cz = simplex[k, 0], simplex[k, 1], simplex[k, 2]
    ux, uy, uz, vx, vy, vz = bx - ax, by - ay, bz - az, cx - ax, cy - ay, cz - az
    d1, d2 = -(ux * ax + uy * ay + uz * az), -(vx * ax + vy * ay + vz * az)
    d3, d4 = -(ux * bx + uy * by + uz * bz), -(vx * bx + vy * by + vz * bz)
    d5, d6 = -(ux * cx + uy * cy + uz * cz), -(vx * cx + vy * cy + vz * cz)
    if d1 <= 0.0 and d2 <= 0.0:
        return 1.0, 0.0, 0.0
    if d3 >= 0.0 and d4 <= d3:
        return 0.0, 1.0, 0.0
    if d6 >= 0.0 and d5 <= d6:
        return 0.0, 0.0, 1.0
    va, vb, vc = d3 * d6 - d5 * d4, d5 * d2 - d1 * d6, d1 * d4 - d3 * d2
    if vc <= 0.0 and d1 > 0.0 and d3 < 0.0:
        t = d1 / (d1 - d3)
        return 1.0 - t, t, 0.0
    if vb <= 0.0 and d2 > 0.0 and d6 < 0.0:
        t = d2 / (d2 - d6)
        return 1.0 - t, 0.0, t
    if va <= 0.0 and d4 - d3 > 0.0 and d5 - d6 > 0.0:
        t = (d4 - d3) / ((d4 - d3) + (d5 - d6))
        return 0.0, 1.0 - t, t
    total = va + vb + vc
    if not (va >= 0.0 and vb >= 0.0 and vc >= 0.0 and total > 0.0):  # a rounding error
        return 1.0, 0.0, 0.0
    return va / total, vb / total, vc / total


# Hulls with few corners ---------------------------------------------------------------------------


@allocating
def choose_corners(points: Array, most: int, tolerance: float) -> tuple[int, float]:
    """Choose few points whose convex hull contains all points within a tolerance.

    The chosen points are moved to the front of the array. Starting with one point, the point
    farthest from the hull is added until all other points are within the tolerance of the hull.

    Args:
        points: (k, 4) k >= 1 balls, each a centre [m] and a radius of 0, reordered in place.
        most: Maximum number of chosen points.
        tolerance: Maximum distance of the other points from the hull [m].

    Returns:
        The number of chosen points, and the maximum distance of the other points from their hull
        [m].
    """
    hull, T, work = np.zeros((2, 2), np.int64), np.zeros((3, 4)), hull_scratch()
    for i in range(3):
        T[i, i] = 1.0
    hull[1, 1] = 1
    # Choose the point farthest from the mean of all points as the first corner.
    middle = np.zeros(3)
    for i in range(points.shape[0]):
        for axis in range(3):
            middle[axis] += points[i, axis] / points.shape[0]
    first, farthest = 0, -1.0
    for i in range(points.shape[0]):
        squared = 0.0
        for axis in range(3):
            squared += (points[i, axis] - middle[axis]) ** 2
        if squared > farthest:
            first, farthest = i, squared
    _swap(points, 0, first)
    count, last, outside = 1, points.shape[0], 0.0
    while count < last:
        hull[0, 1] = count
        found, farthest = -1, 0.0
        i = count
        while i < last:
            hull[1, 0] = i
            _, d = hull_distance(hull, points, 0, 1, T, np.inf, work)
            if d <= tolerance:
                outside = max(outside, d)
                last -= 1
                _swap(points, i, last)
                continue
            if d > farthest:
                found, farthest = i, d
            i += 1
        if found < 0:
            break
        if count == most:
            outside = max(outside, farthest)
            break
        _swap(points, count, found)
        count += 1
    return count, outside


@force_inline
def _swap(points: Array, i: int, j: int) -> None:
    """Exchange rows i and j of points (k, 4)."""
    for axis in range(4):
        points[i, axis], points[j, axis] = points[j, axis], points[i, axis]
