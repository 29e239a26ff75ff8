"""JT, the Jacobian's transpose, with the step length that is best to first order.

dq = alpha J^T e with alpha = <e, J J^T e> / <J J^T e, J J^T e>, so that norm(e - J dq) is least
(Buss & Kim 2004, section 5; Colome & Torras 2012, Table II; Wolovich & Elliott 1984).
"""

import numpy as np

from dls_ik.core.jit import kernel
from dls_ik.core.types import Array

NAME = "jt"


@kernel
def step_length(J: Array, h: Array, left: Array) -> float:
    """alpha for the motion d = (I - H) J^T left; 0 where that does not move the tip.

    Args:
        J: (r, n), h: (n,) how far each joint is held, left: (r,) the error to go for.
    """
    r, n = J.shape
    along, square = 0.0, 0.0
    moved = np.zeros(r)  # J d
    for j in range(n):
        d = 0.0
        for i in range(r):
            d += J[i, j] * left[i]
        d *= 1.0 - h[j]
        for i in range(r):
            moved[i] += J[i, j] * d
    for i in range(r):
        along += left[i] * moved[i]
        square += moved[i] * moved[i]
    return along / square if square > 0.0 else 0.0
