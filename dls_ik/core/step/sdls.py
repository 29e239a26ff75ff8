"""SDLS, selectively damped least squares: each direction damped by how hard it is to go there.

phi_i = ClampMaxAbs(g_i (u_i . e) v_i, gamma_i), gamma_i = gamma_max min(1, N_i / M_i), and the sum
of the phi_i is clamped to gamma_max (Buss & Kim 2004, (3), (4)). N_i is how far all tips are to
move for a unit of error along u_i, M_i how far the joints move them one by one: M_i > N_i is
cancellation. Motion of translational joints is not clamped. The published code does not clamp but
scales, by gamma / (gamma + largest): soft.

A tip's rotation, and the row that TA adds, count as tips of their own.
"""

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.jit import kernel
from dls_ik.core.types import Array

NAME = "sdls"


@kernel
def moved(group: NDArray[np.int64], column: Array) -> float:
    """How far all tips move together for a vector of the task space (r,): a sum of norms.

    Args:
        group: (r,) rising; rows of one number make one vector.
    """
    total, square = 0.0, 0.0
    for i in range(column.shape[0]):
        if i > 0 and group[i] != group[i - 1]:
            total += sqrt(square)
            square = 0.0
        square += column[i] * column[i]
    return total + sqrt(square)


@kernel
def largest_bound(
    group: NDArray[np.int64], J: Array, u: Array, v: Array, gain: float, gamma_max: float
) -> float:
    """gamma_i of a direction.

    Args:
        J: (r, k), u: (r,), v: (k,) unit vectors.
    """
    M = 0.0
    for j in range(v.shape[0]):
        M += gain * abs(v[j]) * moved(group, J[:, j])
    return gamma_max * min(1.0, moved(group, u) / M) if M > 0.0 else gamma_max


@kernel
def share(dq: Array, slides: NDArray[np.bool_], gamma: float, soft: bool) -> float:
    """How much of the motion of the joints that turn is kept, from 0 to 1.

    Args:
        dq: (k,), slides: (k,) joints that only slide.
    """
    largest = 0.0
    for j in range(dq.shape[0]):
        if not slides[j]:
            largest = max(largest, abs(dq[j]))
    if soft:
        return gamma / (gamma + largest)
    return gamma / largest if largest > gamma else 1.0


@kernel
def bound(dq: Array, slides: NDArray[np.bool_], gamma_max: float, soft: bool) -> None:
    """Clamp the whole of dq (n,) in place, (4); also softly only what is beyond gamma_max."""
    if share(dq, slides, gamma_max, False) == 1.0:
        return
    kept = share(dq, slides, gamma_max, soft)
    for j in range(dq.shape[0]):
        if not slides[j]:
            dq[j] *= kept
