"""SD, selective damping: no direction of the error may move a joint farther than it is worth.

Colome & Torras 2012, section VI and (8), after Buss & Kim 2005. M_s bounds how far the tip moves
for a unit of error along u_s, summed over the joints; the joint change w_s for that direction is
bounded by gamma_s = gamma_max min(1, 1/M_s) in its largest component, the whole by gamma_max in
its 2-norm.
"""

from math import sqrt

from dls_ik.core.jit import kernel
from dls_ik.core.types import Array

NAME = "sd"


@kernel
def bounded_sum(
    J: Array, Ut: Array, gain: Array, Vt: Array, e: Array, gamma_max: float, dq: Array
) -> None:
    """Write sum_s w_s, w_s = gain_s v_s (u_s . e), each bounded by gamma_s.

    Args:
        J: (6, k), Ut: (6, 6), gain: (6,), Vt: (6, k), e: (6,), dq: (k,) out.
    """
    r, k = J.shape
    dq.fill(0.0)
    for s in range(r):
        along, M, largest = 0.0, 0.0, 0.0
        for i in range(r):
            along += Ut[s, i] * e[i]
        for j in range(k):
            column = 0.0
            for i in range(r):
                column += J[i, j] * J[i, j]
            M += abs(Vt[s, j]) * sqrt(column)
            largest = max(largest, abs(Vt[s, j]))
        gamma = gamma_max * min(1.0, 1.0 / (gain[s] * M)) if gain[s] * M > 0.0 else gamma_max
        w = gain[s] * along
        if abs(w) * largest > gamma:
            w *= gamma / (abs(w) * largest)
        for j in range(k):
            dq[j] += w * Vt[s, j]


@kernel
def bound(gamma_max: float, dq: Array) -> None:
    """Shorten `dq` (n,) to a 2-norm of gamma_max."""
    total = 0.0
    for j in range(dq.shape[0]):
        total += dq[j] * dq[j]
    if total > gamma_max * gamma_max:
        scale = gamma_max / sqrt(total)
        for j in range(dq.shape[0]):
            dq[j] *= scale
