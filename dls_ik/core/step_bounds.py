# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Step bounds: how far a step may go.

A bound has a section with its formula and source. To add one, write its section, its id, its name
in `IDS`, and its branch in :func:`bound_step`, or :func:`bounded_sum` for one of single directions.
"""

from math import sqrt

import numpy as np

from dls_ik.core import limits
from dls_ik.core.jit import allocating, force_inline, kernel
from dls_ik.core.types import Array, Flags, Grouping, Indices, Method, MethodParams

NONE, SD, SDLS, MAX, NORM = range(5)
IDS = {"none": NONE, "max": MAX, "norm": NORM, "sd": SD, "sdls": SDLS}


@force_inline
def goes_by_direction(method: Method) -> bool:
    """Test if each singular direction has a bound of its own."""
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
    """Write sum_i w_i, w_i = gain_i v_i (u_i . e), each bounded where the method bounds directions.

    Args:
        grouping: of the r rows and the k joints.
        J: (r, k), Ut: (r, r), gain: (r,), Vt: (r, k), e: (r,).
        dq: (k,) out.
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
    """Shorten the whole step dq (n,) in place."""
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
# The largest joint change: the whole step is scaled so that no joint moves farther.
#
# Buss & Kim 2004, section 5; Tabaczynski 2005, 3.2 (whose text says norm, and whose code largest).


@kernel
def shorten_to_largest(farthest: float, dq: Array) -> float:
    """Scale `dq` (n,) so that no component exceeds `farthest`; return the largest before."""
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
    """Shorten `dq` (n,) to a 2-norm of `longest`."""
    total = 0.0
    for j in range(dq.shape[0]):
        total += dq[j] * dq[j]
    if total > longest * longest:
        scale = longest / sqrt(total)
        for j in range(dq.shape[0]):
            dq[j] *= scale


# SD -----------------------------------------------------------------------------------------------
# Selective damping: no direction of the error may move a joint farther than it moves the tip.
#
# Colome & Torras 2012, section VI and (8), after Buss & Kim 2004. M_s bounds how far the tip moves
# for a unit of error along u_s, summed over the joints; the joint change w_s for that direction is
# bounded by gamma_s = gamma_max min(1, 1/M_s) in its largest absolute component, the whole by
# gamma_max in its 2-norm.
#
# Bug-compatible: the published code takes the largest component with its sign, max(w) for max|w|,
# of each direction and of their sum; a negative component may be of any length. CTP adds its push
# to the sum, and bounds the whole in its 2-norm.


@kernel
def sd_share(J: Array, v: Array, gain: float, w: float, gamma_max: float, signed: bool) -> float:
    """Return the share of w v that is kept, from 0 to 1.

    Args:
        J: (r, k), v: (k,) unit vector, gain: of its direction, w: length before the bound.
        signed: as in the published code.
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
    """Scale `dq` (n,) so that no component with its sign exceeds `farthest`."""
    largest = -1e300
    for j in range(dq.shape[0]):
        largest = max(largest, dq[j])
    if largest > farthest:
        for j in range(dq.shape[0]):
            dq[j] *= farthest / largest


# SDLS ---------------------------------------------------------------------------------------------
# Selectively damped least squares: each direction is damped by how hard it is to move in.
#
# phi_i = ClampMaxAbs(g_i (u_i . e) v_i, gamma_i), gamma_i = gamma_max min(1, N_i / M_i), and the
# sum of the phi_i is clamped to gamma_max (Buss & Kim 2004, (3), (4)). N_i is how far all tips are
# to move for a unit of error along u_i, M_i how far the joints move them one by one: M_i > N_i is
# cancellation. Motion of translational joints is not clamped. The published code does not clamp but
# scales, by gamma / (gamma + largest): soft.
#
# A tip's rotation, and the row that TA adds, count as tips of their own.


@kernel
def moved(group: Indices, column: Array) -> float:
    """Return how far all tips move for a vector of the task space (r,): a sum of norms.

    Args:
        group: (r,) rising; rows of one number make one vector.
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
        J: (r, k), u: (r,), v: (k,) unit vectors.
    """
    M = 0.0
    for j in range(v.shape[0]):
        M += gain * abs(v[j]) * moved(group, J[:, j])
    return gamma_max * min(1.0, moved(group, u) / M) if M > 0.0 else gamma_max


@kernel
def sdls_share(dq: Array, slides: Flags, gamma: float, soft: bool) -> float:
    """Return the share of the motion of joints that turn that is kept, from 0 to 1.

    Args:
        dq: (k,), slides: (k,) joints that only slide.
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
    """Clamp the whole of dq (n,) in place, (4); a step within gamma_max stays, also if soft."""
    if sdls_share(dq, slides, gamma_max, False) == 1.0:
        return
    kept = sdls_share(dq, slides, gamma_max, soft)
    for j in range(dq.shape[0]):
        if not slides[j]:
            dq[j] *= kept
