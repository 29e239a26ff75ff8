"""TP, task priority: near a limit, keeping it comes before the error, all at once.

dq = z + [J (I - H^+ H)]^+ (e - J z) with z = -H mu (q - mid-range): a joint whose activation is not
zero is taken out of the inverse altogether, which is a jump (Colome & Torras 2012, (5)).
"""

from dls_ik.core.jit import kernel
from dls_ik.core.limits.ctp import activation
from dls_ik.core.types import Array, Chain, Method

NAME = "tp"


@kernel
def activate(method: Method, chain: Chain, q: Array, h: Array, z: Array) -> None:
    """Write which joints are held, 0 or 1, and the push back that goes with their activation.

    Args:
        q: (n,), h: (n,) out, z: (n,) out.
    """
    for j in range(q.shape[0]):
        lower, upper = chain.lower[j], chain.upper[j]
        active = activation(q[j], lower, upper, method.margin)
        if active > 0.0:
            h[j] = 1.0
            z[j] = -active * method.mu * (q[j] - 0.5 * (lower + upper))
