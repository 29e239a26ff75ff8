"""Keep away from the joint limits.

H = 1/(2n) sum_j [(U_j - L_j)^2 / ((U_j - q_j) (q_j - L_j)) - 4], 0 in the middle of every range
dH_j = 1/(2n) (U_j - L_j)^2 (2 q_j - U_j - L_j) / ((U_j - q_j)^2 (q_j - L_j)^2)

(Zghal, Dubey & Euler 1990; Chan & Dubey 1995, with 1/(2n) and the 4 added here.) Each term and
each slope ends at +-1e6. Beyond a limit the formula stands as published: the slope leads back, less
so the farther out. A joint without two limits counts 0.
"""

from math import copysign

from dls_ik.core.jit import kernel
from dls_ik.core.types import Array, Chain

NAME = "limits"
STEEPEST = 1e6


@kernel
def gradient(chain: Chain, q: Array, out: Array) -> float:
    """Write grad H (n,) at q (n,); return H."""
    n, H = q.shape[0], 0.0
    for j in range(n):
        H += value(q[j], chain.lower[j], chain.upper[j], n)
        out[j] = slope(q[j], chain.lower[j], chain.upper[j], n)
    return H


@kernel
def value(q: float, lower: float, upper: float, n: int) -> float:
    """The term of one of n joints in H."""
    width = upper - lower
    if not 0.0 < width < 1e150:
        return 0.0
    room = (upper - q) / width * ((q - lower) / width)
    if abs(room) <= 0.5 / (n * STEEPEST):
        return copysign(STEEPEST, room)
    return min(0.5 * (1.0 / room - 4.0) / n, STEEPEST)


@kernel
def slope(q: float, lower: float, upper: float, n: int) -> float:
    """The derivative of that term [1/rad or 1/m]."""
    width = upper - lower
    if not 0.0 < width < 1e150:
        return 0.0
    room = (upper - q) / width * ((q - lower) / width)
    off = (2.0 * q - upper - lower) / width
    if abs(off) >= 2.0 * n * STEEPEST * room * room * width:
        return copysign(STEEPEST, off)
    return off / (2.0 * n * room * room * width)
