"""TA, task augmentation: the objective's gradient becomes one more row of the task.

dq = J_v^+ e_v with J_v = [J; w_c grad H^T] and e_v = [e; -w_c mu H]: the objective is to fall by
mu H in a step; with mu = 0, the default, it is to stay as it is (Colome & Torras 2012, Table III;
Egeland et al. 1991; weighted: Deo & Walker 1993, (19)). With mu > 0 the two tasks may be at odds
for good: no pose is then reached exactly unless a small w_c gives the pose its priority.
"""

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.jit import kernel
from dls_ik.core.types import Array

NAME = "ta"


@kernel
def augmented(
    J: Array,
    e: Array,
    group: NDArray[np.int64],
    gradient: Array,
    H: float,
    mu: float,
    w_c: float,
) -> tuple[Array, Array, NDArray[np.int64]]:
    """Return J (r + 1, n), e (r + 1,) and group (r + 1,) with the row added, a group of its own."""
    r, n = J.shape
    J_v, e_v, group_v = np.empty((r + 1, n)), np.empty(r + 1), np.empty(r + 1, np.int64)
    for i in range(r):
        e_v[i], group_v[i] = e[i], group[i]
        for j in range(n):
            J_v[i, j] = J[i, j]
    for j in range(n):
        J_v[r, j] = w_c * gradient[j]
    e_v[r] = -w_c * mu * H
    group_v[r] = group[r - 1] + 1
    return J_v, e_v, group_v
