"""Limit strategies and secondary tasks: what becomes of a joint near its limit. One file each.

A strategy says how far each joint is held, h from 0 (free) to 1 (held), which motion z it asks for,
and how much each joint counts, c. The step is then, for all of them,

dq = z + C P (e - J z),  P the law's inverse of J C without the joints that are held.
"""

from dls_ik.core.jit import spliced
from dls_ik.core.limits import active, ctp, gp, jc, jw, none, ta, tp
from dls_ik.core.types import Array, Chain, Method

NONE, JC, CTP, ACTIVE, JW, GP, TA, TP = range(8)
IDS = {
    none.NAME: NONE,
    jw.NAME: JW,
    gp.NAME: GP,
    ta.NAME: TA,
    jc.NAME: JC,
    tp.NAME: TP,
    ctp.NAME: CTP,
    active.NAME: ACTIVE,
}


@spliced
def activate(method: Method, chain: Chain, q: Array, J: Array, e: Array, h: Array) -> None:
    """Write h (n,) of JC and the active set before a step is solved."""
    h.fill(0.0)
    if method.limits == JC or method.limits == ACTIVE:
        jc.activate(method, chain, q, J, e, h)


@spliced
def revise(method: Method, chain: Chain, q: Array, dq: Array, h: Array, z: Array) -> bool:
    """After a step is solved: hold more joints and return True to have it solved again."""
    if method.limits == ACTIVE:
        return active.revise(chain, q, dq, h, z)
    return False


@spliced
def revises(method: Method) -> bool:
    """Whether more joints are held once a step is known."""
    return method.limits == ACTIVE


@spliced
def clips(method: Method) -> bool:
    """Whether what passes a limit after the step is cut off."""
    return method.limits == JC or method.limits == ACTIVE


@spliced
def has_objective(method: Method) -> bool:
    """Whether the strategy makes an objective less."""
    return method.limits == GP or method.limits == TA
