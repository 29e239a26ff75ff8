# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Step bounds: limits on the size of a step.

A bound applies to the whole step, or to each singular direction of the Jacobian J = U diag(s) V^T,
with u_i and v_i the columns of U and V. Each bound has a section with its formula and source. To
add a bound, write its section, its id, its name in `STEP_BOUND_IDS`, and its branch in
:func:`bound_step`, or in :func:`bounded_sum` for a bound on single directions.
"""

from math import sqrt

import numpy as np

from dls_ik.core import damping, limits
from dls_ik.core.jit import allocating, force_inline, kernel
from dls_ik.core.types import Array, Flags, Indices, Method, MethodParams, StepMethod

NO_STEP_BOUND, SD, SDLS, MAX, NORM, SDLS_NEAR = range(6)
STEP_BOUND_IDS = {
    "none": NO_STEP_BOUND,
    "max": MAX,
    "norm": NORM,
    "sd": SD,
    "sdls": SDLS,
    "sdls_near": SDLS_NEAR,
}


@force_inline
def with_parts(method: Method, law: int, strategy: int, bound: int) -> Method:
    """Return a method with other parts and the same parameters.

    Args:
        method: Method with the parameters.
        law: Id of the damping law.
        strategy: Id of the limit strategy.
        bound: Id of the step bound.
    """
    return Method(
        law,
        strategy,
        bound,
        method.following,
        method.alpha,
        method.lambda_,
        method.error_gain,
        method.nu,
        method.sigma0,
        method.gamma_max,
        method.margin,
        method.mu,
    )


@force_inline
def goes_by_direction(method: Method) -> bool:
    """Return whether the step bound (SD or SDLS) applies to each singular direction."""
    return method.step == SD or method.step == SDLS


@allocating
def bounded_sum(
    step_method: StepMethod,
    J: Array,
    Ut: Array,
    gain: Array,
    Vt: Array,
    e: Array,
    dq: Array,
) -> None:
    """Write the sum of the motions w_i = gain_i v_i (u_i . e) of all singular directions.

    Each w_i is shortened if the step bound of the method applies to single directions.

    Args:
        step_method: The step bound, with the groups of the r rows and the kinds of the k joints.
        J: (r, k) Jacobian of the scaled error.
        Ut: (r, r) rows u_i.
        gain: (r,) gains of the damping law.
        Vt: (r, k) rows v_i.
        e: (r,) scaled error [m].
        dq: (k,) sum, written [rad or m].
    """
    r, k = J.shape
    method, params, grouping = step_method.method, step_method.params, step_method.grouping
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
    """Shorten the whole step if the step bound of the method requires it.

    Args:
        method: The step bound and its gamma_max.
        params: Further parameters of the step bound.
        slides: (n,) whether each joint is prismatic.
        dq: (n,) step, read and written [rad or m].
    """
    if method.step == SD:
        if not params.bug_compatible or method.limits == limits.CTP:
            shorten_to_norm(method.gamma_max, dq)
    elif method.step == SDLS:
        sdls_bound(dq, slides, method.gamma_max, params.soft)
    elif method.step == MAX:
        shorten_to_largest(params.largest_change, dq)
    elif method.step == NORM:
        shorten_to_norm(params.Delta, dq)


# SDLS_NEAR ----------------------------------------------------------------------------------------
# The damping law without a step bound far from the target, and SDLS close to the target.
#
# Buss & Kim 2004 suggest DLS far from the target and SDLS close to the target, but do not try it.
# Here the norm of the scaled error decides.


@force_inline
def method_at(method: Method, params: MethodParams, e: Array) -> Method:
    """Return the method of a step, in which SDLS_NEAR is replaced according to the distance.

    Near the target SDLS with the pseudoinverse replaces law and bound; far from the target the law
    has no step bound. Methods without SDLS_NEAR are returned unchanged.

    Args:
        method: Damping law, limit strategy and step bound.
        params: Parameters, of which `switch_distance` is used.
        e: (r,) scaled error [m].
    """
    if method.step != SDLS_NEAR:
        return method
    square = 0.0
    for i in range(e.shape[0]):
        square += e[i] * e[i]
    if square <= params.switch_distance * params.switch_distance:
        return with_parts(method, damping.JP, method.limits, SDLS)
    return with_parts(method, method.damping, method.limits, NO_STEP_BOUND)


# MAX ----------------------------------------------------------------------------------------------
# The whole step is scaled so that no joint moves by more than the maximum joint change.
#
# The bound is that of Buss & Kim 2004, section 5, and of the code of Tabaczynski 2005, section 3.2;
# the text of Tabaczynski bounds the norm of the step instead of its largest component.


@kernel
def shorten_to_largest(farthest: float, dq: Array) -> float:
    """Scale a step so that no component exceeds a maximum.

    Args:
        farthest: Maximum absolute value of a component [rad or m].
        dq: (n,) step, read and written [rad or m].

    Returns:
        The largest absolute value of a component of the original step.
    """
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
    """Scale the step `dq` (n,) in place so that its 2-norm is at most `longest`."""
    total = 0.0
    for j in range(dq.shape[0]):
        total += dq[j] * dq[j]
    if total > longest * longest:
        scale = longest / sqrt(total)
        for j in range(dq.shape[0]):
            dq[j] *= scale


# SD -----------------------------------------------------------------------------------------------
# Selective damping: singular directions for which the motions that single joints cause at the tip
# cancel each other have a smaller bound.
#
# Colome & Torras 2012, section VI and (8), after Buss & Kim 2004. Let the error be a unit vector
# along u_s: M_s is the sum over the joints of the motion of the tip that the change of each joint
# causes. The joint change w_s of direction s is shortened so that its largest absolute component is
# at most gamma_s = gamma_max min(1, 1/M_s). The whole step is shortened to the 2-norm gamma_max.
#
# With `bug_compatible`, the largest signed component, max(w) instead of max|w|, of each direction
# and of the sum is bounded, as in the published code, so that negative components are unbounded.
# The strategy CTP adds its motion z to the sum and then bounds the 2-norm of the whole step.


@kernel
def sd_share(J: Array, v: Array, gain: float, w: float, gamma_max: float, signed: bool) -> float:
    """Return the factor, 0 to 1, by which the bound SD shortens the motion of one direction.

    Args:
        J: (r, k) Jacobian of the scaled error.
        v: (k,) unit vector of the joint motion.
        gain: Gain of the direction by the damping law.
        w: Factor of v in the motion w v before it is shortened.
        gamma_max: Maximum joint change [rad or m].
        signed: Whether to bound signed instead of absolute components, as in the published code.
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
    """Scale `dq` (n,) in place so that no component exceeds `farthest` [rad or m].

    Negative components are not bounded, as in the published code.
    """
    largest = -1e300
    for j in range(dq.shape[0]):
        largest = max(largest, dq[j])
    if largest > farthest:
        for j in range(dq.shape[0]):
            dq[j] *= farthest / largest


# SDLS ---------------------------------------------------------------------------------------------
# Selectively damped least squares: each singular direction has its own damping.
#
# The motion of direction i is phi_i = ClampMaxAbs(g_i (u_i . e) v_i, gamma_i) with
# gamma_i = gamma_max min(1, N_i / M_i), and the sum of the phi_i is clamped to gamma_max (Buss &
# Kim 2004, (3), (4)). Let the error be a unit vector along u_i: N_i is the sum of the motions of
# all tips that correct this error, and M_i is the sum of the motions that each joint alone causes
# at the tips. If M_i > N_i, the motions partly cancel each other. The motion of prismatic joints is
# not clamped. The published code multiplies by gamma / (gamma + largest component) instead of
# clamping; the parameter `soft` selects this.
#
# The rotation of a tip, and the row that the strategy TA adds, are treated as separate tips.


@kernel
def moved(group: Indices, column: Array) -> float:
    """Return the sum of the norms of the vectors that the groups of rows form [m].

    Args:
        group: (r,) group of each row, in ascending order; the rows of a group form one vector, the
            motion of one tip.
        column: (r,) motion of all tips, such as a column of the Jacobian.
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
    """Return gamma_i, the maximum joint change [rad] of one direction by the bound SDLS.

    Args:
        group: (r,) group of each row; the rows of a group form one vector.
        J: (r, k) Jacobian of the scaled error.
        u: (r,) unit vector of the error.
        v: (k,) unit vector of the joint motion.
        gain: Gain of the direction by the damping law.
        gamma_max: Maximum joint change [rad].
    """
    M = 0.0
    for j in range(v.shape[0]):
        M += gain * abs(v[j]) * moved(group, J[:, j])
    return gamma_max * min(1.0, moved(group, u) / M) if M > 0.0 else gamma_max


@kernel
def sdls_share(dq: Array, slides: Flags, gamma: float, soft: bool) -> float:
    """Return the factor, 0 to 1, by which the bound SDLS shortens the motion of revolute joints.

    Args:
        dq: (k,) motion [rad or m].
        slides: (k,) whether each joint is prismatic.
        gamma: Maximum joint change [rad].
        soft: Whether to scale as in the published code instead of clamping.
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
    """Clamp the motion of the revolute joints in the whole step, (4) of Buss & Kim 2004.

    Args:
        dq: (n,) step, read and written [rad or m]; unchanged if no revolute joint moves by more
            than `gamma_max`, even if `soft` is True.
        slides: (n,) whether each joint is prismatic.
        gamma_max: Maximum joint change [rad].
        soft: Whether to scale as in the published code instead of clamping.
    """
    if sdls_share(dq, slides, gamma_max, False) == 1.0:
        return
    kept = sdls_share(dq, slides, gamma_max, soft)
    for j in range(dq.shape[0]):
        if not slides[j]:
            dq[j] *= kept
