"""GP, gradient projection: what is left of the redundancy makes an objective H less.

dq = J+ e + (I - J+ J) v with v = -mu grad H (Colome & Torras 2012, Table III; Liegeois 1977). With
a damping factor, J* for the damped inverse (Deo & Walker 1993, section 4, whose lambda is our
lambda^2):

(24)  dq = J* e + (I - J* J) v
(23)  dq = J* e + alpha1^2 / lambda^2 (I - J* J) v
(22)  dq = (J^T J + alpha1^2 I + alpha2^2 A)^-1 (J^T e + alpha1^2 v)

Each is dq = z + C P(J C) (e - J z): with z = v for (24), z = alpha1^2 / lambda^2 v for (23), and
for (22), with D^2 = alpha1^2 I + alpha2^2 A: C = D^-1, z = alpha1^2 D^-2 v and lambda = 1.
"""

from math import sqrt

from dls_ik.core.jit import kernel
from dls_ik.core.types import Array, Settings

NAME = "gp"
PLAIN, SCALED, WEIGHTED = 24, 23, 22


@kernel
def activate(
    settings: Settings, joint_weights: Array, lambda2: float, v: Array, z: Array, c: Array
) -> float:
    """Write the motion and the scale of every column for one of the forms; return lambda^2.

    Args:
        lambda2: what the law damps with.
        v: (n,), z: (n,) out, c: (n,) out.
    """
    square = settings.alpha1 * settings.alpha1
    if settings.form == WEIGHTED:
        for j in range(v.shape[0]):
            D2 = square + settings.alpha2 * settings.alpha2 * joint_weights[j]
            c[j] = 1.0 / sqrt(D2)
            z[j] = square / D2 * v[j]
        return 1.0
    scale = square / lambda2 if settings.form == SCALED and lambda2 > 0.0 else 1.0
    for j in range(v.shape[0]):
        z[j] = scale * v[j]
    return lambda2
