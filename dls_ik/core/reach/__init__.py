"""Error bounds: how much of the error one step goes for. One file each; told apart here."""

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.jit import spliced
from dls_ik.core.linalg import copy
from dls_ik.core.reach import clamp, halve, none
from dls_ik.core.types import Array, Memory, Settings

NONE, CLAMP, HALVE = range(3)
IDS = {none.NAME: NONE, clamp.NAME: CLAMP, halve.NAME: HALVE}


@spliced
def bound(settings: Settings, group: NDArray[np.int64], J: Array, memory: Memory, e: Array) -> None:
    """Shorten the error e (r,) in place, and remember what it was.

    Args:
        group: (r,) which rows make one vector, J: (r, n).
    """
    before = e.copy()
    if settings.reach == CLAMP:
        clamp.bound(settings, group, memory, e)
    elif settings.reach == HALVE:
        halve.bound(J, settings.halving, e)
    copy(before, memory.e)
    memory.left.fill(np.nan)
