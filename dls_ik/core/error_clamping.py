"""Error bounds: how much of the error one step goes for."""

from math import inf, isnan, sqrt

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.jit import kernel, spliced
from dls_ik.core.linalg import copy, svd
from dls_ik.core.types import Array, Memory, Settings

NONE, CLAMP, HALVE = range(3)
IDS = {"none": NONE, "clamp": CLAMP, "halve": HALVE}


@spliced
def clamp_error(
    settings: Settings, group: NDArray[np.int64], J: Array, memory: Memory, e: Array
) -> None:
    """Shorten the error e (r,) in place, and remember what it was.

    Args:
        group: (r,) which rows make one vector, J: (r, n).
    """
    before = e.copy()
    if settings.reach == CLAMP:
        clamp_groups(settings, group, memory, e)
    elif settings.reach == HALVE:
        halve_unreachable(J, settings.halving, e)
    copy(before, memory.e)
    memory.left.fill(np.nan)


# CLAMP --------------------------------------------------------------------------------------------
#
# CLAMP, ClampMag: a target far away is brought nearer, tip by tip.
#
# e_i = ClampMag(t_i - s_i, D_max) (Buss & Kim 2004, section 3). Adaptive: D_max is longer by as
# much as the last step led away from the target that it had, and without bound at the first step,
# as in the published code. A tip's rotation is one more such vector.


@kernel
def clamp_groups(settings: Settings, group: NDArray[np.int64], memory: Memory, e: Array) -> None:
    """Shorten the error of every group to its D_max, in place.

    Args:
        group: (r,) which rows make one vector, e: (r,) scaled error [m].
    """
    before = e.copy()
    for i in range(e.shape[0]):
        g = group[i]
        length = _group_norm(group, before, g)
        farthest = settings.D_max
        if settings.adaptive:
            farthest = inf
            if memory.steps[0] > 0:
                last = _last_norm(settings, group, memory, g)
                left = length if isnan(memory.left[0]) else _group_norm(group, memory.left, g)
                farthest = settings.D_max + max(0.0, left - last)
        if length > farthest:
            e[i] *= farthest / length


@kernel
def _group_norm(group: NDArray[np.int64], e: Array, g: int) -> float:
    total = 0.0
    for i in range(e.shape[0]):
        if group[i] == g:
            total += e[i] * e[i]
    return sqrt(total)


@kernel
def _last_norm(settings: Settings, group: NDArray[np.int64], memory: Memory, g: int) -> float:
    """Norm of a group's error at the step before.

    The published code takes the rows g to g + 2 of it where it means those of the group.
    """
    if not settings.published:
        return _group_norm(group, memory.e, g)
    total = 0.0
    for i in range(g, min(g + 3, memory.e.shape[0])):
        total += memory.e[i] * memory.e[i]
    return sqrt(total)


# HALVE --------------------------------------------------------------------------------------------
#
# HALVE: the error is halved while too much of it is out of reach.
#
# While norm((I - J J+) e) > tolerance: e := e / 2 (Tabaczynski 2005, algorithm of 2.2, where the
# text's J+ J is meant as J J+; he describes it and leaves it out of his code).


NEGLIGIBLE = 1e-10  # share of the largest singular value below which a direction cannot be moved in


@kernel
def halve_unreachable(J: Array, tolerance: float, e: Array) -> None:
    """Halve e (r,) in place until what J (r, n) cannot do of it is within `tolerance` [m]."""
    r = e.shape[0]
    Ut, s, Vt = np.empty((r, r)), np.empty(r), np.empty(J.shape)
    svd(J, Ut, s, Vt)
    left = e.copy()
    for k in range(r):
        if s[k] > NEGLIGIBLE * s[0]:
            along = 0.0
            for i in range(r):
                along += Ut[k, i] * e[i]
            for i in range(r):
                left[i] -= along * Ut[k, i]
    out_of_reach = 0.0
    for i in range(r):
        out_of_reach += left[i] * left[i]
    out_of_reach = sqrt(out_of_reach)
    if not out_of_reach < np.inf:
        return
    while out_of_reach > tolerance:
        out_of_reach *= 0.5
        for i in range(r):
            e[i] *= 0.5
