# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Damping laws: the gain g_i that replaces 1/s_i in P = sum_i g_i v_i u_i^T.

A law has a section with its formula and source. To add one, write its section, its id, its name in
`DAMPING_IDS`, and its branch in :func:`gains`. Laws that add the same lambda^2 to every squared
singular value need no singular values, only a factorisation: see :func:`is_uniform`.
"""

import numpy as np

from dls_ik.core.jit import allocating, force_inline, kernel
from dls_ik.core.types import Array, Method, MethodParams

JP, JD, ED, SVF, IED, JT, TPINV, JF, NF, SVF_ED = range(10)
DAMPING_IDS = {
    "jp": JP,
    "jt": JT,
    "tpinv": TPINV,
    "jd": JD,
    "jf": JF,
    "nf": NF,
    "ed": ED,
    "ied": IED,
    "svf": SVF,
    "svf+ed": SVF_ED,
}


# JP -----------------------------------------------------------------------------------------------
# The Moore-Penrose pseudoinverse, without damping.
#
# J+ = sum_i 1/s_i v_i u_i^T (Colome & Torras 2012, (2), Table II; Whitney 1969).


# JD -----------------------------------------------------------------------------------------------
# The damped Jacobian, with a constant damping factor unless a policy chooses the factor.
#
# J^T (J J^T + lambda^2 I)^-1 = sum_i s_i / (s_i^2 + lambda^2) v_i u_i^T
# (Colome & Torras 2012, Table II; Wampler 1986; Nakamura & Hanafusa 1986).


@force_inline
def jd_lambda_squared(method: Method) -> float:
    """Return lambda^2 of JD with its constant factor."""
    return method.lambda_ * method.lambda_


# ED -----------------------------------------------------------------------------------------------
# Error damping: the damping grows with the distance from the goal.
#
# J^T (J J^T + E I)^-1 with E = error_gain * norm(e)^2; one half in the paper
# (Colome & Torras 2012, Table II; Chan & Lawrence 1988).


@force_inline
def ed_lambda_squared(method: Method, error_norm: float) -> float:
    """Return E."""
    return method.error_gain * error_norm * error_norm


# IED ----------------------------------------------------------------------------------------------
# Improved error damping: some damping remains at a singular goal.
#
# J^T (J J^T + E I + Omega)^-1 with E = error_gain * norm(e)^2 and Omega = omega^2 I (Colome &
# Torras 2012, Table II; Sugihara 2009). Table V says "Omega = 0.01 I". Its results are reproduced
# if 0.01 is the damping factor, like JD's lambda, so that its square is added.


@kernel
def ied_lambda_squared(method: Method, omega: float, error_norm: float) -> float:
    """Return E + omega^2."""
    return ed_lambda_squared(method, error_norm) + omega * omega


# SVF ----------------------------------------------------------------------------------------------
# Singular value filtering: no singular value stays below sigma0.
#
# h(s) = (s^3 + nu s^2 + 2 s + 2 sigma0) / (s^2 + nu s + 2) replaces s
# (Colome & Torras 2012, (3) and (4)). It rises with s if nu > sigma0 and 2 > nu sigma0, and the
# condition number of the inverse is then bounded by h(s_1) / sigma0.


@kernel
def svf_value(method: Method, s: float) -> float:
    """Return h(s)."""
    below = s * s + method.nu * s + 2.0
    return s + 2.0 * method.sigma0 / below


# SVF+ED -------------------------------------------------------------------------------------------
# Singular value filtering with error damping: bounded condition number, small steps far away.
#
# sum_i h(s_i) / (h(s_i)^2 + E) v_i u_i^T, h of SVF and E of ED (Colome & Torras 2012, Table V).


# JT -----------------------------------------------------------------------------------------------
# The transpose of the Jacobian, with the step length that is optimal to first order.
#
# dq = alpha J^T e with alpha = <e, J J^T e> / <J J^T e, J J^T e>, which minimises
# norm(e - J dq) (Buss & Kim 2004, section 5; Colome & Torras 2012, Table II; Wolovich & Elliott
# 1984).


@allocating
def jt_step_length(J: Array, h: Array, left: Array) -> float:
    """Return alpha for the motion d = (I - H) J^T left; 0 if d does not move the tip.

    Args:
        J: (r, n) Jacobian.
        h: (n,) limit activation.
        left: (r,) error to correct.
    """
    r, n = J.shape
    along, square = 0.0, 0.0
    moved = np.zeros(r)  # J d
    for j in range(n):
        d = 0.0
        for i in range(r):
            d += J[i, j] * left[i]
        d *= 1.0 - h[j]
        for i in range(r):
            moved[i] += J[i, j] * d
    for i in range(r):
        along += left[i] * moved[i]
        square += moved[i] * moved[i]
    return along / square if square > 0.0 else 0.0


# TPINV --------------------------------------------------------------------------------------------
# The truncated pseudoinverse: small singular values count as zero.
#
# sum_{s_i > t s_1} 1/s_i v_i u_i^T (Tabaczynski 2005, 2.3; Buss & Kim 2004, section 5, whose
# published code uses t = 0.01).


@kernel
def tpinv_gain(truncation: float, s: Array, i: int, lambda2: float) -> float:
    """Return the gain of direction i; `lambda2` is 0 unless a target is followed."""
    return s[i] / (s[i] * s[i] + lambda2) if s[i] > truncation * s[0] else 0.0


# JF -----------------------------------------------------------------------------------------------
# The filtered Jacobian: only the smallest singular value is damped.
#
# J^T (J J^T + lambda^2 u_m u_m^T)^-1 (Colome & Torras 2012, Table II; Maciejewski & Klein 1988),
# with lambda^2 = (1 - (s_m / epsilon)^2) lambda_max^2 for s_m < epsilon, else 0: the appendix's
# g_F(s) = s / (alpha s^2 + lambda^2).


@kernel
def jf_gain(params: MethodParams, s: Array, i: int, is_last: bool, lambda2: float) -> float:
    """Return the gain of direction i; `lambda2` is 0 unless a target is followed."""
    if is_last and s[i] < params.epsilon:
        share = s[i] / params.epsilon
        lambda2 += (1.0 - share * share) * params.lambda_max * params.lambda_max
    return s[i] / (s[i] * s[i] + lambda2)


# NF -----------------------------------------------------------------------------------------------
# Numerical filtering: all directions are damped slightly, and the smallest singular value
# separately.
#
# J^T (J J^T + alpha^2 u_m u_m^T + lambda I)^-1 (Deo & Walker 1993, remarks of section 3;
# Maciejewski & Klein 1988). For a unit velocity of the tip, alpha^2 bounds the joint velocity in
# the direction of the smallest singular value, and lambda in the other directions, both by (6).
# Here u_m comes from the decomposition; the paper tracks an estimate of u_m.


@kernel
def nf_gain(velocity_bound: float, s: Array, i: int, count: int, lambda2: float) -> float:
    """Return the gain of direction i; `lambda2` is 0 unless a target is followed."""
    if count > 1:
        lambda2 += least_damping(s[count - 2], velocity_bound)
    if i == count - 1:
        lambda2 += least_damping(s[i], velocity_bound)
    return s[i] / (s[i] * s[i] + lambda2)


@kernel
def least_damping(s: float, bound: float) -> float:
    """Return the minimum lambda^2 with s / (s^2 + lambda^2) <= bound: (6) of Deo & Walker 1993."""
    return s / bound - s * s if s * bound <= 1.0 else 0.0


# All laws -----------------------------------------------------------------------------------------


@force_inline
def fast_lambda_squared(method: Method, error_norm: float) -> float:
    """Return lambda^2 of JP, JD with its constant factor, and ED.

    While a target is followed, every law is also damped by the error: far from the target, undamped
    steps overshoot and then reverse.

    Args:
        error_norm: Norm of the scaled error [m].
    """
    if method.damping == ED:
        return ed_lambda_squared(method, error_norm)
    added = ed_lambda_squared(method, error_norm) if method.following else 0.0
    if method.damping == JD:
        return added + jd_lambda_squared(method)
    return added


@kernel
def lambda_squared(method: Method, params: MethodParams, error_norm: float) -> float:
    """Return lambda^2 of any law, for JD with its constant factor.

    Args:
        error_norm: Norm of the scaled error [m].
    """
    if method.damping == SVF_ED:
        return ed_lambda_squared(method, error_norm)
    if method.damping == IED:
        return ied_lambda_squared(method, params.omega, error_norm)
    return fast_lambda_squared(method, error_norm)


@force_inline
def is_uniform(method: Method) -> bool:
    """Return whether every gain is s / (s^2 + lambda^2), so that a factorisation suffices."""
    law = method.damping
    return law in (JP, JD, ED, IED)


@force_inline
def is_filter(method: Method) -> bool:
    """Return whether the law replaces the singular values of the Jacobian."""
    return method.damping == SVF or method.damping == SVF_ED


@kernel
def gains(
    method: Method, params: MethodParams, s: Array, count: int, strength: float, g: Array
) -> None:
    """Write the gain of every direction.

    Args:
        s: (r,) singular values in descending order; those from `count` on are padding.
        strength: lambda^2; for JT the step length.
        g: (r,) gains, written.
    """
    law = method.damping
    for i in range(s.shape[0]):
        g[i] = 0.0
        if i >= count:
            continue
        if law in (SVF, SVF_ED):
            filtered = svf_value(method, s[i])
            g[i] = filtered / (filtered * filtered + strength)
        elif s[i] <= 0.0:
            continue
        elif law == JT:
            g[i] = strength * s[i]
        elif law == TPINV:
            g[i] = tpinv_gain(params.truncation, s, i, strength)
        elif law == JF:
            g[i] = jf_gain(params, s, i, i == count - 1, strength)
        elif law == NF:
            g[i] = nf_gain(params.velocity_bound, s, i, count, strength)
        else:
            g[i] = s[i] / (s[i] * s[i] + strength)


@allocating
def rebuilt(method: Method, Ut: Array, s: Array, Vt: Array) -> Array:
    """Return sum_i h(s_i) u_i v_i^T (r, k), the Jacobian with the singular values of SVF."""
    r, columns = Vt.shape
    B = np.zeros((r, columns))
    for k in range(r):
        sigma = svf_value(method, s[k])
        for i in range(r):
            along = sigma * Ut[k, i]
            for j in range(columns):
                B[i, j] += along * Vt[k, j]
    return B
