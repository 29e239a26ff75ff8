# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Functionals of a pose that are affine in the motion of each joint of a chain.

A rigid transform T has larger matrix representations that multiply as transforms do:
:func:`conformal` maps points together with their squared distance from the origin, :func:`screw`
maps lines. Their entries are affine in (cos q, sin q) of a revolute joint and in (q, q^2) of a
prismatic joint. A number ``row @ matrix(T) @ column`` is therefore affine in each joint separately;
:class:`ChainProduct` is such a number, over the joints that change it. Lengths are in the length
unit of the chain.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.types import Array, Chain
from dls_ik.model.joint import TURN
from dls_ik.model.rotations import FARTHEST, inverse

PARALLEL = 1e-9  # squared sine of the angle below which axes count as parallel
MIN_CHANGE = 1e-13  # smaller changes, relative to the functional's scale, count as none
THIRDS = np.array([0.0, 1.0, -1.0]) / 3.0


class PathElements(NamedTuple):
    """The m elements of a path; each moves in its own range, even if elements share a variable."""

    fixed: Array  # (m + 1, 4, 4) transforms before, between and after the elements
    prismatic: NDArray[np.bool_]  # (m,)
    lower: Array  # (m,) [rad or m]
    upper: Array  # (m,) [rad or m]

    @property
    def length(self) -> float:
        """Upper bound on the distance between base and tip [m], not tight."""
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
        """Return the path to the frame of element k, and the path from there to the tip."""
        _, prismatic, lower, upper = self
        fixed = np.concatenate([np.eye(4)[None], self.fixed[k + 1 :]])
        before = PathElements(self.fixed[: k + 1], prismatic[:k], lower[:k], upper[:k])
        return before, PathElements(fixed, prismatic[k:], lower[k:], upper[k:])


def path_elements(chain: Chain, tip: int) -> PathElements:
    """Return the path to a tip; each element may move within the limits of its variable.

    An element with a limit beyond `FARTHEST` counts as unlimited, because rounding errors would
    exceed the lengths of the arm.
    """
    start, stop = chain.first[tip : tip + 2]
    path = slice(start, stop)
    fixed = chain.fixed[start + tip : stop + tip + 1]
    ends = np.stack([chain.lower, chain.upper])[:, chain.variable[path]]
    ends = chain.scale[path] * ends + chain.offset[path]
    far = (np.abs(ends) > FARTHEST).any(axis=0)
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
    """Return the last element's pose in the first element's frame, and the tip's in the base.

    Args:
        elements: Path.
        shares: (b, m) position of each element as a share of its range, from 0 (lower) to 1.

    Returns:
        Both poses, (2, b, 4, 4).
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

    The points on the axes are those closest to the neighbouring axes, for example the center of a
    shoulder or a wrist. If the axes are parallel, the points are at equal height at mid-range.

    Returns:
        For each axis its direction and a point, (2, 3).
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
    """Return the z coordinate closest to the z axis of T (4, 4), or None for parallel axes."""
    u, o = T[:3, 2], T[:3, 3]
    sine2 = u[:2] @ u[:2]
    return None if sine2 < PARALLEL else float(o[2] - u[2] * (u[:2] @ o[:2]) / sine2)


class Functional(NamedTuple):
    """The number ``row @ matrix(T) @ column`` of a pose T."""

    matrix: Callable[[Array], Array]  # (..., 4, 4) to (..., s, s)
    row: Array  # (s,) vector of the base
    column: Array  # (s,) vector of the tip
    scale: float  # approximate maximum value, for rounding errors

    def __call__(self, T: Array) -> Array:
        """Return values (...) at poses T (..., 4, 4)."""
        return np.asarray(self.matrix(T) @ self.column @ self.row)

    def __neg__(self) -> "Functional":
        """Return the functional with the opposite sign."""
        return self._replace(row=-self.row)


def conformal(T: Array) -> Array:
    """Return matrices (..., 5, 5) that map (p, 1, |p|^2) of a point p by T (..., 4, 4)."""
    R, t = T[..., :3, :3], T[..., :3, 3]
    M = np.zeros((*T.shape[:-2], 5, 5))
    M[..., :4, :4] = T
    M[..., 4, :3] = 2.0 * (t[..., None, :] @ R)[..., 0, :]
    M[..., 4, 3] = (t * t).sum(-1)
    M[..., 4, 4] = 1.0
    return M


def screw(T: Array) -> Array:
    """Return matrices (..., 6, 6) that map a line (a, p x a) by T (..., 4, 4)."""
    R, t = T[..., :3, :3], T[..., None, :3, 3]
    M = np.zeros((*T.shape[:-2], 6, 6))
    M[..., :3, :3] = M[..., 3:, 3:] = R
    M[..., 3:, :3] = np.cross(t, R.swapaxes(-1, -2)).swapaxes(-1, -2)
    return M


def squared_distance(base: Array, tip: Array) -> Functional:
    """Return the squared distance of a point (3,) of the base and a point (3,) of the tip."""
    row = np.array([*(-2.0 * base), base @ base, 1.0])
    scale = (1.0 + np.linalg.norm(base) + np.linalg.norm(tip)) ** 2
    return Functional(conformal, row, np.array([*tip, 1.0, tip @ tip]), float(scale))


def height(base: Array, tip: Array) -> Functional:
    """Return the height of a point (3,) of the tip along a line (2, 3) of the base."""
    n, b = base  # unit vector, point
    scale = 1.0 + float(np.linalg.norm(b) + np.linalg.norm(tip))
    row = np.array([*n, -n @ b, 0.0])
    return Functional(conformal, row, np.array([*tip, 1.0, 0.0]), scale)


def lean(direction: Array, axis: Array) -> Functional:
    """Return the cosine of the angle between a unit vector (3,) of the base and one of the tip."""
    zero = np.zeros(3)
    return Functional(screw, np.array([*direction, *zero]), np.array([*axis, *zero]), 1.0)


def moment(base: Array, tip: Array) -> Functional:
    """Return the mutual moment of lines (2, 3): distance times sine of the angle, with sign."""
    (n, b), (a, p) = base, tip
    row, column = np.array([*np.cross(b, n), *n]), np.array([*a, *np.cross(p, a)])
    return Functional(screw, row, column, 1.0 + float(np.linalg.norm(b) + np.linalg.norm(p)))


class ChainProduct(NamedTuple):
    """A functional as row @ motion @ between @ motion ... @ column, over the d relevant joints."""

    functional: Functional
    row: Array  # (s,)
    between: Array  # (d - 1, s, s)
    column: Array  # (s,)
    prismatic: NDArray[np.bool_]  # (d,)
    lower: Array  # (d,)
    upper: Array  # (d,)

    def values(self, q: Array) -> Array:
        """Return the values (b,) at joint positions (b, d)."""
        row = np.broadcast_to(self.row, (len(q), 1, len(self.row)))
        for j in range(q.shape[1]):
            row = row @ self.motion(j, q[:, j])
            row = row @ self.between[j] if j + 1 < q.shape[1] else row
        return (row @ self.column)[:, 0]

    def motion(self, j: int, values: Array) -> Array:
        """Return the matrices (..., s, s) of joint j at joint positions (...)."""
        return self.functional.matrix(motions(bool(self.prismatic[j]), values))


def chain_product(elements: PathElements, functional: Functional) -> ChainProduct:
    """Return a functional as a product without the joints at either end that do not change it."""
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
    """Return the maximum change of a row or a column by the motion of a joint next to it."""
    matrices = functional.matrix(motions(prismatic, TURN * THIRDS))  # (3, s, s)
    moved = vector @ matrices if is_row else matrices @ vector
    return float(np.abs(moved - vector).max())
