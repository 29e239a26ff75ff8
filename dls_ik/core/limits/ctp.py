"""CTP, continuous task priority: near a limit, keeping it comes before the error, without a jump.

dq = z + J^{(I-H)+} (e - J z) with z = -H mu (q - mid-range)
(Colome & Torras 2012, (6); Mansard, Remazeilles & Chaumette 2009, (20)). The paper pushes toward
zero, which for a joint whose range leaves zero out is a push into the limit; mid-range serves any
arm and gives the same figures on the WAM.

One way (for following a target): a joint inside its limits is held only as far as the error pushes
it outward, and no joint is pushed back. The push has no place to rest: where the target keeps the
joint in its margin it goes back and forth, and the pose is not reached.
"""

from math import sqrt, tanh

from dls_ik.core.jit import kernel
from dls_ik.core.types import Array, Chain, Method

NAME = "ctp"
LEAST_ACTIVATION = 1e-6
FULL_PUSH = 0.1  # cosine between a column and the error from which a push counts in full


@kernel
def activation(q: float, lower: float, upper: float, margin: float) -> float:
    """h in [0, 1]: 0 outside the margins of the range, 1 at a limit or beyond it.

    h = (1 + tanh(1/(1-u) - 1/u)) / 2 for a joint a fraction u into its margin. A joint that lacks
    one of its limits has no range to take a margin of, and is free.
    """
    width = margin * (upper - lower)
    if not width < 1e300:
        return 0.0
    depth = max(q - (upper - width), (lower + width) - q)
    if depth >= width:  # first, for a joint without any room
        return 1.0
    if depth <= 0.0:
        return 0.0
    u = depth / width
    h = 0.5 * (1.0 + tanh(1.0 / (1.0 - u) - 1.0 / u))
    if h < LEAST_ACTIVATION:
        return 0.0
    return min(h, 1.0)


@kernel
def activate(
    method: Method, chain: Chain, q: Array, J: Array, e: Array, h: Array, z: Array
) -> None:
    """Write the activation of every joint and the push back that goes with it.

    Args:
        q: (n,), J: (6, n), e: (6,), h: (n,) out, z: (n,) out.
    """
    for j in range(q.shape[0]):
        lower, upper = chain.lower[j], chain.upper[j]
        h[j] = activation(q[j], lower, upper, method.margin)
        if h[j] > 0.0:
            middle = 0.5 * (lower + upper)
            if not method.following:
                z[j] = -h[j] * method.mu * (q[j] - middle)
            elif lower <= q[j] <= upper:
                h[j] *= _pushed_outward(J, e, j, q[j] - middle)


@kernel
def _pushed_outward(J: Array, e: Array, j: int, outward: float) -> float:
    """How much the error pushes joint j toward the limit it is near, from 0 to 1 without a jump."""
    push, column, error = 0.0, 0.0, 0.0
    for i in range(e.shape[0]):
        push += J[i, j] * e[i]
        column += J[i, j] * J[i, j]
        error += e[i] * e[i]
    scale = FULL_PUSH * sqrt(column * error)
    if scale <= 0.0:
        return 0.0
    if outward < 0.0:
        push = -push
    return min(max(push / scale, 0.0), 1.0)
