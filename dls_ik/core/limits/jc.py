"""JC, joint clamping: a joint that is pushed past its limit stays there.

dq = H (J H)^+ e with H = 0 for a joint at its limit that the error pushes outward, else 1; what
passes a limit all the same is cut off (Colome & Torras 2012, Table III; Raunhardt & Boulic 2007).
"""

from dls_ik.core.jit import inlined
from dls_ik.core.types import Array, Chain, Method

NAME = "jc"


@inlined
def activate(method: Method, chain: Chain, q: Array, J: Array, e: Array, h: Array) -> None:
    """Hold the joints at (or past) a limit that the gradient of the error pushes outward.

    Args:
        q: (n,), J: (6, n), e: (6,), h: (n,) out, 0 or 1.
    """
    for j in range(q.shape[0]):
        outward = 1.0 if q[j] >= chain.upper[j] else (-1.0 if q[j] <= chain.lower[j] else 0.0)
        if outward == 0.0:
            continue
        push = 0.0
        for i in range(J.shape[0]):
            push += J[i, j] * e[i]
        if push * outward > 0.0:
            h[j] = 1.0
