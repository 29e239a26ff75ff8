"""A form of a chain as a product of matrices, over the joints that matter to it."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.types import Array
from dls_ik.model.elements import TURN, Elements, motions
from dls_ik.model.forms import Form

IRRELEVANT = 1e-13  # of the form's scale, which is the arm's length at least
THIRDS = np.array([0.0, 1.0, -1.0]) / 3.0


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
