"""Limit strategies: what becomes of a joint near its limit. One file each; told apart here.

A strategy says how far each joint is held, h from 0 (free) to 1 (held), and which motion z it asks
for. The step is then dq = z + J^{(I-H)+} (e - J z) for all of them.
"""

from dls_ik.core.jit import inlined
from dls_ik.core.limits import active, ctp, jc, none
from dls_ik.core.types import Array, Chain, Method

NONE, JC, CTP, ACTIVE = range(4)
IDS = {none.NAME: NONE, jc.NAME: JC, ctp.NAME: CTP, active.NAME: ACTIVE}


@inlined
def activate(
    method: Method, chain: Chain, q: Array, J: Array, e: Array, h: Array, z: Array
) -> None:
    """Write h and z before the step is solved; (n,) each."""
    h.fill(0.0)
    z.fill(0.0)
    if method.limits == CTP:
        ctp.activate(method, chain, q, J, e, h, z)
    elif method.limits == JC or method.limits == ACTIVE:
        jc.activate(method, chain, q, J, e, h)


@inlined
def revise(method: Method, chain: Chain, q: Array, dq: Array, h: Array, z: Array) -> bool:
    """After a step is solved: hold more joints and return True to have it solved again."""
    if method.limits == ACTIVE:
        return active.revise(chain, q, dq, h, z)
    return False


@inlined
def is_continuous(method: Method) -> bool:
    """Whether h may lie between 0 and 1, so that the continuous inverse is needed."""
    return method.limits == CTP


@inlined
def clips(method: Method) -> bool:
    """Whether what passes a limit after the step is cut off."""
    return method.limits == JC or method.limits == ACTIVE
