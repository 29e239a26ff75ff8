# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Limit strategies and secondary tasks: motion of joints near their limits.

A strategy computes the activation h of the limit of each joint, from 0 (free) to 1 (held), a motion
z, and the scale c of each column. The step of every strategy is

dq = z + C P (e - J z),  P the law's inverse of J C without the held joints.

Each strategy has a section with its formula and source. To add a strategy, write its section, its
id, its name in `LIMIT_IDS`, and its branch in :func:`activate`.
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

NO_LIMIT_STRATEGY, JC, CTP, ACTIVE, JW, GP, TA, TP, WLN, JC_AS_RUN = range(10)
LIMIT_IDS = {
    "none": NO_LIMIT_STRATEGY,
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
# outward, else 1; the step is clipped to the limits (Colome & Torras 2012, Table III; Raunhardt &
# Boulic 2007).


@force_inline
def jc_activate(method: Method, chain: Chain, q: Array, J: Array, e: Array, h: Array) -> None:
    """Hold the joints at or beyond a limit that the gradient of the error pushes outward.

    Args:
        q: (n,) joint positions [rad or m].
        J: (r, n) Jacobian.
        e: (r,) scaled error.
        h: (n,) activations 0 or 1, written.
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


# JC as in the published code (bug-compatible): joints beyond a limit are set to the limit and do
# not take part in the step, which combines the error before this change with the Jacobian after it.
# The step is not clipped to the limits, so that solutions may be outside.


LIMIT_ROUNDING = 1e-12  # [rad or m] tolerance for the rounding of a joint set to its limit


@force_inline
def is_beyond(chain: Chain, j: int, q: float) -> bool:
    """Return whether joint j is outside its limits."""
    return q > chain.upper[j] + LIMIT_ROUNDING or q < chain.lower[j] - LIMIT_ROUNDING


@allocating
def jacobian_within(
    chain: Chain, general: GeneralProblem, T_d: Array, q: Array, h: Array, work: Workspace
) -> None:
    """Hold the joints beyond a limit; write the Jacobian with these joints at the limit.

    Args:
        T_d: (k, 4, 4) desired poses.
        q: (n,) joint positions [rad or m].
        h: (n,) activations 0 or 1, written.
        work: The Jacobian is written to `J`.
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
def add_path_to_limits(chain: Chain, q: Array, dq: Array) -> None:
    """Add the motion that returns joints beyond a limit to the limit to the step dq (n,)."""
    for j in range(q.shape[0]):
        if is_beyond(chain, j, q[j]):
            dq[j] += min(max(q[j], chain.lower[j]), chain.upper[j]) - q[j]


# The active set -----------------------------------------------------------------------------------
# Joints that would pass a limit move to the limit, and the other joints compensate. The step is
# solved again without the held joints, for the error that remains after their motion, until no
# other joint passes a limit. This is the strategy of ``method="auto"``.


@force_inline
def active_revise(chain: Chain, q: Array, dq: Array, h: Array, z: Array) -> bool:
    """Hold every joint at the limit that `dq` would make it pass.

    Args:
        q: (n,) joint positions [rad or m].
        dq: (n,) step [rad or m].
        h: (n,) activations, read and written.
        z: (n,) motion to the limit, written for held joints.

    Returns:
        Whether any further joint is held.
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
# Continuous task priority: near a limit, the limit has priority over the error, continuously.
#
# dq = z + J^{(I-H)+} (e - J z) with z = -H mu (q - mid-range) (Colome & Torras 2012, (6); Mansard,
# Remazeilles & Chaumette 2009, (20)). The paper pushes toward zero, which for a joint whose range
# excludes zero pushes into the limit. Mid-range is valid for every arm and gives the same results
# for the WAM. Bug-compatible: toward zero.
#
# While a target is followed, a joint inside its limits is held only to the degree that the error
# pushes the joint outward, and no joint is pushed back. If the target keeps the joint in its
# margin, a push back would cause oscillation, and the pose would not be reached.


LEAST_ACTIVATION = 1e-6
FULL_PUSH = 0.1  # minimum cosine between a column and the error for a full push


@kernel
def activation(q: float, lower: float, upper: float, margin: float) -> float:
    """Return h in [0, 1]: 0 outside the margins of the range, 1 at a limit or beyond it.

    h = (1 + tanh(1/(1-u) - 1/u)) / 2 for a joint at a fraction u of its margin. A joint without
    two limits has no margin and is free.

    Args:
        q: Joint position [rad or m].
        lower, upper: Limits [rad or m].
        margin: Width of the margin, as a fraction of the range.
    """
    width = margin * (upper - lower)
    if not width < 1e300:
        return 0.0
    depth = max(q - (upper - width), (lower + width) - q)
    if depth >= width:  # first, because width may be 0
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
    """Write the activation of every joint, and the push back in proportion to the activation.

    Args:
        to_zero: Push toward zero, as published, instead of mid-range.
        q: (n,) joint positions [rad or m].
        J: (r, n) Jacobian.
        e: (r,) scaled error.
        h: (n,) activations, written.
        z: (n,) motion, written.
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
    """Return the degree, 0 to 1, to which the error pushes joint j toward its closer limit."""
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
# Task priority: near a limit, the limit has priority over the error, with a jump.
#
# dq = z + [J (I - H^+ H)]^+ (e - J z) with z = -H mu (q - mid-range): a joint whose activation is
# not zero is removed from the inverse, which is a jump (Colome & Torras 2012, (5)). Bug-compatible:
# the published code uses the pseudoinverse of H instead of H, so that z = -mu q / h for an active
# joint, which is unbounded for small h.


@kernel
def tp_activate(method: Method, as_run: bool, chain: Chain, q: Array, h: Array, z: Array) -> None:
    """Write h, 0 or 1, and the push back in proportion to the activation.

    Args:
        as_run: Push toward zero, in proportion to the inverse of the activation, as published.
        q: (n,) joint positions [rad or m].
        h: (n,) activations 0 or 1, written.
        z: (n,) motion, written.
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
# Jacobian weighting: a joint that approaches a limit costs more and moves less.
#
# dq = W^-1 J^T (J W^-1 J^T)^-1 e, w_j = 1 + |dH_j| where |dH_j| has grown since the last step, else
# 1, with H the limit criterion (Colome & Torras 2012, Table III; Chan & Dubey 1995). Computed as
# dq = C (J C)^+ e with C = W^-1/2, so that it combines with every law and bound.


@kernel
def jw_activate(chain: Chain, q: Array, memory: Memory, c: Array) -> None:
    """Write the scale of every column, and store the gradient of the criterion in the memory.

    Args:
        q: (n,) joint positions [rad or m].
        c: (n,) scales, written.
    """
    last = memory.gradient
    for j in range(q.shape[0]):
        now = abs(limits_slope(q[j], chain.lower[j], chain.upper[j], q.shape[0]))
        before = last[j] if memory.steps[0] > 0 else 0.0
        c[j] = 1.0 / sqrt(1.0 + now) if now > before else 1.0
        last[j] = now


# GP -----------------------------------------------------------------------------------------------
# Gradient projection: the redundancy left by the task minimises an objective H.
#
# dq = J+ e + (I - J+ J) v with v = -mu grad H (Colome & Torras 2012, Table III; Liegeois 1977).
# With damping, J* is the damped inverse (Deo & Walker 1993, section 4; lambda in the paper is
# lambda^2 here):
#
# (24)  dq = J* e + (I - J* J) v
# (23)  dq = J* e + alpha1^2 / lambda^2 (I - J* J) v
# (22)  dq = (J^T J + alpha1^2 I + alpha2^2 A)^-1 (J^T e + alpha1^2 v)
#
# Bug-compatible: v = mu grad H, the sign of Table III, which leads away from mid-range.
#
# Each form is dq = z + C P(J C) (e - J z): z = v for (24), z = alpha1^2 / lambda^2 v for (23), and
# for (22), with D^2 = alpha1^2 I + alpha2^2 A: C = D^-1, z = alpha1^2 D^-2 v and lambda = 1.


FORM_PLAIN, FORM_SCALED, FORM_WEIGHTED = 24, 23, 22


@kernel
def gp_activate(
    params: MethodParams, joint_weights: Array, lambda2: float, v: Array, limit: LimitState
) -> float:
    """Write the motion and the scale of every column for one of the forms.

    Args:
        joint_weights: (n,) diagonal of A.
        lambda2: lambda^2 of the law.
        v: (n,) -mu times the gradient of the objective.
        limit: `motion` and `scale` are written.

    Returns:
        lambda^2 for the inverse.
    """
    z, c = limit.motion, limit.scale
    square = params.alpha1 * params.alpha1
    if params.form == FORM_WEIGHTED:
        for j in range(v.shape[0]):
            D2 = square + params.alpha2 * params.alpha2 * joint_weights[j]
            c[j] = 1.0 / sqrt(D2)
            z[j] = square / D2 * v[j]
        return 1.0
    scale = square / lambda2 if params.form == FORM_SCALED and lambda2 > 0.0 else 1.0
    for j in range(v.shape[0]):
        z[j] = scale * v[j]
    return lambda2


# TA -----------------------------------------------------------------------------------------------
# Task augmentation: the gradient of the objective becomes a further row of the task.
#
# dq = J_v^+ e_v with J_v = [J; w_c grad H^T] and e_v = [e; -w_c mu H]: the objective falls by mu H
# in a step; with mu = 0, the default, the objective stays constant (Colome & Torras 2012, Table
# III; Egeland et al. 1991; weighted: Deo & Walker 1993, (19)). With mu > 0 the two tasks may
# conflict permanently. Poses are then not reached exactly, unless a small w_c gives the pose
# priority.


@allocating
def ta_augmented(
    J: Array, e: Array, gradient: Array, H: float, mu: float, w_c: float
) -> tuple[Array, Array]:
    """Return J (r + 1, n) and e (r + 1,) with the added row, which forms its own group.

    Args:
        J: (r, n) Jacobian.
        e: (r,) scaled error.
        gradient: (n,) gradient of the objective.
        H: Value of the objective.
        mu: Gain of the objective.
        w_c: Weight of the row.
    """
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
# Weighted least norm: motion along the gradient of a high limit criterion costs more.
#
# dq = C (J C)^+ e with C^2 = I - (1 - w) g g^T, g the unit gradient of the criterion H of `limits`;
# w = 1 up to H + 2 + g . J^+ e = 20, and 10^4 / (10^4 + d^4) for a sum larger by d, when the step
# of the pseudoinverse would raise H. This is the row TA of Table V in the public code of Colome &
# Torras 2012, which uses a basis of g and its complement, -(H + 2) instead of H, and a gain k, here
# alpha. With diagonal weights the strategy is JW (Chan & Dubey 1995).


WLN_ONSET = 20.0  # maximum predicted H + 2 with w = 1; H + 2 is 2 in mid-range
WLN_WIDTH = 10.0  # excess over WLN_ONSET at which w is one half
WLN_LEAST = 1e-6  # minimum sqrt(w); lower values would amplify rounding without redundancy
NEGLIGIBLE = 1e-12  # singular values up to this share of the largest one count as zero


@allocating
def wln_activate(chain: Chain, method: Method, q: Array, J: Array, e: Array, a: Array) -> None:
    """Write the axis a of C = I - a a^T; the squared length of a is 1 - sqrt(w).

    Args:
        q: (n,) joint positions [rad or m].
        J: (r, n) Jacobian.
        e: (r,) scaled error.
        a: (n,) axis, written.
    """
    r, n = J.shape
    H = limits_gradient(chain, q, a)
    length = 0.0
    for j in range(n):
        length += a[j] * a[j]
    length = sqrt(length)
    if not length > 0.0:
        return
    # Compute g . J^+ e, the motion of the pseudoinverse along the gradient.
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
    """Write h, z and C of the strategy to ``work.limit`` before a step is solved.

    Args:
        T_d: (k, 4, 4) desired poses.
        q: (n,) joint positions [rad or m].
    """
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
    """Hold more joints after a step is solved; return True if the step must be solved again."""
    if method.limits == ACTIVE:
        return active_revise(chain, q, dq, limit.activation, limit.motion)
    return False


@force_inline
def revises(method: Method) -> bool:
    """Return whether the strategy holds more joints after a step is solved."""
    return method.limits == ACTIVE


@force_inline
def clips(method: Method) -> bool:
    """Return whether the step is clipped to the limits."""
    return method.limits == JC or method.limits == ACTIVE


@force_inline
def has_objective(method: Method) -> bool:
    """Return whether the strategy minimises an objective."""
    return method.limits == GP or method.limits == TA


@force_inline
def clip_to_limits(lower: Array, upper: Array, q: Array) -> None:
    """Clip joint positions q (n,) to their limits, in place."""
    for j in range(q.shape[0]):
        q[j] = min(max(q[j], lower[j]), upper[j])
