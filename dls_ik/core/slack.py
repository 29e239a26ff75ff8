"""Tolerances of rows: an error within them counts as zero, and does not hold the arm.

A row beyond its tolerance is brought a little inside, so that it is there after a few steps and the
tolerance is kept to the last digit. A row inside is none at all, and leaves the arm free to move,
until a step would take it out again: then that step is made anew, and brings it to the border.
Rows that are round have one tolerance for the length of their vector.
"""

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.jit import spliced
from dls_ik.core.types import Array, Task


@spliced
def dead_zone(task: Task, e: Array, beyond: Array) -> None:
    """Take the tolerances off the errors of the rows, not scaled by their weights.

    Args:
        e: (r,) in the errors, out what a step goes for.
        beyond: (r,) out: the errors beyond the tolerances.
    """
    r = e.shape[0]
    sizes = np.empty(r)
    for i in range(r):
        sizes[i], beyond[i] = _size(task, i, e), e[i]
    for i in range(r):
        slack = task.slack[i]
        if slack > 0.0:
            share = sizes[i] > slack
            beyond[i] = e[i] * ((sizes[i] - slack) / sizes[i]) if share else 0.0
            e[i] = e[i] * ((sizes[i] - task.aim[i]) / sizes[i]) if share else 0.0


@spliced
def release(task: Task, e: Array, held: NDArray[np.bool_], J: Array) -> None:
    """Make J (r, n) the derivative of what :func:`dead_zone` makes of the errors.

    Zero in rows inside their tolerance. Round ones outside are pulled toward the middle, and turn
    about it as far as they are from the border: n n^T + (1 - s) (I - n n^T), s = aim / size.

    Args:
        e: (r,) scaled errors as a step goes for them.
        held: (r,) rows that stay as they are.
    """
    for i in range(e.shape[0]):
        if task.slack[i] > 0.0 and not held[i]:
            if task.round[i]:
                if _is_first(task, i):
                    _release_round(task, i, e, J)
            elif e[i] == 0.0:
                for j in range(J.shape[1]):
                    J[i, j] = 0.0


@spliced
def hold(task: Task, J: Array, whole: Array, dq: Array, e: Array, held: NDArray[np.bool_]) -> bool:
    """Hold rows that are inside their tolerance and that a step would take out of it.

    Args:
        J: (r, n) of all rows, whole: (r,) their whole errors, both scaled.
        dq: (n,) the step.
        e: (r,) in and out: what a step goes for; of rows that are held, to where they may go.
        held: (r,) in and out.

    Returns:
        Whether there is another one.
    """
    r = e.shape[0]
    after, out = np.empty(r), False
    for i in range(r):
        after[i] = whole[i]
        for j in range(dq.shape[0]):
            after[i] -= J[i, j] * dq[j]
        after[i] /= task.weight[i]
    for i in range(r):
        if task.slack[i] > 0.0 and not held[i] and _is_inside(task, i, e):
            size = _size(task, i, after)
            if size > task.slack[i]:
                held[i], out = True, True
    for i in range(r):
        if held[i] and e[i] == 0.0:
            e[i] = whole[i] - task.weight[i] * after[i] * (task.aim[i] / _size(task, i, after))
    return out


@spliced
def _is_inside(task: Task, i: int, e: Array) -> bool:
    """Whether a row, or all of a round set, has no error left."""
    return _size(task, i, e) == 0.0


@spliced
def _release_round(task: Task, first: int, e: Array, J: Array) -> None:
    along, size = np.zeros(J.shape[1]), 0.0
    for i in range(first, e.shape[0]):
        if _is_with(task, first, i):
            error = e[i] / task.weight[i]
            size += error * error
            for j in range(along.shape[0]):
                along[j] += error * J[i, j] / task.weight[i]
    size = sqrt(size)
    s = task.aim[first] / (size + task.aim[first])
    for i in range(first, e.shape[0]):
        if _is_with(task, first, i):
            for j in range(along.shape[0]):
                if size == 0.0:
                    J[i, j] = 0.0
                else:
                    J[i, j] = (1.0 - s) * J[i, j] + s * e[i] * along[j] / (size * size)


@spliced
def _size(task: Task, i: int, e: Array) -> float:
    """What the tolerance of a row is compared with."""
    if not task.round[i]:
        return abs(e[i])
    total = 0.0
    for j in range(e.shape[0]):
        if _is_with(task, i, j):
            total += e[j] * e[j]
    return sqrt(total)


@spliced
def _is_with(task: Task, i: int, j: int) -> bool:
    """Whether two rows are of one round tolerance."""
    return task.round[i] and task.round[j] and task.group[i] == task.group[j]


@spliced
def _is_first(task: Task, i: int) -> bool:
    for j in range(i):
        if _is_with(task, i, j):
            return False
    return True
