# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
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
from dls_ik.core.kinematics import forward
from dls_ik.core.linalg import copy, svd
from dls_ik.core.objectives import limits_gradient, limits_slope
from dls_ik.core.task import task_jacobian
from dls_ik.core.types import (
    Array,
    Chain,
    GeneralProblem,
    LimitState,
    Memory,
    Method,
    MethodParams,
    Workspace,
)

NONE, JC, CTP, ACTIVE, JW, GP, TA, TP, WLN, JC_AS_RUN = range(10)
IDS = {
    "none": NONE,
    "jw": JW,
    "gp": GP,
    "ta": TA,
    "wln": WLN,
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


# JC as the published code ran it (bug-compatible): joints beyond a limit are set on it and are out
# of that step, with the error of the configuration before and the Jacobian of the one after.
# Nothing is cut off after the step, so that answers may lie outside.


BEYOND = 1e-12  # [rad or m]; setting a joint on its limit rounds


@force_inline
def is_beyond(chain: Chain, j: int, q: float) -> bool:
    """Test if joint j is outside its limits."""
    return q > chain.upper[j] + BEYOND or q < chain.lower[j] - BEYOND


@allocating
def jacobian_within(
    chain: Chain, general: GeneralProblem, T_d: Array, q: Array, h: Array, work: Workspace
) -> None:
    """Hold the joints beyond a limit; write the Jacobian with them on it to ``work.J``.

    Args:
        T_d: (k, 4, 4), q: (n,), h: (n,) out, 0 or 1.
    """
    outside = False
    for j in range(q.shape[0]):
        if is_beyond(chain, j, q[j]):
            h[j], outside = 1.0, True
    if outside:
        within = np.empty(q.shape[0])
        copy(q, within)
        clip_to_limits(chain.lower, chain.upper, within)
        forward(chain, within, work.axes, work.T)
        task_jacobian(chain, general.task, T_d, work.axes, work.T, work.relative, work.J)


@kernel
def add_way_to_limits(chain: Chain, q: Array, dq: Array) -> None:
    """Add the way of joints beyond a limit to it to the step dq (n,)."""
    for j in range(q.shape[0]):
        if is_beyond(chain, j, q[j]):
            dq[j] += min(max(q[j], chain.lower[j]), chain.upper[j]) - q[j]


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
# WAM. Bug-compatible: toward zero.
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
    method: Method, to_zero: bool, chain: Chain, q: Array, J: Array, e: Array, h: Array, z: Array
) -> None:
    """Write the activation of every joint and the push back in proportion to it.

    Args:
        to_zero: as published: toward zero, not toward mid-range.
        q: (n,), J: (6, n), e: (6,), h: (n,) out, z: (n,) out.
    """
    for j in range(q.shape[0]):
        lower, upper = chain.lower[j], chain.upper[j]
        h[j] = activation(q[j], lower, upper, method.margin)
        if h[j] > 0.0:
            middle = 0.5 * (lower + upper)
            if not method.following:
                z[j] = -h[j] * method.mu * (q[j] if to_zero else q[j] - middle)
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
# not zero is removed from the inverse, which is a jump (Colome & Torras 2012, (5)). Bug-compatible:
# the published code takes the pseudoinverse of H for H, z = -mu q / h of an active joint, which has
# no bound where h begins.


@kernel
def tp_activate(method: Method, as_run: bool, chain: Chain, q: Array, h: Array, z: Array) -> None:
    """Write h, 0 or 1, and the push back in proportion to the activation.

    Args:
        as_run: as published: toward zero, in proportion to the inverse of the activation.
        q: (n,), h: (n,) out, z: (n,) out.
    """
    for j in range(q.shape[0]):
        lower, upper = chain.lower[j], chain.upper[j]
        active = activation(q[j], lower, upper, method.margin)
        if active > 0.0:
            h[j] = 1.0
            if as_run:
                z[j] = -method.mu * q[j] / active
            else:
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
# Bug-compatible: v = mu grad H, the sign of Table III, which leads away from mid-range.
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


# WLN ----------------------------------------------------------------------------------------------
# Weighted least norm: motion along the gradient of the limit criterion costs more where it is high.
#
# dq = C (J C)^+ e with C^2 = I - (1 - w) g g^T, g the unit gradient of the criterion H of `limits`;
# w = 1 up to H + 2 + g . J^+ e = 20, and 10^4 / (10^4 + d^4) where that is d above: where the step
# by the pseudoinverse would raise H far. This is the row TA of Table V in the public code of
# Colome & Torras 2012, there in a basis of g and its complement, with -(H + 2) for H and a gain k,
# our alpha. With diagonal weights it is JW (Chan & Dubey 1995).


WLN_ONSET = 20.0  # of H + 2, which is 2 in mid-range
WLN_WIDTH = 10.0  # above it, where w is one half
WLN_LEAST = 1e-6  # of sqrt(w): below, rounding would decide the step of an arm without redundancy
NEGLIGIBLE = 1e-12  # share of the largest singular value up to which another one counts as zero


@allocating
def wln_activate(chain: Chain, method: Method, q: Array, J: Array, e: Array, a: Array) -> None:
    """Write the axis a (n,) of C = I - a a^T, its squared length 1 - sqrt(w).

    Args:
        q: (n,), J: (r, n), e: (r,).
    """
    r, n = J.shape
    H = limits_gradient(chain, q, a)
    length = 0.0
    for j in range(n):
        length += a[j] * a[j]
    length = sqrt(length)
    if not length > 0.0:
        return
    # g . J^+ e, how far the pseudoinverse moves along the gradient.
    Ut, s, Vt = np.empty((r, r)), np.empty(r), np.empty((r, n))
    svd(J, Ut, s, Vt)
    along = 0.0
    for i in range(r):
        if s[i] > NEGLIGIBLE * s[0]:
            task, joints = 0.0, 0.0
            for k in range(r):
                task += Ut[i, k] * e[k]
            for j in range(n):
                joints += Vt[i, j] * a[j] / length
            along += task * joints / s[i]
    d = max(0.0, H + 2.0 - WLN_ONSET + method.alpha * along) / WLN_WIDTH
    kept = max(1.0 / sqrt(1.0 + min(d, 1e30) ** 4), WLN_LEAST)  # sqrt(w)
    for j in range(n):
        a[j] *= sqrt(1.0 - kept) / length


@allocating
def weigh_columns(B: Array, a: Array) -> None:
    """Multiply B (r, n) by C = I - a a^T in place."""
    for i in range(B.shape[0]):
        weigh(B[i], a)


@kernel
def weigh(x: Array, a: Array) -> None:
    """Multiply x (n,) by C = I - a a^T in place."""
    along = 0.0
    for j in range(x.shape[0]):
        along += a[j] * x[j]
    for j in range(x.shape[0]):
        x[j] -= a[j] * along


@allocating
def unweigh_columns(B: Array, a: Array) -> None:
    """Multiply B (r, n) by the inverse of C = I - a a^T in place."""
    kept = 1.0
    for j in range(a.shape[0]):
        kept -= a[j] * a[j]
    for i in range(B.shape[0]):
        along = 0.0
        for j in range(a.shape[0]):
            along += a[j] * B[i, j]
        for j in range(a.shape[0]):
            B[i, j] += a[j] * along / kept


# All strategies ----------------------------------------------------------------------------------


@kernel
def activate(
    chain: Chain, method: Method, general: GeneralProblem, T_d: Array, q: Array, work: Workspace
) -> None:
    """Write h, z and C of the strategy to ``work.limit``, before a step is solved."""
    as_run = general.params.bug_compatible
    h, z, c = work.limit.activation, work.limit.motion, work.limit.scale
    h.fill(0.0)
    z.fill(0.0)
    c.fill(1.0)
    if method.limits == JC or method.limits == ACTIVE:
        jc_activate(method, chain, q, work.J, work.e, h)
    elif method.limits == CTP:
        ctp_activate(method, as_run, chain, q, work.J, work.e, h, z)
    elif method.limits == TP:
        tp_activate(method, as_run, chain, q, h, z)
    elif method.limits == JW:
        jw_activate(chain, q, work.memory, c)
    elif method.limits == WLN:
        wln_activate(chain, method, q, work.J, work.e, work.limit.axis)
    elif method.limits == JC_AS_RUN:
        jacobian_within(chain, general, T_d, q, h, work)


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
