"""From a chain to the frames in which the quick path computes: core/quick/kinematics.py."""

import numpy as np

from dls_ik.core.types import Arm, Array, Chain
from dls_ik.model.rigid import inverse

PARALLEL = 1e-15  # sine of the angle between two axes that count as parallel


def build_arm(chain: Chain) -> Arm:
    """Write a chain of one path in frames between which only x turns.

    Any fixed rotation is Rz(a) Rx(b) Rz(c). Rz commutes with the motion of the joint at its side,
    so that a goes into the offset of the joint before and c into that of the joint after.
    """
    m = len(chain.variable)
    turn, slide, link = np.zeros((m, 2)), np.zeros(m), np.zeros((m, 5))
    after = 0.0  # c of the rotation before the element
    for k in range(m):
        R, p = chain.fixed[k + 1, :, :3], chain.fixed[k + 1, :, 3]
        a, b, c = _angles(R) if k < m - 1 else (0.0, 0.0, 0.0)
        turn[k, 1] = after + a
        link[k, :3] = _about_z(-a) @ p
        if chain.prismatic[k]:
            slide[k] = chain.scale[k]
            link[k, 2] += chain.offset[k]
        else:
            turn[k] += chain.scale[k], chain.offset[k]
        link[k, 3:] = np.cos(b), np.sin(b)
        after = c
    before = np.vstack([chain.fixed[0], [0.0, 0.0, 0.0, 1.0]])
    limits = chain.lower, chain.upper
    return Arm(
        turn, slide, link, chain.variable, *limits, inverse(before)[:3], chain.fixed[m, :, :3].T
    )


def _angles(R: Array) -> tuple[float, float, float]:
    """(a, b, c) of R = Rz(a) Rx(b) Rz(c), a in +-pi/2.

    Near parallel axes only the sum or difference of a and c is well determined: b and c are taken
    from what is left of R after the a that is taken, so that no digit of R is lost.
    """
    a, side = 0.0, np.copysign(1.0, -R[1, 2])
    if np.hypot(R[0, 2], R[1, 2]) > PARALLEL:
        a = float(np.arctan2(side * R[0, 2], -side * R[1, 2]))
    left = _about_z(-a) @ R
    return a, float(np.arctan2(-left[1, 2], left[2, 2])), float(np.arctan2(-left[0, 1], left[0, 0]))


def _about_z(angle: float) -> Array:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
