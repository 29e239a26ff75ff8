# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Limit strategies, which treat joints near their limits, and secondary tasks.

A strategy computes for each joint the activation h of its limit, from 0 (free) to 1 (held), a
motion z, and the scale c of its column of the Jacobian. The step of every strategy is

dq = z + C P (e - J z)

with C = diag(c) and P the inverse of J C by the damping law, without the columns of held joints.

The strategies SNS and HQP compute the whole step, see core/saturation.py. SRTP, AVOID, IDV and CNS
are in core/priorities.py, SQP and DUAL in core/sqp.py, and QUIK in core/halley.py.

Each strategy has a section with its formula and source. To add a strategy, write its section, its
id, its name in `LIMIT_IDS`, and its branch in :func:`activate`. The option `bug_compatible`
reproduces errors of the published code of Colome & Torras 2012.
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

NO_LIMIT_STRATEGY, JC, CTP, ACTIVE, JW, GP, TA, TP, GWLN, JC_AS_RUN, SNS, HQP = range(12)
SRTP, AVOID, IDV, CNS, SQP, DUAL, QUIK = range(12, 19)
LIMIT_IDS = {
    "none": NO_LIMIT_STRATEGY,
    "jw": JW,
    "gp": GP,
    "ta": TA,
    "gwln": GWLN,
    "jc": JC,
    "tp": TP,
    "ctp": CTP,
    "sns": SNS,
    "hqp": HQP,
    "srtp": SRTP,
    "avoid": AVOID,
    "idv": IDV,
    "cns": CNS,
    "active": ACTIVE,
}


# JC -----------------------------------------------------------------------------------------------
# Joint clamping: dq = H (J H)^+ e with a diagonal matrix H. An entry of H is 0 for a joint that is
# at its limit and that the error pushes outward, else 1. The step is clipped to the limits (Colome
# & Torras 2012, Table III; Raunhardt & Boulic 2007).


@force_inline
def jc_activate(method: Method, chain: Chain, q: Array, J: Array, e: Array, h: Array) -> None:
    """Apply the strategy JC (joint clamping): hold joints that would move out of their limits.

    A joint is held, that is, excluded from the step, if it is at or beyond a limit and the
    direction J^T e, along which the error decreases, moves the joint farther outward.

    Args:
        method: Not used.
        chain: Limits of the joints.
        q: (n,) joint positions [rad or m].
        J: (r, n) Jacobian of the scaled error.
        e: (r,) scaled error [m].
        h: (n,) activations of the limits, set to 1 for held joints.
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


# JC as in the published code (bug-compatible): joints beyond a limit are moved to the limit and are
# not part of the step. The step is computed from the error before this motion and the Jacobian
# after this motion. The step is not clipped to the limits, so that solutions may violate limits.


LIMIT_ROUNDING = 1e-12  # [rad or m] rounding error of a joint that was moved to its limit


@force_inline
def is_beyond(chain: Chain, j: int, q: float) -> bool:
    """Return whether the position q [rad or m] of joint j is outside its limits."""
    return q > chain.upper[j] + LIMIT_ROUNDING or q < chain.lower[j] - LIMIT_ROUNDING


@allocating
def jacobian_within(
    chain: Chain, general: GeneralProblem, T_d: Array, q: Array, h: Array, work: Workspace
) -> None:
    """Hold each joint beyond a limit, and evaluate the Jacobian with this joint at its limit.

    This is the strategy JC (joint clamping) as the published code implements it. The option
    `bug_compatible` selects it.

    Args:
        chain: The chain of the arm.
        general: Definition of the task.
        T_d: (k, 4, 4) desired poses.
        q: (n,) joint positions [rad or m].
        h: (n,) activations of the limits, set to 1 for held joints.
        work: If any joint is held, the kinematics and `J` are overwritten with their values for
            the joint positions clipped to the limits.
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
    """For each joint beyond a limit, add the motion from its position to the limit to the step dq.

    Args:
        chain: Limits of the joints.
        q: (n,) joint positions [rad or m].
        dq: (n,) step, read and written [rad or m].
    """
    for j in range(q.shape[0]):
        if is_beyond(chain, j, q[j]):
            dq[j] += min(max(q[j], chain.lower[j]), chain.upper[j]) - q[j]


# The active set -----------------------------------------------------------------------------------
# Joints that would pass a limit move to the limit, and the other joints compensate. The step is
# solved again without the held joints, for the error that remains after their motion, until no
# other joint passes a limit. This is the strategy of ``method="auto"``.


@force_inline
def active_revise(chain: Chain, q: Array, dq: Array, h: Array, z: Array) -> bool:
    """Hold each free joint that the step dq would move beyond a limit, at this limit.

    This is the active-set strategy; the caller solves the step again for the joints that remain
    free.

    Args:
        chain: Limits of the joints.
        q: (n,) joint positions [rad or m].
        dq: (n,) step [rad or m].
        h: (n,) activations of the limits, 0 for free joints; set to 1 for joints that become held.
        z: (n,) motion to the limit, written for joints that become held [rad or m].

    Returns:
        Whether any joint became held.
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
# Continuous task priority: a joint near its limit gives the limit priority over the error. The
# priority changes continuously with the distance from the limit.
#
# dq = z + J^{(I-H)+} (e - J z) with z = -H mu (q - mid-range) (Colome & Torras 2012, (6); Mansard,
# Remazeilles & Chaumette 2009, (20)). In the paper, z pushes joints toward zero. If the range of a
# joint excludes zero, this is a push into the limit. A push toward mid-range is correct for every
# arm and gives the same results for the WAM. With `bug_compatible`, z pushes toward zero.
#
# While a target is followed, a joint inside its limits is held only to the degree that the error
# pushes the joint outward, and z is zero. If following the target requires a joint near its limit,
# a push would cause oscillation, and the pose would not be reached.


LEAST_ACTIVATION = 1e-6
FULL_PUSH = 0.1  # cosine between a column of J and the error from which a push counts fully


@kernel
def activation(q: float, lower: float, upper: float, margin: float) -> float:
    """Return the activation h of the limits of one joint, in [0, 1].

    The two margins are intervals at the lower and at the upper end of the range. h is 0 between the
    margins, 1 at a limit and beyond, and (1 + tanh(1/(1-u) - 1/u)) / 2 in a margin, with u the
    depth in the margin from 0 to 1 (at the limit). h is 0 for a joint without two limits.

    Args:
        q: Joint position [rad or m].
        lower, upper: Limits [rad or m].
        margin: Width of each margin, as a fraction of the range.
    """
    width = margin * (upper - lower)
    if not width < 1e300:
        return 0.0
    depth = max(q - (upper - width), (lower + width) - q)
    if depth >= width:  # comes before the division by `width`, which may be 0
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
    """Apply the strategy CTP (continuous task priority) to joints in the margins of their ranges.

    The margins are intervals next to the two limits of a joint. In a margin, the activation h of
    the joint grows from 0 to 1 at the limit, see :func:`activation`, and the motion z moves the
    joint away from the limit.

    Args:
        method: The fields `margin`, `mu` (gain of z) and `following` are used. If `following` is
            true (a moving target is followed), z is not written, and h is reduced unless the error
            moves the joint toward the limit.
        to_zero: Whether z leads to the joint position zero, as in the published method, instead of
            the middle of the range.
        chain: Limits of the joints.
        q: (n,) joint positions [rad or m].
        J: (r, n) Jacobian of the scaled error.
        e: (r,) scaled error [m].
        h: (n,) activations, written.
        z: (n,) motion of joints in a margin [rad or m], written if no moving target is followed.
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
    """Return the degree, 0 to 1, to which J^T e moves joint j toward its closer limit.

    Args:
        J: (r, n) Jacobian of the scaled error.
        e: (r,) scaled error [m].
        j: Index of the joint.
        outward: Position relative to mid-range, whose sign is the direction of the closer limit.
    """
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
# Task priority: a joint near its limit gives the limit priority over the error. The priority
# changes discontinuously.
#
# dq = z + [J (I - H^+ H)]^+ (e - J z) with z = -H mu (q - mid-range). A joint whose activation is
# not zero is removed from the inverse, so that dq jumps at the border of the margin (Colome &
# Torras 2012, (5)). The published code uses the pseudoinverse of H instead of H. With
# `bug_compatible`, therefore, z = -mu q / h for an active joint, which is unbounded for small h.


@kernel
def tp_activate(
    method: Method, as_published: bool, chain: Chain, q: Array, h: Array, z: Array
) -> None:
    """Apply the strategy TP (task priority) to joints in the margins of their ranges.

    The margins are intervals next to the two limits of a joint. A joint in a margin is held: it
    does not correct the error, but moves by z = -a mu (q - mid-range) away from the limit, where a
    is the result of :func:`activation`, which grows from 0 to 1 at the limit.

    Args:
        method: The fields `margin` and `mu` (gain of z) are used.
        as_published: Whether z is -mu q / a instead, as in the published code.
        chain: Limits of the joints.
        q: (n,) joint positions [rad or m].
        h: (n,) 1 for held joints; written for joints in a margin.
        z: (n,) motion of held joints [rad or m], written for joints in a margin.
    """
    for j in range(q.shape[0]):
        lower, upper = chain.lower[j], chain.upper[j]
        active = activation(q[j], lower, upper, method.margin)
        if active > 0.0:
            h[j] = 1.0
            if as_published:
                z[j] = -method.mu * q[j] / active
            else:
                z[j] = -active * method.mu * (q[j] - 0.5 * (lower + upper))


# JW -----------------------------------------------------------------------------------------------
# Jacobian weighting: a joint that approaches a limit has a larger weight and moves less.
#
# dq = W^-1 J^T (J W^-1 J^T)^-1 e with W = diag(w). The weight w_j is 1 + |dH_j| if |dH_j| has grown
# since the last step, else 1, with dH_j the derivative of the limit criterion H of `limits` by q_j
# (Colome & Torras 2012, Table III; Chan & Dubey 1995). The step is computed as dq = C (J C)^+ e
# with C = W^-1/2, so that the strategy can be combined with every damping law and step bound.


@kernel
def jw_activate(chain: Chain, q: Array, memory: Memory, c: Array) -> None:
    """Write the factor c_j of each Jacobian column, for the strategy JW (Jacobian weighting).

    The weight w_j of joint j is 1 + |dH/dq_j| if |dH/dq_j| has grown since the last step, else 1. H
    is the objective `limits`, a penalty near joint limits.

    Args:
        chain: Limits of the joints.
        q: (n,) joint positions [rad or m].
        memory: Stores |dH/dq_j| of the last step in `gradient`, which is read and replaced.
        c: (n,) factors c_j = 1 / sqrt(w_j), written.
    """
    last = memory.gradient
    for j in range(q.shape[0]):
        now = abs(limits_slope(q[j], chain.lower[j], chain.upper[j], q.shape[0]))
        before = last[j] if memory.steps[0] > 0 else 0.0
        c[j] = 1.0 / sqrt(1.0 + now) if now > before else 1.0
        last[j] = now


# GP -----------------------------------------------------------------------------------------------
# Gradient projection: motion in the null space of the task minimises an objective H.
#
# dq = J+ e + (I - J+ J) v with v = -mu grad H (Colome & Torras 2012, Table III; Liegeois 1977).
# With damping, there are three forms, in which J* is the damped inverse (Deo & Walker 1993, section
# 4; lambda in the paper is lambda^2 here):
#
# (24)  dq = J* e + (I - J* J) v
# (23)  dq = J* e + alpha1^2 / lambda^2 (I - J* J) v
# (22)  dq = (J^T J + alpha1^2 I + alpha2^2 A)^-1 (J^T e + alpha1^2 v)
#
# With `bug_compatible`, v = mu grad H, the sign of Table III, which leads away from mid-range.
#
# Each form is computed as dq = z + C P (e - J z), with P the damped inverse of J C. Form (24) has
# z = v and C = I; form (23) has z = alpha1^2 / lambda^2 v and C = I. For form (22), let
# D^2 = alpha1^2 I + alpha2^2 A: then C = D^-1, z = alpha1^2 D^-2 v, and lambda = 1.


FORM_PLAIN, FORM_SCALED, FORM_WEIGHTED = 24, 23, 22


@kernel
def gp_activate(
    params: MethodParams, joint_weights: Array, lambda2: float, v: Array, limit: LimitState
) -> float:
    """Apply the strategy GP (gradient projection): write the motion z and the scale c of columns.

    Args:
        params: The form, alpha1 and alpha2.
        joint_weights: (n,) diagonal of A in form (22).
        lambda2: lambda^2 of the damping law.
        v: (n,) -mu times the gradient of the objective.
        limit: `motion` is written, and `scale` for form (22).

    Returns:
        lambda^2 to use for the inverse: 1 for form (22), otherwise `lambda2`.
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
# Task augmentation: the gradient of the objective H is added to the task as one more row.
#
# dq = J_v^+ e_v with J_v = [J; w_c grad H^T] and e_v = [e; -w_c mu H]. To first order, the
# objective decreases by mu H in a step; with mu = 0, the default, it is constant (Colome & Torras
# 2012, Table III; Egeland et al. 1991; with the weight w_c: Deo & Walker 1993, (19)). With mu > 0
# the pose and the objective may conflict permanently. Poses are then not reached exactly, unless a
# small w_c gives them priority.


@allocating
def ta_augmented(
    J: Array, e: Array, gradient: Array, H: float, mu: float, w_c: float
) -> tuple[Array, Array]:
    """Apply the strategy TA (task augmentation): add a row for an objective to the task.

    The Jacobian (r + 1, n) and the error (r + 1,) of the augmented task are returned.

    Args:
        J: (r, n) Jacobian of the scaled error.
        e: (r,) scaled error [m].
        gradient: (n,) gradient of the objective.
        H: Value of the objective.
        mu: Gain of the objective.
        w_c: Weight of the added row.
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


# GWLN ---------------------------------------------------------------------------------------------
# General-weighted least norm: if the limit criterion H is high, motion along its gradient is
# reduced.
#
# dq = C (J C)^+ e with C^2 = I - (1 - w) g g^T, where g is the unit gradient of the limit criterion
# H, the objective `limits`. The weight w depends on H + 2 + alpha g . J^+ e, which predicts H + 2
# after the step alpha J^+ e: w is 1 up to the value 20, and 10^4 / (10^4 + d^4) for the value
# 20 + d. Xiang, Zhong & Wei 2010 weight one direction, as here; Chan & Dubey 1995 use a diagonal
# weight matrix, which is the strategy JW. The formula of w comes from row TA of Table V in the
# Matlab file of Colome & Torras 2012. The file computes the step in a basis of g and its
# complement, and uses -(H + 2) instead of H and the letter k for alpha.


GWLN_ONSET = 20.0  # w is 1 up to this predicted H + 2, which is 2 if all joints are in mid-range
GWLN_WIDTH = 10.0  # w is one half if the predicted H + 2 is GWLN_ONSET + GWLN_WIDTH
GWLN_LEAST = 1e-6  # minimum sqrt(w); without redundancy, lower values would amplify rounding errors
NEGLIGIBLE = 1e-12  # singular values up to this share of the largest one count as zero


@allocating
def gwln_activate(chain: Chain, method: Method, q: Array, J: Array, e: Array, a: Array) -> None:
    """Write the vector a of the strategy GWLN (general-weighted least norm).

    The strategy replaces the Jacobian J by J C with C = I - a a^T, which reduces motion along a
    toward the joint limits. a is sqrt(1 - sqrt(w)) times the unit gradient of the objective
    `limits`, a penalty near joint limits; w, 0 to 1, is the weight of motion along this gradient.

    Args:
        chain: Limits of the joints.
        method: Its gain alpha is used to predict the objective after the step.
        q: (n,) joint positions [rad or m].
        J: (r, n) Jacobian of the scaled error.
        e: (r,) scaled error [m].
        a: (n,) vector, written; zero if the gradient is zero.
    """
    r, n = J.shape
    H = limits_gradient(chain, q, a)
    length = 0.0
    for j in range(n):
        length += a[j] * a[j]
    length = sqrt(length)
    if not length > 0.0:
        return
    # Compute g . J^+ e, the component along the gradient of the step by the pseudoinverse.
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
    d = max(0.0, H + 2.0 - GWLN_ONSET + method.alpha * along) / GWLN_WIDTH
    kept = max(1.0 / sqrt(1.0 + min(d, 1e30) ** 4), GWLN_LEAST)  # sqrt(w)
    for j in range(n):
        a[j] *= sqrt(1.0 - kept) / length


@allocating
def weigh_columns(B: Array, a: Array) -> None:
    """Replace B (r, n) by B C with C = I - a a^T, for a (n,)."""
    for i in range(B.shape[0]):
        weigh(B[i], a)


@kernel
def weigh(x: Array, a: Array) -> None:
    """Replace x (n,) by C x with C = I - a a^T, for a (n,)."""
    along = 0.0
    for j in range(x.shape[0]):
        along += a[j] * x[j]
    for j in range(x.shape[0]):
        x[j] -= a[j] * along


@allocating
def unweigh_columns(B: Array, a: Array) -> None:
    """Replace B (r, n) by B C^-1 with C = I - a a^T, for a (n,)."""
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
    """Evaluate the limit strategy of a method, before the step dq = z + C P (e - J z) is solved.

    Args:
        chain: The chain of the arm.
        method: Limit strategy and its parameters.
        general: The task, and the option `bug_compatible`.
        T_d: (k, 4, 4) desired poses.
        q: (n,) joint positions [rad or m].
        work: The scaled error `e` and its Jacobian `J` are read. The activations h, the motion z
            and the column factors C are written to `limit`, see :class:`LimitState`.
    """
    as_published = general.params.bug_compatible
    h, z, c = work.limit.activation, work.limit.motion, work.limit.scale
    h.fill(0.0)
    z.fill(0.0)
    c.fill(1.0)
    if method.limits == JC or method.limits == ACTIVE:
        jc_activate(method, chain, q, work.J, work.e, h)
    elif method.limits in (CTP, IDV, CNS):
        ctp_activate(method, as_published, chain, q, work.J, work.e, h, z)
    elif method.limits == TP:
        tp_activate(method, as_published, chain, q, h, z)
    elif method.limits == JW:
        jw_activate(chain, q, work.memory, c)
    elif method.limits == GWLN:
        gwln_activate(chain, method, q, work.J, work.e, work.limit.axis)
    elif method.limits == JC_AS_RUN:
        jacobian_within(chain, general, T_d, q, h, work)


@force_inline
def revise(method: Method, chain: Chain, q: Array, dq: Array, limit: LimitState) -> bool:
    """Hold joints that the step dq would move beyond a limit, if the strategy is the active set.

    Other strategies hold no joints here.

    Args:
        method: Gives the limit strategy.
        chain: Limits of the joints.
        q: (n,) joint positions [rad or m].
        dq: (n,) step [rad or m].
        limit: For joints that become held, the activation is set to 1, and the motion to the
            limit is written.

    Returns:
        True if any joint became held, so that the step must be solved again.
    """
    if method.limits == ACTIVE:
        return active_revise(chain, q, dq, limit.activation, limit.motion)
    return False


@force_inline
def revises(method: Method) -> bool:
    """Return whether the strategy is the active set, for which :func:`revise` may hold joints."""
    return method.limits == ACTIVE


@force_inline
def clips(method: Method) -> bool:
    """Return whether the strategy clips the joint positions after a step to the limits."""
    return method.limits in (JC, ACTIVE, SQP, DUAL) or bounds_step(method)


@force_inline
def bounds_step(method: Method) -> bool:
    """Return whether the step that the strategy computes satisfies the bounds of all joints."""
    return method.limits == SNS or method.limits == HQP


@force_inline
def has_objective(method: Method) -> bool:
    """Return whether the strategy minimises an objective of core/objectives.py."""
    return method.limits in (GP, TA, SRTP)


@force_inline
def clip_to_limits(lower: Array, upper: Array, q: Array) -> None:
    """Clip joint positions q (n,) [rad or m] to the limits `lower` and `upper` (n,), in place."""
    for j in range(q.shape[0]):
        q[j] = min(max(q[j], lower[j]), upper[j])
