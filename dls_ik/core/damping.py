# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Damping laws: the gains g_i that replace 1/s_i in the inverse P = sum_i g_i v_i u_i^T.

s_i, u_i and v_i are the singular values and vectors of the Jacobian J = sum_i s_i u_i v_i^T. Each
law has a section with its formula and source. To add a law, write its section, its id, its name in
`DAMPING_IDS`, and its branch in :func:`gains`. Laws that add the same lambda^2 to every squared
singular value do not need the singular values; a factorisation suffices, see :func:`is_uniform`.
"""

from math import exp, sqrt

import numpy as np

from dls_ik.core.jit import allocating, force_inline, kernel
from dls_ik.core.types import Array, Method, MethodParams

JP, JD, ED, SVF, IED, JT, TPINV, JF, NF, SVF_ED, LM, GDLS, NFD = range(13)
DAMPING_IDS = {
    "jp": JP,
    "jt": JT,
    "tpinv": TPINV,
    "jd": JD,
    "jf": JF,
    "nf": NF,
    "nfd": NFD,
    "ed": ED,
    "ied": IED,
    "lm": LM,
    "gdls": GDLS,
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
    """Return lambda^2 of the law JD (damped Jacobian) for a constant damping factor."""
    return method.lambda_ * method.lambda_


# ED -----------------------------------------------------------------------------------------------
# Error damping: the damping grows with the distance from the goal.
#
# J^T (J J^T + E I)^-1 with E = error_gain * norm(e)^2 (Colome & Torras 2012, Table II; Chan &
# Lawrence 1988). Colome & Torras do not define E in the paper; error_gain is 0.5 in their Matlab
# file.


@force_inline
def ed_lambda_squared(method: Method, error_norm: float) -> float:
    """Return E = error_gain * error_norm^2, which is lambda^2 of the law ED (error damping).

    Args:
        method: Gives error_gain.
        error_norm: Norm of the scaled error [m].
    """
    return method.error_gain * error_norm * error_norm


# IED ----------------------------------------------------------------------------------------------
# Improved error damping: at a singular goal, where the error is zero, some damping remains.
#
# J^T (J J^T + E I + Omega)^-1 with E = error_gain * norm(e)^2 and Omega = omega^2 I (Colome &
# Torras 2012, Table II; Sugihara 2009). Table V of Colome & Torras says "Omega = 0.01 I", but their
# Matlab file has Omega = 0.001 I, with which the results in the row IED of the table are
# reproduced. The default of omega here is 0.01, so that Omega = 0.0001 I.


@kernel
def ied_lambda_squared(method: Method, omega: float, error_norm: float) -> float:
    """Return lambda^2 = E + omega^2 of the law IED (improved error damping).

    Args:
        method: Gives the gain of E, see :func:`ed_lambda_squared`.
        omega: Damping factor that remains without an error.
        error_norm: Norm of the scaled error [m].
    """
    return ed_lambda_squared(method, error_norm) + omega * omega


# LM -----------------------------------------------------------------------------------------------
# Levenberg-Marquardt with robust damping: error damping plus a bias for each joint. With the bias,
# the inverse exists even at a singular goal, where the error is 0.
#
# dq = (J^T J + E I + diag(b))^-1 J^T e with E = error_gain * norm(e)^2 and the bias b_j > 0 of each
# joint (Sugihara 2011; the weights of the error are in J and e, and error_gain = 1/2). With the
# smallest bias b and lambda^2 = E + b, the step is C (J C)^* e, the damped inverse of J C with the
# diagonal C^2 = lambda^2 (E I + diag(b))^-1.


@force_inline
def scale_by_bias(method: Method, bias: Array, e: Array, c: Array) -> None:
    """Multiply the scales c (n,) of the columns of J by the diagonal of C of the law LM.

    Args:
        method: Method whose `error_gain` is a factor of E.
        bias: (n,) bias b of each joint.
        e: (r,) scaled error [m].
        c: (n,) scales of the columns, read and written.
    """
    square, least = 0.0, bias[0]
    for i in range(e.shape[0]):
        square += e[i] * e[i]
    for j in range(bias.shape[0]):
        least = min(least, bias[j])
    E = method.error_gain * square
    for j in range(bias.shape[0]):
        if bias[j] > least:
            c[j] *= sqrt((E + least) / (E + bias[j]))


# GDLS ---------------------------------------------------------------------------------------------
# Gaussian damping: each singular direction has a damping factor of its own, which falls with the
# singular value by a Gaussian function.
#
# g_i = s_i / (s_i^2 + lambda_i^2), lambda_i^2 = lambda_max^2 exp(-(s_i / gauss_width)^2)
# (Phuoc et al. 2008).


@kernel
def gdls_gain(params: MethodParams, s: float, lambda2: float) -> float:
    """Return the gain of a singular direction by the law GDLS (Gaussian damping).

    Args:
        params: Parameters lambda_max and gauss_width of the law.
        s: Singular value.
        lambda2: lambda^2 added to the squared singular value; 0 unless a target is followed.
    """
    share = s / params.gauss_width
    lambda2 += params.lambda_max * params.lambda_max * exp(-share * share)
    return s / (s * s + lambda2)


# SVF ----------------------------------------------------------------------------------------------
# Singular value filtering: no singular value stays below sigma0.
#
# h(s) = (s^3 + nu s^2 + 2 s + 2 sigma0) / (s^2 + nu s + 2) replaces each singular value s
# (Colome & Torras 2012, (3) and (4)). If nu > sigma0 and 2 > nu sigma0, h increases with s, and the
# condition number of the inverse is at most h(s_1) / sigma0.


@kernel
def svf_value(method: Method, s: float) -> float:
    """Return h(s) >= sigma0, which replaces a singular value s in the law SVF.

    SVF stands for singular value filtering.
    """
    below = s * s + method.nu * s + 2.0
    return s + 2.0 * method.sigma0 / below


# SVF+ED -------------------------------------------------------------------------------------------
# Singular value filtering with error damping: the condition number is bounded, and steps far from
# the target are small.
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
    """Return the step length alpha of the law JT (Jacobian transpose).

    alpha is the factor of d = (I - H) J^T left for which the motion alpha J d of the tip is closest
    to `left`. It is 0 if d does not move the tip.

    Args:
        J: (r, n) Jacobian.
        h: (n,) activation of each joint's limit, 0 (free) to 1 (held); the diagonal of H.
        left: (r,) error to correct.
    """
    r, n = J.shape
    along, square = 0.0, 0.0
    moved = np.zeros(r)  # the product J d
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
    """Return the gain of singular direction i by the law TPINV (truncated pseudoinverse).

    Args:
        truncation: Singular values up to this share of the largest singular value count as zero.
        s: Singular values in descending order.
        i: Index of the direction.
        lambda2: lambda^2 added to the squared singular value; 0 unless a target is followed.
    """
    return s[i] / (s[i] * s[i] + lambda2) if s[i] > truncation * s[0] else 0.0


# JF -----------------------------------------------------------------------------------------------
# The filtered Jacobian: only the smallest singular value is damped.
#
# J^T (J J^T + lambda^2 u_m u_m^T)^-1 (Colome & Torras 2012, Table II; Maciejewski & Klein 1988),
# with lambda^2 = (1 - (s_m / epsilon)^2) lambda_max^2 for s_m < epsilon, else 0. The appendix of
# Colome & Torras writes the gain as g_F(s) = s / (alpha s^2 + lambda^2).


@kernel
def jf_gain(params: MethodParams, s: Array, i: int, is_last: bool, lambda2: float) -> float:
    """Return the gain of singular direction i by the law JF (filtered Jacobian).

    Args:
        params: Parameters epsilon and lambda_max of the law.
        s: Singular values in descending order.
        i: Index of the direction.
        is_last: Whether s[i] is the smallest singular value.
        lambda2: lambda^2 added to every squared singular value; 0 unless a target is followed.
    """
    if is_last and s[i] < params.epsilon:
        share = s[i] / params.epsilon
        lambda2 += (1.0 - share * share) * params.lambda_max * params.lambda_max
    return s[i] / (s[i] * s[i] + lambda2)


# NF -----------------------------------------------------------------------------------------------
# Numerical filtering: all directions are damped slightly, and the smallest singular value
# separately.
#
# J^T (J J^T + alpha^2 u_m u_m^T + lambda I)^-1 (Deo & Walker 1993, remarks of section 3;
# Maciejewski & Klein 1988). Equation (6) of Deo & Walker gives lambda, which bounds the joint
# velocity for a unit velocity of the tip in all directions but that of the smallest singular value,
# and alpha^2, which bounds the joint velocity in that direction. Here u_m comes from the singular
# value decomposition; the paper tracks an estimate of u_m.


@kernel
def nf_gain(velocity_bound: float, s: Array, i: int, count: int, lambda2: float) -> float:
    """Return the gain of singular direction i by the law NF (numerical filtering).

    Args:
        velocity_bound: Maximum joint velocity for a unit velocity of the tip.
        s: Singular values in descending order.
        i: Index of the direction.
        count: Number of singular values that are not padding.
        lambda2: lambda^2 added to every squared singular value; 0 unless a target is followed.
    """
    if count > 1:
        lambda2 += least_damping(s[count - 2], velocity_bound)
    if i == count - 1:
        lambda2 += least_damping(s[i], velocity_bound)
    return s[i] / (s[i] * s[i] + lambda2)


@kernel
def least_damping(s: float, bound: float) -> float:
    """Return the minimum lambda^2 for which the gain s / (s^2 + lambda^2) is at most `bound`.

    This is equation (6) of Deo & Walker 1993.
    """
    return s / bound - s * s if s * bound <= 1.0 else 0.0


# NFD ----------------------------------------------------------------------------------------------
# Numerically filtered damping. All directions have a light damping. Near a singularity, the
# direction u_m of the smallest singular value s_m also has a strong one.
#
# J^T (J J^T + lambda^2 I + beta^2 u_m u_m^T)^-1 (Chiaverini, Siciliano & Egeland 1994; Chiaverini
# 1997). The factor beta is 0 unless s_m < epsilon; beta^2 is then (1 - (s_m / epsilon)^2)
# lambda_max^2, as in the law JF. The term with lambda is that of JD. A constant lambda is a choice
# of this package.


# All laws -----------------------------------------------------------------------------------------


@force_inline
def fast_lambda_squared(method: Method, error_norm: float) -> float:
    """Return lambda^2 of the laws of the fast path.

    These are JP (undamped, lambda^2 = 0), JD (constant lambda) and ED (damping by the error).

    While a target is followed, E of the law ED is added to lambda^2 of every law: far from the
    target, undamped steps would overshoot and then reverse.

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
    """Return lambda^2 of any law; for the law JD that of its constant factor.

    Args:
        method: Selects the law.
        params: Parameters of the laws.
        error_norm: Norm of the scaled error [m].
    """
    if method.damping == SVF_ED:
        return ed_lambda_squared(method, error_norm)
    if method.damping == IED:
        return ied_lambda_squared(method, params.omega, error_norm)
    if method.damping == LM:
        return ed_lambda_squared(method, error_norm) + params.least_bias
    if method.damping == NFD:
        return fast_lambda_squared(method, error_norm) + jd_lambda_squared(method)
    return fast_lambda_squared(method, error_norm)


@force_inline
def is_uniform(method: Method) -> bool:
    """Return whether the gain of every direction is s / (s^2 + lambda^2), with one lambda^2.

    The inverse of such a law needs only a factorisation, not the singular values.
    """
    law = method.damping
    return law in (JP, JD, ED, IED, LM)


@force_inline
def is_filter(method: Method) -> bool:
    """Return whether the law (SVF, SVF+ED) replaces the singular values of the Jacobian."""
    return method.damping == SVF or method.damping == SVF_ED


@kernel
def gains(
    method: Method, params: MethodParams, s: Array, count: int, strength: float, g: Array
) -> None:
    """Write the gains that the damping law assigns to the singular directions.

    Args:
        method: Selects the law.
        params: Parameters of the laws.
        s: (r,) singular values in descending order; entries from index `count` on are padding.
        count: Number of singular values.
        strength: lambda^2 of the law; for the law JT the step length alpha.
        g: (r,) gains, written; 0 for padding.
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
        elif law in (JF, NFD):
            g[i] = jf_gain(params, s, i, i == count - 1, strength)
        elif law == GDLS:
            g[i] = gdls_gain(params, s[i], strength)
        elif law == NF:
            g[i] = nf_gain(params.velocity_bound, s, i, count, strength)
        else:
            g[i] = s[i] / (s[i] * s[i] + strength)


@allocating
def rebuilt(method: Method, Ut: Array, s: Array, Vt: Array) -> Array:
    """Return the Jacobian (r, k) with filtered singular values, sum_i h(s_i) u_i v_i^T.

    Args:
        method: Parameters of the law SVF.
        Ut: (r, r) rows u_i.
        s: (r,) singular values s_i.
        Vt: (r, k) rows v_i.
    """
    r, columns = Vt.shape
    B = np.zeros((r, columns))
    for k in range(r):
        sigma = svf_value(method, s[k])
        for i in range(r):
            along = sigma * Ut[k, i]
            for j in range(columns):
                B[i, j] += along * Vt[k, j]
    return B
