# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Distances of points from primitives, tree nodes and meshes, and functions to fit spheres.

The signed distances from primitives and the gradients of these distances are exact, in closed form.
"""

from math import sqrt

import numpy as np

from dls_ik.core.jit import allocating, force_inline, kernel
from dls_ik.core.scene_arrays import (
    INNER,
    KIND_BOX,
    KIND_CAPSULE,
    KIND_CAVITY,
    KIND_CYLINDER,
    KIND_PLANE,
    OUTER,
)
from dls_ik.core.types import Array, Indices

Point = tuple[float, float, float]  # coordinates [m]
MAX_CLIPPED = 9  # maximum number of corners of a triangle clipped to a box


@force_inline
def distance_and_normal(
    kind: int, size: Array, x: float, y: float, z: float
) -> tuple[float, float, float, float]:
    """Return the signed distance of a point from a primitive, and its gradient by the point.

    Args:
        kind: Kind of the primitive, SPHERE to KIND_CAVITY in :mod:`dls_ik.core.scene_arrays`.
        size: (3,) size of the primitive as in :class:`dls_ik.core.scene_arrays.SceneArrays` [m].
        x, y, z: The point in the frame of the primitive [m].

    Returns:
        The distance [m], negative inside the primitive, and the three components of the gradient, a
        unit vector.
    """
    if kind == KIND_PLANE:
        return z, 0.0, 0.0, 1.0
    u, v, w, radius = x, y, z, size[0]
    squared = x * x + y * y + z * z
    if kind == KIND_BOX:
        a, b, c = abs(x) - size[0], abs(y) - size[1], abs(z) - size[2]
        most = max(a, max(b, c))
        if most <= 0.0:
            if most == a:
                return a, 1.0 if x > 0.0 else -1.0, 0.0, 0.0
            if most == b:
                return b, 0.0, 1.0 if y > 0.0 else -1.0, 0.0
            return c, 0.0, 0.0, 1.0 if z > 0.0 else -1.0
        u = 0.0 if a < 0.0 else (a if x > 0.0 else -a)
        v = 0.0 if b < 0.0 else (b if y > 0.0 else -b)
        w = 0.0 if c < 0.0 else (c if z > 0.0 else -c)
        squared, radius = u * u + v * v + w * w, 0.0
    elif kind == KIND_CYLINDER:
        rho = sqrt(x * x + y * y)
        a, c = rho - size[0], abs(z) - size[1]
        up = 1.0 if z > 0.0 else -1.0
        if c <= 0.0 or a <= 0.0:
            if a <= c:
                return c, 0.0, 0.0, up
            if rho == 0.0:  # point on the axis
                return a, 1.0, 0.0, 0.0
            return a, x / rho, y / rho, 0.0
        u, v, w = a * x / rho, a * y / rho, c * up
        squared, radius = a * a + c * c, 0.0
    elif kind == KIND_CAPSULE:
        c = max(abs(z) - size[1], 0.0)
        w = c if z > 0.0 else -c
        squared = x * x + y * y + c * c
    length = sqrt(squared)
    if kind == KIND_CAVITY:
        if length < 1e-15:
            return radius - length, -1.0, 0.0, 0.0
        return radius - length, -u / length, -v / length, -w / length
    if length < 1e-15:
        return length - radius, 1.0, 0.0, 0.0
    return length - radius, u / length, v / length, w / length


@force_inline
def signed_distance(kind: int, size: Array, x: float, y: float, z: float) -> float:
    """Return the signed distance [m] of a point from a primitive, negative inside.

    The arguments are those of :func:`distance_and_normal`.
    """
    # LLVM removes the computation of the gradient.
    d, _, _, _ = distance_and_normal(kind, size, x, y, z)
    return d


@force_inline
def apply(T: Array, c: Array) -> tuple[float, float, float]:
    """Return the coordinates of the point given by the first three entries of c, moved by T (3, 4).

    T is a rigid transform.
    """
    return (
        T[0, 0] * c[0] + T[0, 1] * c[1] + T[0, 2] * c[2] + T[0, 3],
        T[1, 0] * c[0] + T[1, 1] * c[1] + T[1, 2] * c[2] + T[1, 3],
        T[2, 0] * c[0] + T[2, 1] * c[1] + T[2, 2] * c[2] + T[2, 3],
    )


@force_inline
def from_node(a: Array, x: float, y: float, z: float) -> tuple[float, float, float, float]:
    """Return the distance [m] of a point from the centre of node a, and its gradient by the point.

    Args:
        a: (5,) node: centre, outer and inner radius [m].
        x, y, z: The point in the frame of the node [m].
    """
    u, v, w = x - a[0], y - a[1], z - a[2]
    length = sqrt(u * u + v * v + w * w)
    if length < 1e-15:
        return 0.0, 1.0, 0.0, 0.0
    return length, u / length, v / length, w / length


@force_inline
def centre_distance(T: Array, size: Array, kind: int, c: Array) -> float:
    """Return the signed distance [m] of a point or of the centre of a node from a primitive.

    Args:
        T: (3, 4) transform from the frame of the point to that of the primitive.
        size: (3,) size of the primitive [m].
        kind: Kind of the primitive, SPHERE to KIND_CAVITY in :mod:`dls_ik.core.scene_arrays`.
        c: The point, in the first three entries [m].
    """
    x, y, z = apply(T, c)
    return signed_distance(kind, size, x, y, z)


@force_inline
def node_distance(T: Array, a: Array, b: Array) -> float:
    """Return the distance [m] of the centres of two tree nodes.

    Args:
        T: (3, 4) transform from the frame of node b to that of node a.
        a, b: (5,) nodes, with the centre in the first three entries [m].
    """
    x, y, z = apply(T, b)
    x, y, z = x - a[0], y - a[1], z - a[2]
    return sqrt(x * x + y * y + z * z)  # calling from_node would make distance bounds 7 % slower


# Fitted shapes ------------------------------------------------------------------------------------


@kernel
def primitive_distances(kind: int, size: Array, points: Array, out: Array) -> None:
    """Write the signed distances of points from a primitive, negative inside.

    Args:
        kind: Kind of the primitive, SPHERE to KIND_CAVITY in :mod:`dls_ik.core.scene_arrays`.
        size: (3,) size of the primitive [m].
        points: (b, 3) points in the frame of the primitive [m].
        out: (b,) distances, written [m].
    """
    for i in range(points.shape[0]):
        out[i] = signed_distance(kind, size, points[i, 0], points[i, 1], points[i, 2])


@allocating
def clip_to_box(
    corners: Array, rows: Indices, low: Array, high: Array, points: Array, kept: Indices
) -> tuple[int, int]:
    """Write the corners of the intersections of triangles with an axis-aligned box.

    Each intersection is a convex polygon of at most MAX_CLIPPED corners (Sutherland & Hodgman
    1974).

    Args:
        corners: (m, 3, 3) corners of all triangles [m].
        rows: (k,) indices of the triangles to clip.
        low, high: (3,) bounds of the box [m].
        points: (MAX_CLIPPED k, 3) corners of the intersections, written [m].
        kept: (k,) indices of the triangles that intersect the box, written.

    Returns:
        The number of points and the number of triangles written.
    """
    polygon, other = np.empty((MAX_CLIPPED + 2, 3)), np.empty((MAX_CLIPPED + 2, 3))
    count, used = 0, 0
    for row in rows:
        size = 3
        for i in range(3):
            for j in range(3):
                polygon[i, j] = corners[row, i, j]
        for side in range(6):
            axis, sign = side // 2, 1.0 if side % 2 == 0 else -1.0
            value = high[axis] if side % 2 == 0 else low[axis]
            size_after = 0
            for i in range(size):
                k = i + 1 if i + 1 < size else 0
                a, b = sign * (polygon[i, axis] - value), sign * (polygon[k, axis] - value)
                if a <= 0.0:
                    for j in range(3):
                        other[size_after, j] = polygon[i, j]
                    size_after += 1
                if (a < 0.0 and b > 0.0) or (a > 0.0 and b < 0.0):
                    share = a / (a - b)
                    for j in range(3):
                        step = polygon[k, j] - polygon[i, j]
                        other[size_after, j] = polygon[i, j] + share * step
                    other[size_after, axis] = value
                    size_after += 1
                if size_after > MAX_CLIPPED:  # rounding errors: use the whole triangle instead
                    break
            if size_after > MAX_CLIPPED:
                size = 3
                for i in range(3):
                    for j in range(3):
                        polygon[i, j] = corners[row, i, j]
                break
            polygon, other, size = other, polygon, size_after
            if size == 0:
                break
        if size > 0:
            for i in range(size):
                for j in range(3):
                    points[count + i, j] = polygon[i, j]
            count += size
            kept[used] = row
            used += 1
    return count, used


@kernel
def tightest_sphere(centres: Array, depths: Array, points: Array, out: Array) -> None:
    """Choose the centre of a tree node with the smallest difference of outer and inner radius.

    Args:
        centres: (c, 3) candidates for the centre [m].
        depths: (c,) inner radii of the candidates [m], -inf outside the solid.
        points: (k, 3) points that the outer sphere must enclose [m].
        out: (5,) centre, outer and inner radius [m], read and replaced by the best candidate if its
            difference is smaller. Set the outer radius to inf initially to accept any candidate.
    """
    best = out[OUTER] - max(out[INNER], 0.0)
    for i in range(centres.shape[0]):
        x, y, z, depth = centres[i, 0], centres[i, 1], centres[i, 2], max(depths[i], 0.0)
        most, squared = (best + depth) ** 2, 0.0
        for k in range(points.shape[0]):
            a, b, c = points[k, 0] - x, points[k, 1] - y, points[k, 2] - z
            squared = max(squared, a * a + b * b + c * c)
            if squared >= most:
                break
        if squared < most:
            out[0], out[1], out[2], out[OUTER], out[INNER] = x, y, z, sqrt(squared), depths[i]
            best = out[OUTER] - depth


@kernel
def mesh_distances(corners: Array, points: Array, solid: bool, out: Array) -> None:
    """Write the distances of points from a mesh, negative inside a solid mesh.

    Args:
        corners: (m, 3, 3) corners of the triangles [m].
        points: (b, 3) points [m].
        solid: Whether the mesh encloses a solid. A point is then inside if the solid angle of the
            mesh, seen from the point, exceeds half a sphere (Van Oosterom & Strackee 1983).
        out: (b,) distances, written [m].
    """
    for i in range(points.shape[0]):
        least, angle = np.inf, 0.0
        px, py, pz = points[i, 0], points[i, 1], points[i, 2]
        for k in range(corners.shape[0]):
            ax, ay, az = corners[k, 0, 0] - px, corners[k, 0, 1] - py, corners[k, 0, 2] - pz
            bx, by, bz = corners[k, 1, 0] - px, corners[k, 1, 1] - py, corners[k, 1, 2] - pz
            cx, cy, cz = corners[k, 2, 0] - px, corners[k, 2, 1] - py, corners[k, 2, 2] - pz
            squared = squared_to_triangle((ax, ay, az), (bx, by, bz), (cx, cy, cz))
            least = min(least, squared)
            if solid:
                volume = ax * (by * cz - bz * cy) + ay * (bz * cx - bx * cz)
                volume += az * (bx * cy - by * cx)
                a, b = sqrt(ax * ax + ay * ay + az * az), sqrt(bx * bx + by * by + bz * bz)
                c = sqrt(cx * cx + cy * cy + cz * cz)
                ab, bc = ax * bx + ay * by + az * bz, bx * cx + by * cy + bz * cz
                ca = cx * ax + cy * ay + cz * az
                angle += np.arctan2(volume, a * b * c + ab * c + bc * a + ca * b)
        inside = solid and abs(angle) > np.pi  # the sum is half the solid angle, 2 pi inside
        out[i] = -sqrt(least) if inside else sqrt(least)


@force_inline
def squared_to_triangle(a: Point, b: Point, c: Point) -> float:
    """Return the squared distance [m^2] of the origin from the triangle with corners a, b and c.

    The method is that of Ericson 2005, 5.1.5.
    """
    ax, ay, az = a
    bx, by, bz = b
    cx, cy, cz = c
    ux, uy, uz = bx - ax, by - ay, bz - az
    vx, vy, vz = cx - ax, cy - ay, cz - az
    d1, d2 = -(ux * ax + uy * ay + uz * az), -(vx * ax + vy * ay + vz * az)
    d3, d4 = -(ux * bx + uy * by + uz * bz), -(vx * bx + vy * by + vz * bz)
    d5, d6 = -(ux * cx + uy * cy + uz * cz), -(vx * cx + vy * cy + vz * cz)
    va, vb, vc = d3 * d6 - d5 * d4, d5 * d2 - d1 * d6, d1 * d4 - d3 * d2
    s = t = 0.0  # the closest point is a + s u + t v
    if d1 <= 0.0 and d2 <= 0.0:
        s, t = 0.0, 0.0
    elif d3 >= 0.0 and d4 <= d3:
        s, t = 1.0, 0.0
    elif d6 >= 0.0 and d5 <= d6:
        s, t = 0.0, 1.0
    elif vc <= 0.0 and d1 >= 0.0 and d3 <= 0.0:
        s, t = d1 / (d1 - d3), 0.0
    elif vb <= 0.0 and d2 >= 0.0 and d6 <= 0.0:
        s, t = 0.0, d2 / (d2 - d6)
    elif va <= 0.0 and d4 - d3 >= 0.0 and d5 - d6 >= 0.0:
        t = (d4 - d3) / ((d4 - d3) + (d5 - d6))
        s = 1.0 - t
    else:
        s, t = vb / (va + vb + vc), vc / (va + vb + vc)
    x, y, z = ax + s * ux + t * vx, ay + s * uy + t * vy, az + s * uz + t * vz
    return x * x + y * y + z * z
