"""Sines and cosines of many angles at once, in a form that compiles to vector instructions."""

from math import cos, sin

import numpy as np

from dls_ik.core.jit import exact
from dls_ik.core.types import Array

FARTHEST = 1e5  # [rad] up to which the reduction below keeps its digits
TWO_OVER_PI = 0.6366197723675814
# pi / 2 in three parts, of which the first two have so many zeros that multiples are exact
# (Cody & Waite 1980).
PART_1, PART_2, PART_3 = 1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21


@exact
def sines(angles: Array, s: Array, c: Array) -> None:
    """Write sin and cos of every angle, within 2 units in the last place.

    Taylor's polynomials with their last coefficients fitted to [-pi/4, pi/4], the quadrant put
    back by selections instead of branches. A call of the C library for each of seven joints takes
    as long as all the rest of the kinematics.

    Args:
        angles: (m,) [rad]; s, c: (m,) out, either of which may be the same array.
    """
    farthest = 0.0
    for k in range(angles.shape[0]):
        farthest = max(farthest, abs(angles[k]))
    if not farthest <= FARTHEST:
        for k in range(angles.shape[0]):
            s[k], c[k] = sin(angles[k]), cos(angles[k])
        return
    for k in range(angles.shape[0]):
        angle = angles[k]
        quarters = np.floor(angle * TWO_OVER_PI + 0.5)
        x = ((angle - quarters * PART_1) - quarters * PART_2) - quarters * PART_3
        y = x * x
        sine = 2.7557313707070068e-06 + y * (-2.5050760253406863e-08 + y * 1.58969099521155e-10)
        sine = 8.33333333332249e-03 + y * (-1.984126982985795e-04 + y * sine)
        sine = x + x * y * (-0.16666666666666632 + y * sine)
        cosine = -2.7557314351390663e-07 + y * (2.087572321298175e-09 - y * 1.1359647557788195e-11)
        cosine = -1.388888888887411e-03 + y * (2.480158728947673e-05 + y * cosine)
        cosine = 1.0 - 0.5 * y + y * y * (0.041666666666666602 + y * cosine)
        half = np.floor(quarters * 0.5)
        odd = quarters != 2.0 * half
        turned = half != 2.0 * np.floor(half * 0.5)
        a = cosine if odd else sine
        b = -sine if odd else cosine
        s[k] = -a if turned else a
        c[k] = -b if turned else b
