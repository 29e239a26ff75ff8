"""Numbers read off a pose that are linear in a matrix of the pose, joint by joint.

A rigid transform T has larger matrices that multiply as transforms do: :func:`conformal` moves
points together with their squared distance from the origin, :func:`screw` moves lines. Their
entries are affine in (cos q, sin q) of a revolute joint, and in (q, q^2) of a prismatic one. So is
every number ``row @ matrix(T) @ column``, in each joint of a chain separately. Lengths are in units
of the chain's length.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dls_ik.core.types import Array


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
