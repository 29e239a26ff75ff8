"""Forms: numbers of a pose that are linear in a matrix of the pose, joint by joint.

A rigid transform T has larger matrices that multiply as transforms do: :func:`conformal` moves
points together with their squared distance from the origin, :func:`screw` moves lines. Their
entries are affine in (cos q, sin q) of a revolute joint, and in (q, q^2) of a prismatic one. So is
every number ``row @ matrix(T) @ column``, in each joint of a chain separately: a :class:`Product`
over the joints that matter to it. Lengths are in units of the chain's length.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.types import Array
from dls_ik.model.reach.elements import TURN, Elements, motions

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
