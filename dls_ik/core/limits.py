"""Limit strategies and secondary tasks: what becomes of a joint near its limit.

A strategy says how far each joint is held, h from 0 (free) to 1 (held), which motion z it asks for,
and how much each joint counts, c. The step is then, for all of them,

dq = z + C P (e - J z),  P the law's inverse of J C without the joints that are held.

A strategy has a section with its formula and source. To add one, write its section, its id, its
name in `IDS`, and its branch in :func:`activate`.
"""

from math import sqrt, tanh

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.jit import inlined, kernel, spliced
from dls_ik.core.objectives import limits_slope
from dls_ik.core.types import Array, Chain, Memory, Method, Settings, Workspace

NONE, JC, CTP, ACTIVE, JW, GP, TA, TP = range(8)
IDS = {
    "none": NONE,
    "jw": JW,
    "gp": GP,
    "ta": TA,
    "jc": JC,
    "tp": TP,
    "ctp": CTP,
    "active": ACTIVE,
}


# JC -----------------------------------------------------------------------------------------------
#
# JC, joint clamping: a joint that is pushed past its limit stays there.
#
# dq = H (J H)^+ e with H = 0 for a joint at its limit that the error pushes outward, else 1; what
# passes a limit all the same is cut off (Colome & Torras 2012, Table III; Raunhardt & Boulic
# 2007).


@inlined
def jc_activate(method: Method, chain: Chain, q: Array, J: Array, e: Array, h: Array) -> None:
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


# The active set -----------------------------------------------------------------------------------
#
# An active set: joints that would pass a limit go to it, and the others make up for them.
#
# The step is solved anew without the joints that are held, for what their own motion leaves of the
# error, until no other joint passes a limit. This is the strategy of ``method="auto"``.


@inlined
def active_revise(chain: Chain, q: Array, dq: Array, h: Array, z: Array) -> bool:
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


# CTP ----------------------------------------------------------------------------------------------
#
# CTP, continuous task priority: near a limit, keeping it comes before the error, without a jump.
#
# dq = z + J^{(I-H)+} (e - J z) with z = -H mu (q - mid-range) (Colome & Torras 2012, (6); Mansard,
# Remazeilles & Chaumette 2009, (20)). The paper pushes toward zero, which for a joint whose range
# leaves zero out is a push into the limit; mid-range serves any arm and gives the same figures on
# the WAM.
#
# One way (for following a target): a joint inside its limits is held only as far as the error
# pushes it outward, and no joint is pushed back. The push has no place to rest: where the target
# keeps the joint in its margin it goes back and forth, and the pose is not reached.


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
def ctp_activate(
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


# TP -----------------------------------------------------------------------------------------------
#
# TP, task priority: near a limit, keeping it comes before the error, all at once.
#
# dq = z + [J (I - H^+ H)]^+ (e - J z) with z = -H mu (q - mid-range): a joint whose activation is
# not zero is taken out of the inverse altogether, which is a jump (Colome & Torras 2012, (5)).


@kernel
def tp_activate(method: Method, chain: Chain, q: Array, h: Array, z: Array) -> None:
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


# JW -----------------------------------------------------------------------------------------------
#
# JW, Jacobian weighting: a joint on its way to a limit costs more, and moves less.
#
# dq = W^-1 J^T (J W^-1 J^T)^-1 e, w_j = 1 + |dH_j| where |dH_j| has grown since the last step,
# else 1, with H the limit criterion (Colome & Torras 2012, Table III; Chan & Dubey 1995). Here as
# dq = C (J C)^+ e with C = W^-1/2, so that every law and bound goes with it.


@kernel
def jw_activate(chain: Chain, q: Array, memory: Memory, c: Array) -> None:
    """Write the scale of every column and remember the criterion's gradient.

    Args:
        q: (n,), c: (n,) out.
    """
    last = memory.gradient
    for j in range(q.shape[0]):
        now = abs(limits_slope(q[j], chain.lower[j], chain.upper[j], q.shape[0]))
        before = last[j] if memory.steps[0] > 0 else 0.0
        c[j] = 1.0 / sqrt(1.0 + now) if now > before else 1.0
        last[j] = now


# GP -----------------------------------------------------------------------------------------------
#
# GP, gradient projection: what is left of the redundancy makes an objective H less.
#
# dq = J+ e + (I - J+ J) v with v = -mu grad H (Colome & Torras 2012, Table III; Liegeois 1977).
# With a damping factor, J* for the damped inverse (Deo & Walker 1993, section 4, whose lambda is
# our lambda^2):
#
# (24)  dq = J* e + (I - J* J) v
# (23)  dq = J* e + alpha1^2 / lambda^2 (I - J* J) v
# (22)  dq = (J^T J + alpha1^2 I + alpha2^2 A)^-1 (J^T e + alpha1^2 v)
#
# Each is dq = z + C P(J C) (e - J z): with z = v for (24), z = alpha1^2 / lambda^2 v for (23), and
# for (22), with D^2 = alpha1^2 I + alpha2^2 A: C = D^-1, z = alpha1^2 D^-2 v and lambda = 1.


PLAIN, SCALED, WEIGHTED = 24, 23, 22


@kernel
def gp_activate(
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


# TA -----------------------------------------------------------------------------------------------
#
# TA, task augmentation: the objective's gradient becomes one more row of the task.
#
# dq = J_v^+ e_v with J_v = [J; w_c grad H^T] and e_v = [e; -w_c mu H]: the objective is to fall by
# mu H in a step; with mu = 0, the default, it is to stay as it is (Colome & Torras 2012, Table
# III; Egeland et al. 1991; weighted: Deo & Walker 1993, (19)). With mu > 0 the two tasks may be at
# odds for good: no pose is then reached exactly unless a small w_c gives the pose its priority.


@kernel
def ta_augmented(
    J: Array,
    e: Array,
    group: NDArray[np.int64],
    gradient: Array,
    H: float,
    mu: float,
    w_c: float,
) -> tuple[Array, Array, NDArray[np.int64]]:
    """Return J (r + 1, n), e (r + 1,) and group (r + 1,) with the row added, a group of its own."""
    r, n = J.shape
    J_v, e_v, group_v = np.empty((r + 1, n)), np.empty(r + 1), np.empty(r + 1, np.int64)
    for i in range(r):
        e_v[i], group_v[i] = e[i], group[i]
        for j in range(n):
            J_v[i, j] = J[i, j]
    for j in range(n):
        J_v[r, j] = w_c * gradient[j]
    e_v[r] = -w_c * mu * H
    group_v[r] = group[r - 1] + 1
    return J_v, e_v, group_v


# All strategies ----------------------------------------------------------------------------------


@spliced
def activate(chain: Chain, method: Method, q: Array, work: Workspace, c: Array) -> None:
    """Write h, z and the scale c (n,) of every column, before a step is solved."""
    work.z.fill(0.0)
    work.h.fill(0.0)
    if method.limits == JC or method.limits == ACTIVE:
        jc_activate(method, chain, q, work.J, work.e, work.h)
    if method.limits == CTP:
        ctp_activate(method, chain, q, work.J, work.e, work.h, work.z)
    elif method.limits == TP:
        tp_activate(method, chain, q, work.h, work.z)
    elif method.limits == JW:
        jw_activate(chain, q, work.memory, c)


@spliced
def revise(method: Method, chain: Chain, q: Array, dq: Array, h: Array, z: Array) -> bool:
    """After a step is solved: hold more joints and return True to have it solved again."""
    if method.limits == ACTIVE:
        return active_revise(chain, q, dq, h, z)
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


@inlined
def clip(lower: Array, upper: Array, q: Array) -> None:
    """Bring every joint value into its limits, in place."""
    for j in range(q.shape[0]):
        q[j] = min(max(q[j], lower[j]), upper[j])
