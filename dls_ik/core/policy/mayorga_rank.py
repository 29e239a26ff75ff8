"""Damped where the Jacobian may have lost rank since the last step: lambda_0 (1 - l)^2 if l > 1.

The rank stays where |J_k - J_{k-1}| < s_min(J_{k-1}): l is the one over the other, with the
Frobenius norm (Deo & Walker 1993, section 3, method 7; Mayorga, Wong & Milano 1992). The first
step of an attempt is not damped. Their lambda is our lambda^2; bounded as in mayorga_condition.py.
"""

from math import sqrt

import numpy as np

from dls_ik.core.jit import kernel
from dls_ik.core.linalg import svd
from dls_ik.core.policy.mayorga_condition import INFINITE, excess_damping
from dls_ik.core.policy.measures import least, squared_norm
from dls_ik.core.types import Array, Memory, Settings

NAME = "mayorga-rank"


@kernel
def lambda_squared(settings: Settings, J: Array, memory: Memory) -> float:
    """lambda^2 for J (r, n) after the Jacobian of the last step."""
    if memory.steps[0] == 0:
        return 0.0
    r, n = J.shape
    last = memory.J[:r].copy()
    change = sqrt(squared_norm(J - last))
    s = np.empty(r)
    svd(last, np.empty((r, r)), s, np.empty((r, n)))
    room = least(s, n)
    if change <= room:
        return 0.0
    return excess_damping(settings, J, change / room if room > change / INFINITE else INFINITE)
