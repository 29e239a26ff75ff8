# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Step bounds: limits on the size of a step.

Each bound has a section with its formula and source. To add a bound, write its section, its id, its
name in `STEP_BOUND_IDS`, and its branch in :func:`bound_step`, or in :func:`bounded_sum` for a
bound on single directions.
"""

from math import sqrt

import numpy as np

from dls_ik.core import limits
from dls_ik.core.jit import allocating, force_inline, kernel
from dls_ik.core.types import Array, Flags, Grouping, Indices, Method, MethodParams

NO_STEP_BOUND, SD, SDLS, MAX, NORM = range(5)
STEP_BOUND_IDS = {"none": NO_STEP_BOUND, "max": MAX, "norm": NORM, "sd": SD, "sdls": SDLS}


@force_inline
def goes_by_direction(method: Method) -> bool:
    """Return whether the method bounds each singular direction."""
    return method.step == SD or method.step == SDLS


@allocating
def bounded_sum(
    method: Method,
    params: MethodParams,
    grouping: Grouping,
    J: Array,
    Ut: Array,
    gain: Array,
    Vt: Array,
    e: Array,
    dq: Array,
) -> None:
    """Write sum_i w_i, w_i = gain_i v_i (u_i . e), each bounded if the method bounds directions.

    Args:
        grouping: Groups of the r rows and kinds of the k joints.
        J: (r, k) Jacobian.
        Ut: (r, r) rows u_i.
        gain: (r,) gains of the damping law.
        Vt: (r, k) rows v_i.
        e: (r,) scaled error.
        dq: (k,) sum, written.
    """
    r, k = J.shape
    slides = grouping.translational
    dq.fill(0.0)
    w = np.empty(k)
    for s in range(r):
        if gain[s] == 0.0:
            continue
        along = 0.0
        for i in range(r):
            along += Ut[s, i] * e[i]
        length, kept = gain[s] * along, 1.0
        for j in range(k):
            w[j] = length * Vt[s, j]
        if method.step == SD:
            kept = sd_share(J, Vt[s], gain[s], length, method.gamma_max, params.bug_compatible)
        elif method.step == SDLS:
            gamma = sdls_gamma(grouping.group, J, Ut[s], Vt[s], gain[s], method.gamma_max)
            kept = sdls_share(w, slides, gamma, params.soft)
        for j in range(k):
            dq[j] += w[j] if method.step == SDLS and slides[j] else kept * w[j]
    if method.step == SD and params.bug_compatible:
        shorten_to_signed(method.gamma_max, dq)


@kernel
def bound_step(method: Method, params: MethodParams, slides: Flags, dq: Array) -> None:
    """Shorten the whole step dq (n,) in place; `slides` (n,) marks joints that only slide."""
    if method.step == SD:
        if not params.bug_compatible or method.limits == limits.CTP:
            shorten_to_norm(method.gamma_max, dq)
    elif method.step == SDLS:
        sdls_bound(dq, slides, method.gamma_max, params.soft)
    elif method.step == MAX:
        shorten_to_largest(params.largest_change, dq)
    elif method.step == NORM:
        shorten_to_norm(params.Delta, dq)


# MAX ----------------------------------------------------------------------------------------------
# The maximum joint change: the whole step is scaled so that no joint exceeds it.
#
# Buss & Kim 2004, section 5; Tabaczynski 2005, 3.2 (norm in the text, largest component in the
# code).


@kernel
def shorten_to_largest(farthest: float, dq: Array) -> float:
    """Scale `dq` (n,) so that no component exceeds `farthest`; return the original largest one."""
    largest = 0.0
    for j in range(dq.shape[0]):
        largest = max(largest, abs(dq[j]))
    if largest > farthest:
        for j in range(dq.shape[0]):
            dq[j] *= farthest / largest
    return largest


# NORM ---------------------------------------------------------------------------------------------
# The step is scaled to a 2-norm of at most Delta: the bound of Deo & Walker 1993.


@kernel
def shorten_to_norm(longest: float, dq: Array) -> None:
    """Shorten `dq` (n,) to a 2-norm of at most `longest`."""
    total = 0.0
    for j in range(dq.shape[0]):
        total += dq[j] * dq[j]
    if total > longest * longest:
        scale = longest / sqrt(total)
        for j in range(dq.shape[0]):
            dq[j] *= scale


# SD -----------------------------------------------------------------------------------------------
# Selective damping: no direction of the error may move a joint farther than the tip.
#
# Colome & Torras 2012, section VI and (8), after Buss & Kim 2004. M_s bounds the motion of the tip
# for a unit of error along u_s, summed over the joints. The joint change w_s of this direction is
# bounded by gamma_s = gamma_max min(1, 1/M_s) in its largest absolute component, and the whole step
# by gamma_max in its 2-norm.
#
# Bug-compatible: the published code uses the largest signed component, max(w) instead of max|w|, of
# each direction and of the sum, so that negative components are unbounded. CTP adds its push to the
# sum and bounds the 2-norm of the whole.


@kernel
def sd_share(J: Array, v: Array, gain: float, w: float, gamma_max: float, signed: bool) -> float:
    """Return the share of w v that is kept, from 0 to 1.

    Args:
        J: (r, k) Jacobian.
        v: (k,) unit vector of the direction.
        gain: Gain of the direction.
        w: Length before the bound.
        gamma_max: Maximum joint change [rad or m].
        signed: Use signed components, as in the published code.
    """
    r, k = J.shape
    M, largest = 0.0, -1e300
    for j in range(k):
        column = 0.0
        for i in range(r):
            column += J[i, j] * J[i, j]
        M += gain * abs(v[j]) * sqrt(column)
        largest = max(largest, w * v[j] if signed else abs(w * v[j]))
    gamma = gamma_max * min(1.0, 1.0 / M) if M > 0.0 else gamma_max
    return gamma / largest if largest > gamma else 1.0


@kernel
def shorten_to_signed(farthest: float, dq: Array) -> None:
    """Scale `dq` (n,) so that no signed component exceeds `farthest`."""
    largest = -1e300
    for j in range(dq.shape[0]):
        largest = max(largest, dq[j])
    if largest > farthest:
        for j in range(dq.shape[0]):
            dq[j] *= farthest / largest


# SDLS ---------------------------------------------------------------------------------------------
# Selectively damped least squares: each direction has its own damping.
#
# phi_i = ClampMaxAbs(g_i (u_i . e) v_i, gamma_i), gamma_i = gamma_max min(1, N_i / M_i), and the
# sum of the phi_i is clamped to gamma_max (Buss & Kim 2004, (3), (4)). N_i is the required
# motion of all tips for a unit of error along u_i, M_i the sum of the motions by each joint: the
# motions partly cancel if M_i > N_i. Motion of translational joints is not clamped. The published
# code scales by gamma / (gamma + largest) instead of clamping ("soft").
#
# The rotation of a tip, and the row that TA adds, count as separate tips.


@kernel
def moved(group: Indices, column: Array) -> float:
    """Return the motion of all tips for a vector of the task space (r,): a sum of norms.

    Args:
        group: (r,) group of each row, in ascending order; the rows of a group form one vector.
        column: (r,) vector of the task space.
    """
    total, square = 0.0, 0.0
    for i in range(column.shape[0]):
        if i > 0 and group[i] != group[i - 1]:
            total += sqrt(square)
            square = 0.0
        square += column[i] * column[i]
    return total + sqrt(square)


@allocating
def sdls_gamma(
    group: Indices, J: Array, u: Array, v: Array, gain: float, gamma_max: float
) -> float:
    """Return gamma_i of a direction.

    Args:
        group: (r,) group of each row.
        J: (r, k) Jacobian.
        u: (r,) unit vector of the error.
        v: (k,) unit vector of the joint motion.
        gain: Gain of the direction.
        gamma_max: Maximum joint change [rad].
    """
    M = 0.0
    for j in range(v.shape[0]):
        M += gain * abs(v[j]) * moved(group, J[:, j])
    return gamma_max * min(1.0, moved(group, u) / M) if M > 0.0 else gamma_max


@kernel
def sdls_share(dq: Array, slides: Flags, gamma: float, soft: bool) -> float:
    """Return the share of the motion of turning joints that is kept, from 0 to 1.

    Args:
        dq: (k,) motion [rad or m].
        slides: (k,) joints that only slide.
        gamma: Maximum joint change [rad].
        soft: Scale as in the published code instead of clamping.
    """
    largest = 0.0
    for j in range(dq.shape[0]):
        if not slides[j]:
            largest = max(largest, abs(dq[j]))
    if soft:
        return gamma / (gamma + largest)
    return gamma / largest if largest > gamma else 1.0


@kernel
def sdls_bound(dq: Array, slides: Flags, gamma_max: float, soft: bool) -> None:
    """Clamp the whole dq (n,) in place, (4); a step within gamma_max is unchanged, also if soft."""
    if sdls_share(dq, slides, gamma_max, False) == 1.0:
        return
    kept = sdls_share(dq, slides, gamma_max, soft)
    for j in range(dq.shape[0]):
        if not slides[j]:
            dq[j] *= kept
