# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Functionals of a pose that are affine in the motion of each joint of a chain.

A functional is a number that depends on the pose T of the tip, such as the squared distance between
two points. A rigid transform T can be represented by larger matrices, whose products represent
products of transforms: :func:`conformal` matrices map points together with their squared distance
from the origin, and :func:`screw` matrices map lines. The entries of these matrices are affine in
(cos q, sin q) of a revolute joint and in (q, q^2) of a prismatic joint. A functional of the form
``row @ matrix(T) @ column`` is therefore affine in each joint separately. :class:`ChainProduct`
represents a functional as a product over the joints that change its value. Lengths are in the
length unit of the chain.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.types import MAX_POSE_COORDINATE, Array, Chain
from dls_ik.model.joint import TURN
from dls_ik.model.rotations import inverse

# maximum squared sine of the angle between axes that count as parallel
MAX_PARALLEL_SQUARED_SINE = 1e-9
MIN_CHANGE = 1e-13  # minimum change, relative to a functional's scale, that is not rounding
THIRDS = np.array([0.0, 1.0, -1.0]) / 3.0  # three equally spaced angles, as shares of a turn


class PathElements(NamedTuple):
    """The m moving elements of a path, treated as independent even if some share a variable."""

    fixed: Array  # (m + 1, 4, 4) fixed transforms before, between and after the elements
    prismatic: NDArray[np.bool_]  # (m,)
    lower: Array  # (m,) [rad or m]
    upper: Array  # (m,) [rad or m]

    @property
    def length(self) -> float:
        """Upper bound, not tight, on the distance between base and tip [m]."""
        slides = np.maximum(np.abs(self.lower), np.abs(self.upper))[self.prismatic]
        slides = slides[np.isfinite(slides)]
        return float(np.linalg.norm(self.fixed[:, :3, 3], axis=1).sum() + slides.sum())

    def scaled(self, factor: float) -> "PathElements":
        """Return the path with all lengths multiplied by a factor."""
        fixed = self.fixed.copy()
        fixed[:, :3, 3] *= factor
        factors = np.where(self.prismatic, factor, 1.0)
        return PathElements(fixed, self.prismatic, self.lower * factors, self.upper * factors)

    def split(self, k: int) -> tuple["PathElements", "PathElements"]:
        """Return the path from the base to element k, and the path from element k to the tip.

        Element k moves in the second path. The paths meet in the frame before this motion.
        """
        _, prismatic, lower, upper = self
        fixed = np.concatenate([np.eye(4)[None], self.fixed[k + 1 :]])
        before = PathElements(self.fixed[: k + 1], prismatic[:k], lower[:k], upper[:k])
        return before, PathElements(fixed, prismatic[k:], lower[k:], upper[k:])


def path_elements(chain: Chain, tip: int) -> PathElements:
    """Return the moving elements of the path to a tip, with the limits of their variables.

    An element with a limit beyond `MAX_POSE_COORDINATE` counts as unlimited, because rounding
    errors at such positions would exceed the lengths of the arm.
    """
    start, stop = chain.first[tip : tip + 2]
    path = slice(start, stop)
    fixed = chain.fixed[start + tip : stop + tip + 1]
    ends = np.stack([chain.lower, chain.upper])[:, chain.variable[path]]
    ends = chain.scale[path] * ends + chain.offset[path]
    far = (np.abs(ends) > MAX_POSE_COORDINATE).any(axis=0)
    ends[0, far], ends[1, far] = -np.inf, np.inf
    fixed = rigid(fixed[:, :, :3], fixed[:, :, 3])
    return PathElements(fixed, chain.prismatic[path], ends.min(0), ends.max(0))


def rigid(rotations: Array, positions: Array) -> Array:
    """Return transforms (b, 4, 4) of rotations (b, 3, 3) and positions (b, 3)."""
    T = np.zeros((len(positions), 4, 4))
    T[:, :3, :3], T[:, :3, 3], T[:, 3, 3] = rotations, positions, 1.0
    return T


def motions(prismatic: bool, values: Array) -> Array:
    """Return the transforms (..., 4, 4) of an element at joint positions (...)."""
    T = np.zeros((*values.shape, 4, 4))
    T[..., range(4), range(4)] = 1.0
    if prismatic:
        T[..., 2, 3] = values
    else:
        T[..., 0, 0] = T[..., 1, 1] = np.cos(values)
        T[..., 1, 0] = np.sin(values)
        T[..., 0, 1] = -T[..., 1, 0]
    return T


def poses(elements: PathElements, shares: Array) -> Array:
    """Return the poses of the last element and of the tip at b configurations.

    Args:
        elements: Path.
        shares: (b, m) position of each element as a share of its range, from 0 (lower limit) to 1
            (upper limit). The range of an unlimited element is -pi to pi.

    Returns:
        (2, b, 4, 4): the pose of the last element before its motion, in the frame of the first
        element before its motion; and the pose of the tip in the base frame.
    """
    bounded = np.isfinite(elements.lower) & np.isfinite(elements.upper)
    lower = np.where(bounded, elements.lower, -0.5 * TURN)
    values = lower + shares * (np.where(bounded, elements.upper, 0.5 * TURN) - lower)
    T = np.broadcast_to(np.eye(4), (len(shares), 4, 4))
    inner = T
    for k, slides in enumerate(elements.prismatic):
        inner = T
        T = T @ motions(bool(slides), values[:, k]) @ elements.fixed[k + 1]
    return np.stack([inner, elements.fixed[0] @ T])


def end_axes(elements: PathElements) -> tuple[Array, Array]:
    """Return the first axis in the base frame and the last axis in the tip frame.

    The point on each axis is the point closest to the neighbouring axis, for example the center of
    a shoulder or a wrist. If an axis is parallel to the neighbouring axis, the point on the axis is
    chosen such that the points on the first and the last axis have the same height along the axis
    when all joints are in the middle of their ranges.

    Returns:
        For each axis an array (2, 3): the direction and the point.
    """
    before, after = elements.fixed[0], inverse(elements.fixed[-1])
    b = t = None
    if len(elements.prismatic) > 1:
        b = _closest_on_z(elements.fixed[1])
        t = _closest_on_z(inverse(elements.fixed[-2]))
    home = poses(elements, np.full((1, len(elements.prismatic)), 0.5))[0, 0]
    if t is None:
        t = float((inverse(home) @ [0.0, 0.0, b or 0.0, 1.0])[2])
    if b is None:
        b = float((home @ [0.0, 0.0, t, 1.0])[2])
    first = np.array([before[:3, 2], before[:3, 3] + b * before[:3, 2]])
    return first, np.array([after[:3, 2], after[:3, 3] + t * after[:3, 2]])


def _closest_on_z(T: Array) -> float | None:
    """Return the z coordinate of the point on the z axis that is closest to the z axis of T (4, 4).

    The result is None if the axes are parallel.
    """
    u, o = T[:3, 2], T[:3, 3]
    sine2 = u[:2] @ u[:2]
    return (
        None if sine2 < MAX_PARALLEL_SQUARED_SINE else float(o[2] - u[2] * (u[:2] @ o[:2]) / sine2)
    )


class Functional(NamedTuple):
    """The number ``row @ matrix(T) @ column`` of a pose T."""

    matrix: Callable[[Array], Array]  # function that maps (..., 4, 4) to (..., s, s)
    row: Array  # (s,) vector that depends on the geometry in the base frame
    column: Array  # (s,) vector that depends on the geometry in the tip frame
    scale: float  # approximate maximum value, from which rounding errors are estimated

    def __call__(self, T: Array) -> Array:
        """Return the values (...) of the functional at poses T (..., 4, 4)."""
        return np.asarray(self.matrix(T) @ self.column @ self.row)

    def __neg__(self) -> "Functional":
        """Return the functional with the opposite sign."""
        return self._replace(row=-self.row)


def conformal(T: Array) -> Array:
    """Return matrices (..., 5, 5) that transform vectors (p, 1, |p|^2) of points p.

    Args:
        T: (..., 4, 4) transforms of the points.
    """
    R, t = T[..., :3, :3], T[..., :3, 3]
    M = np.zeros((*T.shape[:-2], 5, 5))
    M[..., :4, :4] = T
    M[..., 4, :3] = 2.0 * (t[..., None, :] @ R)[..., 0, :]
    M[..., 4, 3] = (t * t).sum(-1)
    M[..., 4, 4] = 1.0
    return M


def screw(T: Array) -> Array:
    """Return matrices (..., 6, 6) that transform lines (a, p x a) with direction a through point p.

    Args:
        T: (..., 4, 4) transforms of the lines.
    """
    R, t = T[..., :3, :3], T[..., None, :3, 3]
    M = np.zeros((*T.shape[:-2], 6, 6))
    M[..., :3, :3] = M[..., 3:, 3:] = R
    M[..., 3:, :3] = np.cross(t, R.swapaxes(-1, -2)).swapaxes(-1, -2)
    return M


def squared_distance(base: Array, tip: Array) -> Functional:
    """Return the functional: squared distance between a base point (3,) and a tip point (3,)."""
    row = np.array([*(-2.0 * base), base @ base, 1.0])
    scale = (1.0 + np.linalg.norm(base) + np.linalg.norm(tip)) ** 2
    return Functional(conformal, row, np.array([*tip, 1.0, tip @ tip]), float(scale))


def height(base: Array, tip: Array) -> Functional:
    """Return the functional: height of a tip point over a base point along a unit vector.

    Args:
        base: (2, 3) unit vector and point in the base frame.
        tip: (3,) point in the tip frame.
    """
    n, b = base  # unit vector, point
    scale = 1.0 + float(np.linalg.norm(b) + np.linalg.norm(tip))
    row = np.array([*n, -n @ b, 0.0])
    return Functional(conformal, row, np.array([*tip, 1.0, 0.0]), scale)


def lean(direction: Array, axis: Array) -> Functional:
    """Return the functional: cosine of the angle between two unit vectors.

    Args:
        direction: (3,) unit vector in the base frame.
        axis: (3,) unit vector in the tip frame.
    """
    zero = np.zeros(3)
    return Functional(screw, np.array([*direction, *zero]), np.array([*axis, *zero]), 1.0)


def moment(base: Array, tip: Array) -> Functional:
    """Return the functional: mutual moment of two lines.

    The mutual moment is the distance of the lines times the sine of the angle between the lines,
    with a sign.

    Args:
        base: (2, 3) unit vector and point of a line in the base frame.
        tip: (2, 3) unit vector and point of a line in the tip frame.
    """
    (n, b), (a, p) = base, tip
    row, column = np.array([*np.cross(b, n), *n]), np.array([*a, *np.cross(p, a)])
    return Functional(screw, row, column, 1.0 + float(np.linalg.norm(b) + np.linalg.norm(p)))


class ChainProduct(NamedTuple):
    """A functional as a product over the d joints that change its value.

    The value is row @ motion @ between @ motion @ ... @ column, with one matrix ``motion`` for each
    joint.
    """

    functional: Functional
    row: Array  # (s,)
    between: Array  # (d - 1, s, s) matrices of the fixed transforms between the joints
    column: Array  # (s,)
    prismatic: NDArray[np.bool_]  # (d,)
    lower: Array  # (d,) lower limits
    upper: Array  # (d,) upper limits

    def values(self, q: Array) -> Array:
        """Return the values (b,) of the functional at joint positions (b, d)."""
        row = np.broadcast_to(self.row, (len(q), 1, len(self.row)))
        for j in range(q.shape[1]):
            row = row @ self.motion(j, q[:, j])
            row = row @ self.between[j] if j + 1 < q.shape[1] else row
        return (row @ self.column)[:, 0]

    def motion(self, j: int, values: Array) -> Array:
        """Return the matrices (..., s, s) of the motion of joint j at joint positions (...)."""
        return self.functional.matrix(motions(bool(self.prismatic[j]), values))


def chain_product(elements: PathElements, functional: Functional) -> ChainProduct:
    """Return a functional as a product over joints of a path.

    Joints at the start and at the end of the path that do not change the functional are omitted.
    """
    row, column = functional.row, functional.column
    fixed = [functional.matrix(T) for T in elements.fixed]
    slides = elements.prismatic
    endless = slides & ~np.isfinite(elements.upper - elements.lower)
    nothing = np.where(endless, 0.0, MIN_CHANGE * functional.scale)  # (m,)
    first, last = 0, len(elements.prismatic)
    row = row @ fixed[first]
    while first < last and _change(functional, row, slides[first], True) <= nothing[first]:
        first += 1
        row = row @ fixed[first]
    while first < last:
        column = fixed[last] @ column
        if _change(functional, column, slides[last - 1], False) > nothing[last - 1]:
            break
        last -= 1
    s = len(row)
    return ChainProduct(
        functional,
        row,
        np.array(fixed[first + 1 : last]).reshape(-1, s, s),
        column,
        slides[first:last],
        elements.lower[first:last],
        elements.upper[first:last],
    )


def _change(functional: Functional, vector: Array, prismatic: bool, is_row: bool) -> float:
    """Return the maximum change of a vector that is multiplied by the motion of a joint.

    Args:
        functional: Functional, which defines the matrix of the motion.
        vector: (s,) row that is multiplied from the right, or column multiplied from the left.
        prismatic: Whether the joint is prismatic.
        is_row: Whether the vector is a row.
    """
    matrices = functional.matrix(motions(prismatic, TURN * THIRDS))  # (3, s, s)
    moved = vector @ matrices if is_row else matrices @ vector
    return float(np.abs(moved - vector).max())
