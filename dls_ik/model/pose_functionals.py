"""Functionals of a pose: numbers that are linear in a matrix of the pose, joint by joint.

A rigid transform T has larger matrices that multiply as transforms do: :func:`conformal` moves
points together with their squared distance from the origin, :func:`screw` moves lines. Their
entries are affine in (cos q, sin q) of a revolute joint, and in (q, q^2) of a prismatic one, and so
is every number ``row @ matrix(T) @ column``, in each joint of a chain separately: a
:class:`ChainProduct` over the joints that matter. Lengths are in units of the chain's length.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.types import Array, Chain
from dls_ik.model.joint import TURN
from dls_ik.model.rotations import FARTHEST, inverse

PARALLEL = 1e-9  # squared sine of the angle between axes
IRRELEVANT = 1e-13  # of a functional's scale, which is the arm's length at least
THIRDS = np.array([0.0, 1.0, -1.0]) / 3.0


class PathElements(NamedTuple):
    """The m elements of a path, each free within its own range, whatever variable drives it."""

    fixed: Array  # (m + 1, 4, 4) before, between and after
    prismatic: NDArray[np.bool_]  # (m,)
    lower: Array  # (m,) [rad or m]
    upper: Array  # (m,)

    @property
    def length(self) -> float:
        """Bound on the distance from base to tip [m], not sharp."""
        slides = np.maximum(np.abs(self.lower), np.abs(self.upper))[self.prismatic]
        slides = slides[np.isfinite(slides)]
        return float(np.linalg.norm(self.fixed[:, :3, 3], axis=1).sum() + slides.sum())

    def scaled(self, factor: float) -> "PathElements":
        """Multiply all lengths."""
        fixed = self.fixed.copy()
        fixed[:, :3, 3] *= factor
        factors = np.where(self.prismatic, factor, 1.0)
        return PathElements(fixed, self.prismatic, self.lower * factors, self.upper * factors)

    def split(self, k: int) -> tuple["PathElements", "PathElements"]:
        """Split into the path down to the frame of element k, and from there on."""
        _, prismatic, lower, upper = self
        fixed = np.concatenate([np.eye(4)[None], self.fixed[k + 1 :]])
        before = PathElements(self.fixed[: k + 1], prismatic[:k], lower[:k], upper[:k])
        return before, PathElements(fixed, prismatic[k:], lower[k:], upper[k:])


def path_elements(chain: Chain, tip: int) -> PathElements:
    """Extract the path to a tip, each element free within the limits of its variable.

    An element is unlimited if a limit is so far away that lengths would be lost beside it.
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
    """Combine (b, 3, 3) and (b, 3) to transforms (b, 4, 4)."""
    T = np.zeros((len(positions), 4, 4))
    T[:, :3, :3], T[:, :3, 3], T[:, 3, 3] = rotations, positions, 1.0
    return T


def motions(prismatic: bool, values: Array) -> Array:
    """Compute the transforms (..., 4, 4) of an element at its values (...)."""
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
    """Compute the last element's frame in the first one's, and the tip in the base.

    Args:
        shares: (b, m) 0 to 1, from the lower to the upper end of each range.

    Returns:
        (2, b, 4, 4).
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
    """Find the first axis in the base frame and the last one in the tip's: direction, point (2, 3).

    The points are where these axes come nearest to the ones next to them, so that the axes that
    meet in a shoulder or a wrist meet there. For parallel axes the points are beside each other in
    the middle of the ranges.
    """
    before, after = elements.fixed[0], inverse(elements.fixed[-1])
    b = t = None
    if len(elements.prismatic) > 1:
        b = _nearest_on_z(elements.fixed[1])
        t = _nearest_on_z(inverse(elements.fixed[-2]))
    home = poses(elements, np.full((1, len(elements.prismatic)), 0.5))[0, 0]
    if t is None:
        t = float((inverse(home) @ [0.0, 0.0, b or 0.0, 1.0])[2])
    if b is None:
        b = float((home @ [0.0, 0.0, t, 1.0])[2])
    first = np.array([before[:3, 2], before[:3, 3] + b * before[:3, 2]])
    return first, np.array([after[:3, 2], after[:3, 3] + t * after[:3, 2]])


def _nearest_on_z(T: Array) -> float | None:
    """Find the place on z that is nearest to the z axis of T (4, 4); None if parallel."""
    u, o = T[:3, 2], T[:3, 3]
    sine2 = u[:2] @ u[:2]
    return None if sine2 < PARALLEL else float(o[2] - u[2] * (u[:2] @ o[:2]) / sine2)


class Functional(NamedTuple):
    """The number ``row @ matrix(T) @ column`` of a pose T."""

    matrix: Callable[[Array], Array]  # (..., 4, 4) to (..., s, s)
    row: Array  # (s,) of the base
    column: Array  # (s,) of the tip
    scale: float  # about the greatest value, for rounding errors

    def __call__(self, T: Array) -> Array:
        """Evaluate (...) at poses T (..., 4, 4)."""
        return np.asarray(self.matrix(T) @ self.column @ self.row)

    def __neg__(self) -> "Functional":
        """Return the functional with the opposite sign."""
        return self._replace(row=-self.row)


def conformal(T: Array) -> Array:
    """Compute the (..., 5, 5) matrices that move (p, 1, |p|^2) of a point p by T (..., 4, 4)."""
    R, t = T[..., :3, :3], T[..., :3, 3]
    M = np.zeros((*T.shape[:-2], 5, 5))
    M[..., :4, :4] = T
    M[..., 4, :3] = 2.0 * (t[..., None, :] @ R)[..., 0, :]
    M[..., 4, 3] = (t * t).sum(-1)
    M[..., 4, 4] = 1.0
    return M


def screw(T: Array) -> Array:
    """Compute the (..., 6, 6) matrices that move a line (a, p x a) by T (..., 4, 4)."""
    R, t = T[..., :3, :3], T[..., None, :3, 3]
    M = np.zeros((*T.shape[:-2], 6, 6))
    M[..., :3, :3] = M[..., 3:, 3:] = R
    M[..., 3:, :3] = np.cross(t, R.swapaxes(-1, -2)).swapaxes(-1, -2)
    return M


def squared_distance(base: Array, tip: Array) -> Functional:
    """Return the squared distance between a point (3,) of the base and one of the tip."""
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
    """Return the cosine of the angle between unit vectors (3,) of the base and of the tip."""
    zero = np.zeros(3)
    return Functional(screw, np.array([*direction, *zero]), np.array([*axis, *zero]), 1.0)


def moment(base: Array, tip: Array) -> Functional:
    """Return the mutual moment of lines (2, 3): distance times sine of the angle, signed."""
    (n, b), (a, p) = base, tip
    row, column = np.array([*np.cross(b, n), *n]), np.array([*a, *np.cross(p, a)])
    return Functional(screw, row, column, 1.0 + float(np.linalg.norm(b) + np.linalg.norm(p)))


class ChainProduct(NamedTuple):
    """A functional as row @ motion @ between @ motion ... @ column, over d joints that matter."""

    functional: Functional
    row: Array  # (s,)
    between: Array  # (d - 1, s, s)
    column: Array  # (s,)
    prismatic: NDArray[np.bool_]  # (d,)
    lower: Array  # (d,)
    upper: Array  # (d,)

    def values(self, q: Array) -> Array:
        """Evaluate (b,) at joint values (b, d)."""
        row = np.broadcast_to(self.row, (len(q), 1, len(self.row)))
        for j in range(q.shape[1]):
            row = row @ self.motion(j, q[:, j])
            row = row @ self.between[j] if j + 1 < q.shape[1] else row
        return (row @ self.column)[:, 0]

    def motion(self, j: int, values: Array) -> Array:
        """Compute the matrices (..., s, s) of joint j at its values (...)."""
        return self.functional.matrix(motions(bool(self.prismatic[j]), values))


def chain_product(elements: PathElements, functional: Functional) -> ChainProduct:
    """Leave out the joints at either end that change nothing, such as those through a point."""
    row, column = functional.row, functional.column
    fixed = [functional.matrix(T) for T in elements.fixed]
    slides = elements.prismatic
    endless = slides & ~np.isfinite(elements.upper - elements.lower)
    nothing = np.where(endless, 0.0, IRRELEVANT * functional.scale)  # (m,)
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
    """Measure by how much a joint changes a row before it or a column behind it."""
    matrices = functional.matrix(motions(prismatic, TURN * THIRDS))  # (3, s, s), first at rest
    moved = vector @ matrices if is_row else matrices @ vector
    return float(np.abs(moved - vector).max())
