"""The state of searches, as kernels step it."""

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.search import ATTEMPTS, FOUND, NOTHING, STATE, STEPS
from dls_ik.core.types import Array, Rows


def new_rows(b: int, n: int, random_seed: int) -> Rows:
    """Return the state of b searches that have not begun."""
    counts = np.zeros((b, 4), np.int64)
    counts[:, STATE] = random_seed
    return Rows(counts, np.full((b, n), np.nan), np.full((b, 3), np.nan))


def some_rows(rows: Rows, which: slice | NDArray[np.intp]) -> Rows:
    """Some of them: views for a slice, copies for indices."""
    return Rows._make(array[which] for array in rows)


def attempts(rows: Rows) -> NDArray[np.int64]:
    """(b,) begun; none for rows that were passed over."""
    made: NDArray[np.int64] = rows.counts[:, ATTEMPTS]
    return made


def steps(rows: Rows) -> NDArray[np.int64]:
    """(b,) made over all attempts."""
    made: NDArray[np.int64] = rows.counts[:, STEPS]
    return made


def found(rows: Rows) -> NDArray[np.bool_]:
    """(b,) whether there is a solution."""
    some: NDArray[np.bool_] = rows.counts[:, FOUND] != NOTHING
    return some


def errors(rows: Rows) -> Array:
    """(b, 2) position [m] and rotation error [rad]."""
    return rows.figures[:, :2]
