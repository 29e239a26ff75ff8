# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Functionals of a pose that are affine in the motion of each joint of a chain.

A functional is a number that depends on the pose T of the tip, such as the squared distance between
two points. A rigid transform T can be represented by a larger matrix such that products of matrices
represent products of transforms: :func:`conformal` matrices map points together with their squared
distance from the origin, and :func:`screw` matrices map lines. The entries of the matrix of a joint
motion are affine in (cos q, sin q) if the joint is revolute, and in (q, q^2) if it is prismatic,
where q is the joint position. A functional of the form ``row @ matrix(T) @ column`` is therefore
affine in these functions of each joint separately. :class:`ChainProduct` represents a functional as
a product over the joints that change its value. All lengths are in the same unit as the chain's.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.types import MAX_POSE_COORDINATE, Array, Chain
from dls_ik.model.joint import TURN
from dls_ik.model.rotations import inverse

# two axes count as parallel if the squared sine of their angle is at most this
MAX_PARALLEL_SQUARED_SINE = 1e-9
MIN_CHANGE = 1e-13  # smaller changes, relative to a functional's scale, count as rounding errors
THIRDS = np.array([0.0, 1.0, -1.0]) / 3.0  # three equally spaced angles, as fractions of a turn


class PathElements(NamedTuple):
    """The m moving joints (elements) on the path from the base to a tip.

    The joints are treated as independent even if some of them, such as a mimic joint and its
    master, have a common variable.
    """

    fixed: Array  # (m + 1, 4, 4) constant transforms before, between and after the elements
    prismatic: NDArray[np.bool_]  # (m,)
    lower: Array  # (m,) [rad or m]
    upper: Array  # (m,) [rad or m]

    @property
    def length(self) -> float:
        """Upper bound of the distance between base and tip, without unlimited prismatic joints.

        The bound is the sum of the lengths of all fixed translations and of the largest positions
        of all prismatic joints with limits.
        """
        slides = np.maximum(np.abs(self.lower), np.abs(self.upper))[self.prismatic]
        slides = slides[np.isfinite(slides)]
        return float(np.linalg.norm(self.fixed[:, :3, 3], axis=1).sum() + slides.sum())

    def scaled(self, factor: float) -> "PathElements":
        """Return the path after multiplying all its lengths by a factor."""
        fixed = self.fixed.copy()
        fixed[:, :3, 3] *= factor
        factors = np.where(self.prismatic, factor, 1.0)
        return PathElements(fixed, self.prismatic, self.lower * factors, self.upper * factors)

    def split(self, k: int) -> tuple["PathElements", "PathElements"]:
        """Split the path at joint k into a path from the base and a path to the tip.

        The tip frame of the first path is the base frame of the second path: the frame of joint k
        before its motion. Joint k belongs to the second path.
        """
        _, prismatic, lower, upper = self
        fixed = np.concatenate([np.eye(4)[None], self.fixed[k + 1 :]])
        before = PathElements(self.fixed[: k + 1], prismatic[:k], lower[:k], upper[:k])
        return before, PathElements(fixed, prismatic[k:], lower[k:], upper[k:])


def path_elements(chain: Chain, tip: int) -> PathElements:
    """Return the moving joints on the path to a tip, and the limits of their positions.

    A joint with a limit beyond +-`MAX_POSE_COORDINATE` counts as unlimited, because rounding
    errors at such
    positions would be larger than the arm.

    Args:
        chain: Chain of the robot.
        tip: Index of the tip.
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
    """Return the rigid transforms (b, 4, 4) with rotations (b, 3, 3) and positions (b, 3)."""
    T = np.zeros((len(positions), 4, 4))
    T[:, :3, :3], T[:, :3, 3], T[:, 3, 3] = rotations, positions, 1.0
    return T


def motions(prismatic: bool, values: Array) -> Array:
    """Return the transforms (..., 4, 4) of joint motions about or along the z axis.

    Args:
        prismatic: Whether the joint slides along z instead of rotating about z.
        values: (...) joint positions [rad or length unit].
    """
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
    """Return the poses of the last joint and of the tip at b configurations.

    Args:
        elements: Path.
        shares: (b, m) joint positions, scaled such that 0 is the lower limit and 1 is the upper
            limit. The range of an unlimited joint is -pi to pi.

    Returns:
        Two poses at each configuration, (2, b, 4, 4): pose of the last joint's frame before its
        motion, in the first joint's frame before its motion; and pose of the tip in the base frame.
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
    """Return the first joint axis in the base frame and the last joint axis in the tip frame.

    Each axis is given by its direction and a point. The point on the first axis is the one closest
    to the second axis, for example the center of a shoulder. The point on the last axis is the one
    closest to the axis before, for example the center of a wrist. If one of these pairs of axes is
    parallel, its point is chosen such that both points have the same height along this axis when
    all joints are in the middle of their ranges.

    Returns:
        An array (2, 3) with direction and point for each of the two axes.
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
    """Return the z coordinate of the point on the z axis that is closest to another axis.

    The result is None if the axes are parallel.

    Args:
        T: (4, 4) transform; the other axis is the z axis of this frame.
    """
    u, o = T[:3, 2], T[:3, 3]
    sine2 = u[:2] @ u[:2]
    return (
        None if sine2 < MAX_PARALLEL_SQUARED_SINE else float(o[2] - u[2] * (u[:2] @ o[:2]) / sine2)
    )


class Functional(NamedTuple):
    """A number ``row @ matrix(T) @ column`` that depends on a pose T (see the module docstring)."""

    matrix: Callable[[Array], Array]  # conformal or screw: (..., 4, 4) to (..., s, s), s 5 or 6
    row: Array  # (s,) left factor; depends on the point or line of the base
    column: Array  # (s,) right factor; depends on the point or line of the tip
    scale: float  # approximate maximum value, from which rounding errors are estimated

    def __call__(self, T: Array) -> Array:
        """Return the values (...) of the functional at poses T (..., 4, 4)."""
        return np.asarray(self.matrix(T) @ self.column @ self.row)

    def __neg__(self) -> "Functional":
        """Return the functional with the opposite sign."""
        return self._replace(row=-self.row)


def conformal(T: Array) -> Array:
    """Return matrices (..., 5, 5) that apply transforms to points, given as (p, 1, |p|^2).

    A matrix maps the vector (5,) of a point p to that of the point T p.

    Args:
        T: (..., 4, 4) transforms.
    """
    R, t = T[..., :3, :3], T[..., :3, 3]
    M = np.zeros((*T.shape[:-2], 5, 5))
    M[..., :4, :4] = T
    M[..., 4, :3] = 2.0 * (t[..., None, :] @ R)[..., 0, :]
    M[..., 4, 3] = (t * t).sum(-1)
    M[..., 4, 4] = 1.0
    return M


def screw(T: Array) -> Array:
    """Return matrices (..., 6, 6) that apply transforms to lines, given as (a, p x a).

    A line has the unit direction a (3,) and contains the point p (3,).

    Args:
        T: (..., 4, 4) transforms.
    """
    R, t = T[..., :3, :3], T[..., None, :3, 3]
    M = np.zeros((*T.shape[:-2], 6, 6))
    M[..., :3, :3] = M[..., 3:, 3:] = R
    M[..., 3:, :3] = np.cross(t, R.swapaxes(-1, -2)).swapaxes(-1, -2)
    return M


def squared_distance(base: Array, tip: Array) -> Functional:
    """Return the squared distance of two points as a functional of the tip pose.

    Args:
        base: (3,) point in the base frame.
        tip: (3,) point in the tip frame.
    """
    row = np.array([*(-2.0 * base), base @ base, 1.0])
    scale = (1.0 + np.linalg.norm(base) + np.linalg.norm(tip)) ** 2
    return Functional(conformal, row, np.array([*tip, 1.0, tip @ tip]), float(scale))


def height(base: Array, tip: Array) -> Functional:
    """Return the height of a tip point above a base point as a functional of the tip pose.

    The height is the component of the vector from the base point to the tip point along a unit
    vector in the base frame.

    Args:
        base: (2, 3) unit vector and point in the base frame.
        tip: (3,) point in the tip frame.
    """
    n, b = base  # unit vector, point
    scale = 1.0 + float(np.linalg.norm(b) + np.linalg.norm(tip))
    row = np.array([*n, -n @ b, 0.0])
    return Functional(conformal, row, np.array([*tip, 1.0, 0.0]), scale)


def lean(direction: Array, axis: Array) -> Functional:
    """Return the cosine of the angle between two unit vectors as a functional of the tip pose.

    Args:
        direction: (3,) unit vector in the base frame.
        axis: (3,) unit vector in the tip frame.
    """
    zero = np.zeros(3)
    return Functional(screw, np.array([*direction, *zero]), np.array([*axis, *zero]), 1.0)


def moment(base: Array, tip: Array) -> Functional:
    """Return the mutual moment of two lines as a functional of the tip pose.

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
    """A functional as a product over the d joints of a path that change its value.

    The value is row @ motion[0] @ between[0] @ motion[1] @ ... @ motion[d - 1] @ column, where
    motion[j] is the matrix (s, s) of the motion of joint j.
    """

    functional: Functional
    row: Array  # (s,) row of the functional times the matrices before the first of the d joints
    between: Array  # (d - 1, s, s) matrices of the fixed transforms between the joints
    column: Array  # (s,) matrices after the last of the d joints times column of the functional
    prismatic: NDArray[np.bool_]  # (d,)
    lower: Array  # (d,) lower limits [rad or length unit]
    upper: Array  # (d,) upper limits [rad or length unit]

    def values(self, q: Array) -> Array:
        """Return the values (b,) of the functional at joint positions (b, d)."""
        row = np.broadcast_to(self.row, (len(q), 1, len(self.row)))
        for j in range(q.shape[1]):
            row = row @ self.motion(j, q[:, j])
            row = row @ self.between[j] if j + 1 < q.shape[1] else row
        return (row @ self.column)[:, 0]

    def motion(self, j: int, values: Array) -> Array:
        """Return the conformal or screw matrices (..., s, s) of joint j at joint positions.

        The size s is 5 for conformal and 6 for screw matrices, see :class:`Functional`.

        Args:
            j: Index of the joint.
            values: (...) positions of the joint [rad or length unit].
        """
        return self.functional.matrix(motions(bool(self.prismatic[j]), values))


def chain_product(elements: PathElements, functional: Functional) -> ChainProduct:
    """Return a functional as a product over the joints of a path.

    Joints at the start or at the end of the path are omitted if they do not change the functional.

    Args:
        elements: Path.
        functional: Functional of the tip pose.
    """
    row, column = functional.row, functional.column
    fixed = [functional.matrix(T) for T in elements.fixed]
    slides = elements.prismatic
    endless = slides & ~np.isfinite(elements.upper - elements.lower)
    # (m,) maximum change that counts as no change
    nothing = np.where(endless, 0.0, MIN_CHANGE * functional.scale)
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
    """Return how much a joint motion changes a row or column vector of a functional.

    The result is the largest magnitude of a component of (vector @ motion - vector) for a row, or
    of (motion @ vector - vector) for a column, at three joint positions. Apart from rounding
    errors, the result is zero only if the joint does not change the vector at any position.

    Args:
        functional: Functional, which defines the matrix of a motion.
        vector: (s,) row or column.
        prismatic: Whether the joint is prismatic.
        is_row: Whether the vector is a row.
    """
    matrices = functional.matrix(motions(prismatic, TURN * THIRDS))  # (3, s, s)
    moved = vector @ matrices if is_row else matrices @ vector
    return float(np.abs(moved - vector).max())
