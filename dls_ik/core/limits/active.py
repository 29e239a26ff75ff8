"""An active set: joints that would pass a limit go to it, and the others make up for them.

The step is solved anew without the joints that are held, for what their own motion leaves of the
error, until no other joint passes a limit. This is the strategy of ``method="auto"``.
"""

from dls_ik.core.jit import inlined
from dls_ik.core.types import Array, Chain

NAME = "active"


@inlined
def revise(chain: Chain, q: Array, dq: Array, h: Array, z: Array) -> bool:
    """Hold every joint that `dq` takes past a limit at that limit; say whether there was one.

    Args:
        q: (n,), dq: (n,), h: (n,) in and out, z: (n,) out: the way to the limit.
    """
    again = False
    for j in range(q.shape[0]):
        if h[j] != 0.0:
            continue
        if q[j] + dq[j] > chain.upper[j]:
            h[j], z[j], again = 1.0, chain.upper[j] - q[j], True
        elif q[j] + dq[j] < chain.lower[j]:
            h[j], z[j], again = 1.0, chain.lower[j] - q[j], True
    return again
