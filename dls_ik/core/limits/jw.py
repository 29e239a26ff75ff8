"""JW, Jacobian weighting: a joint on its way to a limit costs more, and moves less.

dq = W^-1 J^T (J W^-1 J^T)^-1 e, w_j = 1 + |dH_j| where |dH_j| has grown since the last step, else
1, with H the limit criterion (Colome & Torras 2012, Table III; Chan & Dubey 1995). Here as
dq = C (J C)^+ e with C = W^-1/2, so that every law and bound goes with it.
"""

from math import sqrt

from dls_ik.core.jit import kernel
from dls_ik.core.objectives import limits as criterion
from dls_ik.core.types import Array, Chain, Memory

NAME = "jw"


@kernel
def activate(chain: Chain, q: Array, memory: Memory, c: Array) -> None:
    """Write the scale of every column and remember the criterion's gradient.

    Args:
        q: (n,), c: (n,) out.
    """
    last = memory.gradient
    for j in range(q.shape[0]):
        now = abs(criterion.slope(q[j], chain.lower[j], chain.upper[j], q.shape[0]))
        before = last[j] if memory.steps[0] > 0 else 0.0
        c[j] = 1.0 / sqrt(1.0 + now) if now > before else 1.0
        last[j] = now
