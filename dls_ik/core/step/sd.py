"""SD, selective damping: no direction of the error may move a joint farther than it is worth.

Colome & Torras 2012, section VI and (8), after Buss & Kim 2004. M_s bounds how far the tip moves
for a unit of error along u_s, summed over the joints; the joint change w_s for that direction is
bounded by gamma_s = gamma_max min(1, 1/M_s) in its largest absolute component, the whole by
gamma_max in its 2-norm. The published code takes the largest component with its sign.
"""

from math import sqrt

from dls_ik.core.jit import kernel
from dls_ik.core.types import Array

NAME = "sd"


@kernel
def share(J: Array, v: Array, gain: float, w: float, gamma_max: float, signed: bool) -> float:
    """How much of w v is kept, from 0 to 1.

    Args:
        J: (r, k), v: (k,) unit vector, gain: of its direction, w: length before the bound.
        signed: as in the published code.
    """
    r, k = J.shape
    M, largest = 0.0, -1e300
    for j in range(k):
        column = 0.0
        for i in range(r):
            column += J[i, j] * J[i, j]
        M += gain * abs(v[j]) * sqrt(column)
        largest = max(largest, w * v[j] if signed else abs(w * v[j]))
    gamma = gamma_max * min(1.0, 1.0 / M) if M > 0.0 else gamma_max
    return gamma / largest if largest > gamma else 1.0
