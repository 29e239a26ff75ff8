"""CLAMP, ClampMag: a target far away is brought nearer, tip by tip.

e_i = ClampMag(t_i - s_i, D_max) (Buss & Kim 2004, section 3). Adaptive: D_max is longer by as much
as the last step led away from the target that it had, and without bound at the first step, as in
the published code. A tip's rotation is one more such vector.
"""

from math import inf, isnan, sqrt

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.jit import kernel
from dls_ik.core.types import Array, Memory, Settings

NAME = "clamp"


@kernel
def bound(settings: Settings, group: NDArray[np.int64], memory: Memory, e: Array) -> None:
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
