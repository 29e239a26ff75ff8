"""Limit strategies and secondary tasks: how a joint near its limit moves.

A strategy gives the activation h of each joint's limit, from 0 (free) to 1 (held), the motion z
that it asks for, and the scale c of each column. The step is then, for all of them,

dq = z + C P (e - J z),  P the law's inverse of J C without the held joints.

A strategy has a section with its formula and source. To add one, write its section, its id, its
name in `IDS`, and its branch in :func:`activate`.
"""

from math import sqrt, tanh

import numpy as np

from dls_ik.core.jit import allocating, force_inline, kernel
from dls_ik.core.objectives import limits_slope
from dls_ik.core.types import Array, Chain, LimitState, Memory, Method, MethodParams, Workspace

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
# Joint clamping: dq = H (J H)^+ e with H = 0 for a joint at its limit that the error pushes
# outward, else 1; motion past a limit is cut off (Colome & Torras 2012, Table III; Raunhardt &
# Boulic 2007).


@force_inline
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
# Joints that would pass a limit go to it, and the others make up for them. The step is solved again
# without the joints that are held, for the error that their own motion leaves, until no other joint
# passes a limit. This is the strategy of ``method="auto"``.


@force_inline
def active_revise(chain: Chain, q: Array, dq: Array, h: Array, z: Array) -> bool:
    """Hold every joint that `dq` takes past a limit at that limit; return whether there was one.

    Args:
        q: (n,), dq: (n,), h: (n,) in and out, z: (n,) out: motion to the limit.
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
# Continuous task priority: near a limit, keeping it has priority over the error, without a jump.
#
# dq = z + J^{(I-H)+} (e - J z) with z = -H mu (q - mid-range) (Colome & Torras 2012, (6); Mansard,
# Remazeilles & Chaumette 2009, (20)). The paper pushes toward zero, which for a joint whose range
# excludes zero is a push into the limit; mid-range serves any arm and gives the same figures on the
# WAM.
#
# While a target is followed, a joint inside its limits is held only as far as the error pushes it
# outward, and no joint is pushed back: where the target keeps the joint in its margin the push
# would make it oscillate, and the pose would not be reached.


LEAST_ACTIVATION = 1e-6
FULL_PUSH = 0.1  # cosine between a column and the error from which a push counts in full


@kernel
def activation(q: float, lower: float, upper: float, margin: float) -> float:
    """Return h in [0, 1]: 0 outside the margins of the range, 1 at a limit or beyond it.

    h = (1 + tanh(1/(1-u) - 1/u)) / 2 for a joint a fraction u into its margin. A joint that lacks
    one of its limits has no margin, and is free.
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
    """Write the activation of every joint and the push back in proportion to it.

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
    """Return how much the error pushes joint j toward its near limit, 0 to 1 without a jump."""
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
# Task priority: near a limit, keeping it has priority over the error, at once.
#
# dq = z + [J (I - H^+ H)]^+ (e - J z) with z = -H mu (q - mid-range): a joint whose activation is
# not zero is removed from the inverse, which is a jump (Colome & Torras 2012, (5)).


@kernel
def tp_activate(method: Method, chain: Chain, q: Array, h: Array, z: Array) -> None:
    """Write h, 0 or 1, and the push back in proportion to the activation.

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
# Jacobian weighting: a joint on its way to a limit costs more, and moves less.
#
# dq = W^-1 J^T (J W^-1 J^T)^-1 e, w_j = 1 + |dH_j| where |dH_j| has grown since the last step, else
# 1, with H the limit criterion (Colome & Torras 2012, Table III; Chan & Dubey 1995). Computed as
# dq = C (J C)^+ e with C = W^-1/2, so that it combines with every law and bound.


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
# Gradient projection: the redundancy that the task leaves minimises an objective H.
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
    params: MethodParams, joint_weights: Array, lambda2: float, v: Array, limit: LimitState
) -> float:
    """Write the motion and the scale of every column for one of the forms; return lambda^2.

    Args:
        lambda2: of the law, v: (n,).
    """
    z, c = limit.motion, limit.scale
    square = params.alpha1 * params.alpha1
    if params.form == WEIGHTED:
        for j in range(v.shape[0]):
            D2 = square + params.alpha2 * params.alpha2 * joint_weights[j]
            c[j] = 1.0 / sqrt(D2)
            z[j] = square / D2 * v[j]
        return 1.0
    scale = square / lambda2 if params.form == SCALED and lambda2 > 0.0 else 1.0
    for j in range(v.shape[0]):
        z[j] = scale * v[j]
    return lambda2


# TA -----------------------------------------------------------------------------------------------
# Task augmentation: the objective's gradient becomes one more row of the task.
#
# dq = J_v^+ e_v with J_v = [J; w_c grad H^T] and e_v = [e; -w_c mu H]: the objective is to fall by
# mu H in a step; with mu = 0, the default, it is to stay constant (Colome & Torras 2012, Table III;
# Egeland et al. 1991; weighted: Deo & Walker 1993, (19)). With mu > 0 the two tasks may conflict
# for good: no pose is then reached exactly unless a small w_c gives the pose priority.


@allocating
def ta_augmented(
    J: Array, e: Array, gradient: Array, H: float, mu: float, w_c: float
) -> tuple[Array, Array]:
    """Return J (r + 1, n) and e (r + 1,) with the row added, which is a group of its own."""
    r, n = J.shape
    J_v, e_v = np.empty((r + 1, n)), np.empty(r + 1)
    for i in range(r):
        e_v[i] = e[i]
        for j in range(n):
            J_v[i, j] = J[i, j]
    for j in range(n):
        J_v[r, j] = w_c * gradient[j]
    e_v[r] = -w_c * mu * H
    return J_v, e_v


# All strategies ----------------------------------------------------------------------------------


@kernel
def activate(chain: Chain, method: Method, q: Array, work: Workspace) -> None:
    """Write h, z and c of the strategy to ``work.limit``, before a step is solved."""
    h, z, c = work.limit.activation, work.limit.motion, work.limit.scale
    h.fill(0.0)
    z.fill(0.0)
    c.fill(1.0)
    if method.limits == JC or method.limits == ACTIVE:
        jc_activate(method, chain, q, work.J, work.e, h)
    elif method.limits == CTP:
        ctp_activate(method, chain, q, work.J, work.e, h, z)
    elif method.limits == TP:
        tp_activate(method, chain, q, h, z)
    elif method.limits == JW:
        jw_activate(chain, q, work.memory, c)


@force_inline
def revise(method: Method, chain: Chain, q: Array, dq: Array, limit: LimitState) -> bool:
    """After a step is solved: hold more joints and return True to have it solved again."""
    if method.limits == ACTIVE:
        return active_revise(chain, q, dq, limit.activation, limit.motion)
    return False


@force_inline
def revises(method: Method) -> bool:
    """Test if more joints are held once a step is known."""
    return method.limits == ACTIVE


@force_inline
def clips(method: Method) -> bool:
    """Test if motion past a limit is cut off after the step."""
    return method.limits == JC or method.limits == ACTIVE


@force_inline
def has_objective(method: Method) -> bool:
    """Test if the strategy minimises an objective."""
    return method.limits == GP or method.limits == TA


@force_inline
def clip_to_limits(lower: Array, upper: Array, q: Array) -> None:
    """Bring every joint value into its limits, in place."""
    for j in range(q.shape[0]):
        q[j] = min(max(q[j], lower[j]), upper[j])
