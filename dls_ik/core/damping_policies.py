# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Policies that choose lambda^2 of the law JD at each configuration.

The policies follow section 3 of Deo & Walker 1993. The factor lambda of the paper is lambda^2 in
the code, and lambda_0 of the paper is the parameter lambda0; the formulas in the comments of this
module use the symbols of the paper. Each policy has a section with its formula and source, except
`constant` (method 1 of the paper) and `error` (equation (5)), which use the formulas of the laws JD
and ED (Wampler 1986; Chan & Lawrence 1988). To add a policy, write its section, its id, its name in
`POLICY_IDS`, and its branch in :func:`policy_damping`. The policy `optimal` is in
:mod:`dls_ik.core.optimal_damping`.
"""

from math import sqrt

import numpy as np

from dls_ik.core import damping
from dls_ik.core.damping import ed_lambda_squared, jd_lambda_squared, least_damping
from dls_ik.core.jit import allocating, force_inline, kernel
from dls_ik.core.linalg import (
    copy,
    least_singular_value,
    manipulability,
    singular_values,
    squared_norm,
    svd,
)
from dls_ik.core.types import Array, Memory, Method, MethodParams

(
    POLICY_CONSTANT,
    POLICY_ERROR,
    POLICY_MANIPULABILITY,
    POLICY_RATE,
    POLICY_VELOCITY,
    POLICY_TRACKING,
    POLICY_CONDITION,
    POLICY_ACCURACY,
) = range(8)
POLICY_MAYORGA_CONDITION, POLICY_MAYORGA_RANK, POLICY_OPTIMAL = range(8, 11)
POLICY_IDS = {
    "constant": POLICY_CONSTANT,
    "error": POLICY_ERROR,
    "manipulability": POLICY_MANIPULABILITY,
    "rate": POLICY_RATE,
    "velocity": POLICY_VELOCITY,
    "tracking": POLICY_TRACKING,
    "condition": POLICY_CONDITION,
    "accuracy": POLICY_ACCURACY,
    "mayorga-condition": POLICY_MAYORGA_CONDITION,
    "mayorga-rank": POLICY_MAYORGA_RANK,
    "optimal": POLICY_OPTIMAL,
}
POLICY_NAMES = tuple(POLICY_IDS)
SINGULAR = 1e-10  # singular values up to this share of the largest one count as zero


# manipulability -----------------------------------------------------------------------------------
# lambda = lambda_0 (1 - w / w_t)^2 if the manipulability w = sqrt(det(J J^T)) is below the
# threshold w_t, else 0 (Deo & Walker 1993, method 2; Nakamura & Hanafusa 1986).


@kernel
def manipulability_damping(params: MethodParams, s: Array, n: int) -> float:
    """Return lambda^2 of the policy `manipulability`, which damps where the manipulability is low.

    Args:
        params: Parameters lambda0 and w_t of the policy.
        s: (r,) singular values of the Jacobian.
        n: Number of columns of the Jacobian.
    """
    w = manipulability(s, n)
    if w >= params.w_t:
        return 0.0
    short = 1.0 - w / params.w_t
    return params.lambda0 * short * short


# rate ---------------------------------------------------------------------------------------------
# lambda = lambda_0 (1 - w_k / w_{k-1}) if the ratio w_k / w_{k-1} of the manipulabilities of two
# consecutive steps is below a threshold, else 0 (Deo & Walker 1993, method 3; Kelmar & Khosla
# 1988). The threshold, w_t in the paper, is the parameter rate_t. Unlike w, the ratio does not
# depend on the size of the arm. The ratio does not exist for the first step of an attempt and for a
# step out of a singularity (w_{k-1} = 0), which are not damped.


@kernel
def rate_damping(params: MethodParams, s: Array, n: int, memory: Memory) -> float:
    """Return lambda^2 of the policy `rate`, which damps while the manipulability falls fast.

    Args:
        params: Parameters lambda0 and rate_t of the policy.
        s: (r,) singular values of the Jacobian.
        n: Number of columns of the Jacobian.
        memory: Holds the manipulability at the previous step.
    """
    w, last = manipulability(s, n), memory.manipulability[0]
    if memory.steps[0] == 0 or not w < params.rate_t * last:
        return 0.0
    return params.lambda0 * (1.0 - w / last)


# velocity -----------------------------------------------------------------------------------------
# lambda = s_min / b - s_min^2 if s_min <= 1/b, else 0. With this lambda, a unit velocity of the tip
# along the singular direction of s_min causes a joint velocity of at most b, which is the parameter
# velocity_bound (Deo & Walker 1993, (6); Maciejewski & Klein 1988).
#
# A singular value between s_min and 1/b - s_min has a gain above b. With one nearly singular
# direction, as in the paper, no singular value is in this interval, and b bounds the joint velocity
# for every unit velocity of the tip. With two nearly singular directions, the second direction is
# not damped enough (the law NF damps both).


@kernel
def velocity_damping(params: MethodParams, s: Array, n: int) -> float:
    """Return lambda^2 of the policy `velocity`, which bounds the joint velocity.

    Args:
        params: Parameter velocity_bound of the policy.
        s: (r,) singular values of the Jacobian.
        n: Number of columns of the Jacobian.
    """
    return least_damping(least_singular_value(s, n), params.velocity_bound)


# tracking -----------------------------------------------------------------------------------------
# The tracking error relative to the velocity of the tip is lambda / (s^2 + lambda) along a singular
# direction. The policy uses the largest lambda for which this ratio is at most R = tracking_bound
# in every direction of the range of J: lambda = s_r^2 R / (1 - R), with s_r the smallest singular
# value above zero (Deo & Walker 1993, (7); Maciejewski & Klein 1988).


@kernel
def tracking_damping(params: MethodParams, s: Array) -> float:
    """Return lambda^2 of the policy `tracking`, the most damping for a bounded tracking error.

    Args:
        params: Parameter tracking_bound of the policy.
        s: (r,) singular values of the Jacobian in descending order.
    """
    least = s[0]
    for i in range(s.shape[0]):
        if s[i] > SINGULAR * s[0]:
            least = s[i]
    R = params.tracking_bound
    return least * least * R / (1.0 - R)


# condition ----------------------------------------------------------------------------------------
# lambda = max(0, (s_1^2 - k s_n^2) / (k - 1)). With this lambda, the condition number of
# J^T J + lambda I is at most k = condition_bound (Deo & Walker 1993, (8); Maciejewski & Klein
# 1988). J^T J is (n, n), so that s_n is 0 if J has fewer rows than columns.


@kernel
def condition_damping(params: MethodParams, s: Array, n: int) -> float:
    """Return lambda^2 of the policy `condition`, which bounds a condition number.

    Args:
        params: Parameter condition_bound of the policy.
        s: (r,) singular values of the Jacobian in descending order.
        n: Number of columns of the Jacobian.
    """
    k = params.condition_bound
    least = s[n - 1] if n <= s.shape[0] else 0.0
    return max(0.0, (s[0] * s[0] - k * least * least) / (k - 1.0))


# accuracy -----------------------------------------------------------------------------------------
# Damped steps near a singularity lose accuracy along a user-defined direction d of the task first,
# and only then along other directions (Deo & Walker 1993, method 6; Chiaverini, Egeland & Kanestrom
# 1991). If the smallest singular value s is below epsilon:
#
# lambda^2 = (1 - (s / epsilon)^2) lambda_max^2,  (w - 1)^2 = (1 - (s / epsilon)^2) (w_min - 1)^2
#
# Otherwise lambda = 0 and w = 1. The step is the damped inverse of W J, applied to W e, with the
# Jacobian J, the error e and W = I + (w - 1) d d^T. The paper writes lambda for lambda^2, and
# lambda_max for lambda_max^2.


@kernel
def accuracy_damping(params: MethodParams, s: Array, n: int) -> float:
    """Return lambda^2 of the policy `accuracy`, which damps near singularities.

    Args:
        params: Parameters lambda_max and epsilon of the policy.
        s: (r,) singular values of the Jacobian.
        n: Number of columns of the Jacobian.
    """
    return _nearness(params, s, n) * params.lambda_max * params.lambda_max


@kernel
def accuracy_weight(params: MethodParams, s: Array, n: int) -> float:
    """Return the weight w of the direction that may be less accurate in the policy `accuracy`.

    w rises from w_min at a singularity to 1 if the smallest singular value is at least epsilon.

    Args:
        params: Parameters w_min and epsilon of the policy.
        s: (r,) singular values of the Jacobian.
        n: Number of columns of the Jacobian.
    """
    near = _nearness(params, s, n)
    return 1.0 - sqrt(near) * (1.0 - params.w_min)


@kernel
def weight_vector(x: Array, direction: Array, w: float) -> None:
    """Multiply the first r entries of x by W = I + (w - 1) d d^T in place.

    Args:
        x: Vector of at least r entries; entries after the first r, such as the row that the
            strategy TA adds to the task, are unchanged.
        direction: (r,) unit vector d.
        w: Weight along d.
    """
    along = 0.0
    for i in range(direction.shape[0]):
        along += direction[i] * x[i]
    for i in range(direction.shape[0]):
        x[i] += (w - 1.0) * direction[i] * along


@kernel
def weight_columns(J: Array, direction: Array, w: float) -> None:
    """Multiply the first r rows of J by W = I + (w - 1) d d^T in place.

    Args:
        J: Matrix of at least r rows; rows after the first r are unchanged.
        direction: (r,) unit vector d.
        w: Weight along d.
    """
    for j in range(J.shape[1]):
        along = 0.0
        for i in range(direction.shape[0]):
            along += direction[i] * J[i, j]
        for i in range(direction.shape[0]):
            J[i, j] += (w - 1.0) * direction[i] * along


@kernel
def weight_matrix(direction: Array, w: float, W: Array) -> None:
    """Write the symmetric matrix I + (w - 1) d d^T.

    Args:
        direction: Unit vector d.
        w: Weight along d.
        W: (r, r) written; r may exceed the number of entries of `direction`.
    """
    for i in range(W.shape[0]):
        for j in range(W.shape[0]):
            W[i, j] = 1.0 if i == j else 0.0
        if w != 1.0:
            weight_vector(W[i], direction, w)


@kernel
def _nearness(params: MethodParams, s: Array, n: int) -> float:
    """Return 1 - (s / epsilon)^2 for the smallest singular value s of J (r, n), at least 0.

    The result is 1 at a singularity.
    """
    share = least_singular_value(s, n) / params.epsilon
    return 1.0 - share * share if share < 1.0 else 0.0


# mayorga-condition --------------------------------------------------------------------------------
# lambda = lambda_0 (1 - l)^2 for l > 1, else 0, with l the quotient of an upper bound on the
# condition number of J J^T and the parameter condition_bound (Deo & Walker 1993, method 7; Mayorga,
# Wong & Milano 1992). The paper does not give the formula of the upper bound. The following upper
# bound for A = J J^T (r, r) needs no singular vectors:
#
# cond(A) < 2 / |det A| (|A|_F / sqrt(r))^r  (Guggenheimer, Edelman & Johnson 1995)
#
# If J has more rows than columns, J J^T is always singular, and A = J^T J. lambda would be infinite
# at a singularity; it is limited to 1e12 |J|_F^2, for which no joint moves.


HEAVIEST = 1e12  # maximum lambda^2 relative to |J|_F^2
INFINITE = 1e150  # maximum condition number; the square of this value is finite


@kernel
def mayorga_condition_damping(params: MethodParams, J: Array, s: Array) -> float:
    """Return lambda^2 of the policy `mayorga-condition`, which damps ill-conditioned Jacobians.

    Args:
        params: Parameters lambda0 and condition_bound of the policy.
        J: (r, n) Jacobian.
        s: (r,) singular values of J.
    """
    return excess_damping(params, J, bound_on_condition(s, J.shape[1]) / params.condition_bound)


@kernel
def bound_on_condition(s: Array, n: int) -> float:
    """Return an upper bound on the condition number of J J^T for a Jacobian J (r, n).

    If r > n, the bound is that of J^T J.

    Args:
        s: (r,) singular values of J in descending order.
        n: Number of columns of J.
    """
    count = min(s.shape[0], n)
    fourth = 0.0
    for i in range(count):
        fourth += s[i] ** 4
    mean = sqrt(fourth / count)
    product = 2.0
    for i in range(count):
        eigenvalue = s[i] * s[i]
        if eigenvalue <= mean * product / INFINITE:
            return INFINITE
        product *= mean / eigenvalue
    return product


@kernel
def excess_damping(params: MethodParams, J: Array, ratio: float) -> float:
    """Return lambda^2 = lambda0 (1 - ratio)^2 if `ratio` exceeds 1, else 0.

    The result is limited to 1e12 times the squared Frobenius norm of J.
    """
    if ratio <= 1.0:
        return 0.0
    excess = min(ratio, INFINITE) - 1.0
    return min(params.lambda0 * excess * excess, HEAVIEST * squared_norm(J))


# mayorga-rank -------------------------------------------------------------------------------------
# Steps are damped if the Jacobian may have lost rank since the previous step. The rank of J_k is at
# least that of J_{k-1} if |J_k - J_{k-1}| < s_min(J_{k-1}). With l the ratio of the left side of
# this inequality, in the Frobenius norm, to the right side, lambda = lambda_0 (1 - l)^2 for l > 1,
# else 0 (Deo & Walker 1993, method 7; Mayorga, Wong & Milano 1992). The first step of an attempt is
# not damped. lambda is limited as in mayorga-condition.


@allocating
def mayorga_rank_damping(params: MethodParams, J: Array, memory: Memory) -> float:
    """Return lambda^2 of the policy `mayorga-rank`, which damps if the Jacobian may lose rank.

    Args:
        params: Parameter lambda0 of the policy.
        J: (r, n) Jacobian.
        memory: Holds the Jacobian of the previous step.
    """
    if memory.steps[0] == 0:
        return 0.0
    r, n = J.shape
    last = memory.J[:r].copy()
    change = sqrt(squared_norm(J - last))
    s = np.empty(r)
    svd(last, np.empty((r, r)), s, np.empty((r, n)))
    smallest = least_singular_value(s, n)
    if change <= smallest:
        return 0.0
    return excess_damping(
        params, J, change / smallest if smallest > change / INFINITE else INFINITE
    )


# All policies -------------------------------------------------------------------------------------


@force_inline
def needs_singular_values(policy: int) -> bool:
    """Return whether :func:`policy_damping` uses the singular values for this policy id."""
    return policy not in (POLICY_CONSTANT, POLICY_ERROR, POLICY_MAYORGA_RANK)


@kernel
def policy_damping(
    method: Method, params: MethodParams, J: Array, s: Array, error_norm: float, memory: Memory
) -> float:
    """Return lambda^2 of the policy ``params.policy``, which must not be `optimal`.

    Args:
        method: Parameters of the laws JD and ED.
        params: The policy and its parameters.
        J: (r, n) Jacobian to invert, not yet multiplied by W of the policy `accuracy`.
        s: (r,) singular values of J in descending order; used only if
            :func:`needs_singular_values` is true.
        error_norm: Norm of the scaled error [m].
        memory: Values of the previous step.
    """
    n, policy = J.shape[1], params.policy
    if policy == POLICY_ERROR:
        return ed_lambda_squared(method, error_norm)
    elif policy == POLICY_MANIPULABILITY:
        return manipulability_damping(params, s, n)
    elif policy == POLICY_RATE:
        return rate_damping(params, s, n, memory)
    elif policy == POLICY_VELOCITY:
        return velocity_damping(params, s, n)
    elif policy == POLICY_TRACKING:
        return tracking_damping(params, s)
    elif policy == POLICY_CONDITION:
        return condition_damping(params, s, n)
    elif policy == POLICY_ACCURACY:
        return accuracy_damping(params, s, n)
    elif policy == POLICY_MAYORGA_CONDITION:
        return mayorga_condition_damping(params, J, s)
    elif policy == POLICY_MAYORGA_RANK:
        return mayorga_rank_damping(params, J, memory)
    return jd_lambda_squared(method)


@kernel
def remember(params: MethodParams, J: Array, s: Array, memory: Memory) -> None:
    """Store the values of this step that the policy needs for the next step in the memory.

    Args:
        params: The policy.
        J: (r, n) Jacobian.
        s: (r,) singular values of J.
        memory: `manipulability` or `J` is written, if the policy needs it.
    """
    if params.policy == POLICY_RATE:
        memory.manipulability[0] = manipulability(s, J.shape[1])
    elif params.policy == POLICY_MAYORGA_RANK:
        for i in range(J.shape[0]):
            copy(J[i], memory.J[i])


@allocating
def law_damping(method: Method, params: MethodParams, B: Array, e: Array, memory: Memory) -> float:
    """Return lambda^2 of the damping law and store lambda^2 in the memory.

    For the law JD, the policy ``params.policy`` chooses lambda^2.

    Args:
        method: Selects the law.
        params: The policy, and parameters of laws and policies.
        B: (r, n) Jacobian to invert.
        e: (r,) scaled error [m].
        memory: Values of the previous step, read and written.
    """
    total = 0.0
    for i in range(memory.e.shape[0]):  # the row that TA adds is excluded
        total += e[i] * e[i]
    if params.policy == POLICY_CONSTANT or method.damping != damping.JD:
        lambda2 = damping.lambda_squared(method, params, sqrt(total))
    else:
        s = np.zeros(B.shape[0])
        if needs_singular_values(params.policy):
            s = singular_values(B)
        lambda2 = policy_damping(method, params, B, s, sqrt(total), memory)
        remember(params, B, s, memory)
        if method.following:
            lambda2 += method.error_gain * total
    memory.lambda2[0] = lambda2
    return lambda2
