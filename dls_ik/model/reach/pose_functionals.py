"""Functionals of a pose that are linear in a matrix of the pose, joint by joint."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.types import Array, Chain
from dls_ik.model.rotations import FARTHEST, inverse

PARALLEL = 1e-9  # squared sine of the angle between axes
TURN = 2.0 * np.pi


class Elements(NamedTuple):
    """m elements, each free within its own range, whatever else its variable drives."""

    fixed: Array  # (m + 1, 4, 4) before, between and after
    prismatic: NDArray[np.bool_]  # (m,)
    lower: Array  # (m,) [rad or m]
    upper: Array  # (m,)

    @property
    def length(self) -> float:
        """How far the tip can be from the base at most [m], not sharply."""
        slides = np.maximum(np.abs(self.lower), np.abs(self.upper))[self.prismatic]
        slides = slides[np.isfinite(slides)]
        return float(np.linalg.norm(self.fixed[:, :3, 3], axis=1).sum() + slides.sum())

    def scaled(self, factor: float) -> "Elements":
        """The same with all lengths multiplied."""
        fixed = self.fixed.copy()
        fixed[:, :3, 3] *= factor
        factors = np.where(self.prismatic, factor, 1.0)
        return Elements(fixed, self.prismatic, self.lower * factors, self.upper * factors)

    def split(self, k: int) -> tuple["Elements", "Elements"]:
        """Down to the frame of element k, and from there on."""
        _, prismatic, lower, upper = self
        fixed = np.concatenate([np.eye(4)[None], self.fixed[k + 1 :]])
        before = Elements(self.fixed[: k + 1], prismatic[:k], lower[:k], upper[:k])
        return before, Elements(fixed, prismatic[k:], lower[k:], upper[k:])


def elements_of(chain: Chain, tip: int) -> Elements:
    """The path to a tip, each element free within the limits of the variable that drives it.

    Without any where a limit is so far away that lengths would be lost beside it.
    """
    start, stop = chain.first[tip : tip + 2]
    path = slice(start, stop)
    fixed = chain.fixed[start + tip : stop + tip + 1]
    ends = np.stack([chain.lower, chain.upper])[:, chain.variable[path]]
    ends = chain.scale[path] * ends + chain.offset[path]
    far = (np.abs(ends) > FARTHEST).any(axis=0)
    ends[0, far], ends[1, far] = -np.inf, np.inf
    fixed = rigid(fixed[:, :, :3], fixed[:, :, 3])
    return Elements(fixed, chain.prismatic[path], ends.min(0), ends.max(0))


def rigid(rotations: Array, positions: Array) -> Array:
    """Transforms (b, 4, 4) from (b, 3, 3) and (b, 3)."""
    T = np.zeros((len(positions), 4, 4))
    T[:, :3, :3], T[:, :3, 3], T[:, 3, 3] = rotations, positions, 1.0
    return T


def motions(prismatic: bool, values: Array) -> Array:
    """The transforms (..., 4, 4) of an element at its values (...)."""
    T = np.zeros((*values.shape, 4, 4))
    T[..., range(4), range(4)] = 1.0
    if prismatic:
        T[..., 2, 3] = values
    else:
        T[..., 0, 0] = T[..., 1, 1] = np.cos(values)
        T[..., 1, 0] = np.sin(values)
        T[..., 0, 1] = -T[..., 1, 0]
    return T


def poses(elements: Elements, shares: Array) -> Array:
    """The last element's frame in the first one's and the tip in the base.

    Args:
        shares: (b, m) 0 to 1, from the lower to the upper end of each range.

    Returns:
        (2, b, 4, 4).
    """
    known = np.isfinite(elements.lower) & np.isfinite(elements.upper)
    lower = np.where(known, elements.lower, -0.5 * TURN)
    values = lower + shares * (np.where(known, elements.upper, 0.5 * TURN) - lower)
    T = np.broadcast_to(np.eye(4), (len(shares), 4, 4))
    inner = T
    for k, slides in enumerate(elements.prismatic):
        inner = T
        T = T @ motions(bool(slides), values[:, k]) @ elements.fixed[k + 1]
    return np.stack([inner, elements.fixed[0] @ T])


def end_axes(elements: Elements) -> tuple[Array, Array]:
    """The first axis in the base frame and the last one in the tip's: (2, 3) direction and point.

    The points are where these axes come nearest to the ones next to them, so that all the axes that
    meet in a shoulder or a wrist meet there; where parallel axes leave it open, one is beside the
    other in the middle of the ranges.
    """
    before, after = elements.fixed[0], inverse(elements.fixed[-1])
    b = t = None
    if len(elements.prismatic) > 1:
        b = _nearest_to(elements.fixed[1])
        t = _nearest_to(inverse(elements.fixed[-2]))
    home = poses(elements, np.full((1, len(elements.prismatic)), 0.5))[0, 0]
    if t is None:
        t = float((inverse(home) @ [0.0, 0.0, b or 0.0, 1.0])[2])
    if b is None:
        b = float((home @ [0.0, 0.0, t, 1.0])[2])
    first = np.array([before[:3, 2], before[:3, 3] + b * before[:3, 2]])
    return first, np.array([after[:3, 2], after[:3, 3] + t * after[:3, 2]])


def _nearest_to(T: Array) -> float | None:
    """Where on z the z axis of a frame T (4, 4) comes nearest; None where it is parallel."""
    u, o = T[:3, 2], T[:3, 3]
    sine2 = u[:2] @ u[:2]
    return None if sine2 < PARALLEL else float(o[2] - u[2] * (u[:2] @ o[:2]) / sine2)


IRRELEVANT = 1e-13  # of the form's scale, which is the arm's length at least
THIRDS = np.array([0.0, 1.0, -1.0]) / 3.0


class Form(NamedTuple):
    """The number ``row @ matrix(T) @ column`` of a pose T."""

    matrix: Callable[[Array], Array]  # (..., 4, 4) to (..., s, s)
    row: Array  # (s,) what of the base
    column: Array  # (s,) what of the tip
    scale: float  # the most that the number can be, about, for rounding errors


def conformal(T: Array) -> Array:
    """The (..., 5, 5) matrices that move (p, 1, |p|^2), p a point, by T (..., 4, 4)."""
    R, t = T[..., :3, :3], T[..., :3, 3]
    M = np.zeros((*T.shape[:-2], 5, 5))
    M[..., :4, :4] = T
    M[..., 4, :3] = 2.0 * (t[..., None, :] @ R)[..., 0, :]
    M[..., 4, 3] = (t * t).sum(-1)
    M[..., 4, 4] = 1.0
    return M


def screw(T: Array) -> Array:
    """The (..., 6, 6) matrices that move a line (a, p x a) along a through p by T (..., 4, 4)."""
    R, t = T[..., :3, :3], T[..., None, :3, 3]
    M = np.zeros((*T.shape[:-2], 6, 6))
    M[..., :3, :3] = M[..., 3:, 3:] = R
    M[..., 3:, :3] = np.cross(t, R.swapaxes(-1, -2)).swapaxes(-1, -2)
    return M


def value(form: Form, T: Array) -> Array:
    """The form (...) at poses T (..., 4, 4)."""
    found: Array = form.matrix(T) @ form.column @ form.row
    return found


def negative(form: Form) -> Form:
    """The form with the opposite sign."""
    return form._replace(row=-form.row)


def squared_distance(base: Array, tip: Array) -> Form:
    """Between a point (3,) of the base and one of the tip."""
    row = np.array([*(-2.0 * base), base @ base, 1.0])
    scale = (1.0 + np.linalg.norm(base) + np.linalg.norm(tip)) ** 2
    return Form(conformal, row, np.array([*tip, 1.0, tip @ tip]), float(scale))


def height(base: Array, tip: Array) -> Form:
    """Of a point (3,) of the tip above one of the base; base (2, 3): unit vector, point."""
    n, b = base
    scale = 1.0 + float(np.linalg.norm(b) + np.linalg.norm(tip))
    row = np.array([*n, -n @ b, 0.0])
    return Form(conformal, row, np.array([*tip, 1.0, 0.0]), scale)


def lean(direction: Array, axis: Array) -> Form:
    """The cosine of the angle between a unit vector (3,) of the base and one of the tip."""
    zero = np.zeros(3)
    return Form(screw, np.array([*direction, *zero]), np.array([*axis, *zero]), 1.0)


def moment(base: Array, tip: Array) -> Form:
    """Of a line of the base and one of the tip: their distance times the sine, with a sign.

    Args:
        base: (2, 3) unit vector and point, tip: (2, 3) likewise.
    """
    (n, b), (a, p) = base, tip
    row, column = np.array([*np.cross(b, n), *n]), np.array([*a, *np.cross(p, a)])
    return Form(screw, row, column, 1.0 + float(np.linalg.norm(b) + np.linalg.norm(p)))


class Product(NamedTuple):
    """A form as row @ motion @ between @ motion ... @ column, over d joints that matter."""

    form: Form
    row: Array  # (s,)
    between: Array  # (d - 1, s, s)
    column: Array  # (s,)
    prismatic: NDArray[np.bool_]  # (d,)
    lower: Array  # (d,)
    upper: Array  # (d,)


def reduced(elements: Elements, form: Form) -> Product:
    """Leave out the joints at either end that move nothing, such as those through a point."""
    row, column = form.row, form.column
    fixed = [form.matrix(T) for T in elements.fixed]
    slides = elements.prismatic
    endless = slides & ~np.isfinite(elements.upper - elements.lower)
    nothing = np.where(endless, 0.0, IRRELEVANT * form.scale)  # (m,)
    first, last = 0, len(elements.prismatic)
    row = row @ fixed[first]
    while first < last and _change(form, row, slides[first], before=True) <= nothing[first]:
        first += 1
        row = row @ fixed[first]
    while first < last:
        column = fixed[last] @ column
        if _change(form, column, slides[last - 1], before=False) > nothing[last - 1]:
            break
        last -= 1
    s = len(row)
    return Product(
        form,
        row,
        np.array(fixed[first + 1 : last]).reshape(-1, s, s),
        column,
        slides[first:last],
        elements.lower[first:last],
        elements.upper[first:last],
    )


def _change(form: Form, vector: Array, prismatic: bool, before: bool) -> float:
    """By how much a joint changes a row before it or a column after it."""
    matrices = motion(form, prismatic, TURN * THIRDS)  # (3, s, s), the first one at rest
    moved = vector @ matrices if before else matrices @ vector
    return float(np.abs(moved - vector).max())


def values(product: Product, q: Array) -> Array:
    """The form (b,) at joint values (b, d)."""
    row = np.broadcast_to(product.row, (len(q), 1, len(product.row)))
    for j in range(q.shape[1]):
        row = row @ motion(product.form, bool(product.prismatic[j]), q[:, j])
        row = row @ product.between[j] if j + 1 < q.shape[1] else row
    return (row @ product.column)[:, 0]


def motion(form: Form, prismatic: bool, values: Array) -> Array:
    """The matrices (..., s, s) of a joint at its values (...)."""
    return form.matrix(motions(prismatic, values))
