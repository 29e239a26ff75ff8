"""HALVE: the error is halved while too much of it is out of reach.

While norm((I - J J+) e) > tolerance: e := e / 2 (Tabaczynski 2005, algorithm of 2.2, where the
text's J+ J is meant as J J+; he describes it and leaves it out of his code).
"""

from math import sqrt

import numpy as np

from dls_ik.core.jit import kernel
from dls_ik.core.linalg import svd
from dls_ik.core.types import Array

NAME = "halve"
NEGLIGIBLE = 1e-10  # share of the largest singular value below which a direction cannot be moved in


@kernel
def bound(J: Array, tolerance: float, e: Array) -> None:
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
