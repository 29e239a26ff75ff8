# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Policies that choose lambda^2 of the law JD at each configuration.

The policies follow Deo & Walker 1993, section 3; lambda in the paper is lambda^2 here, and lambda_0
is lambda0. Each policy has a section with its formula and source, except `constant` (method 1) and
`error`, (5), which are the formulas of the laws JD and ED (Wampler 1986; Chan & Lawrence 1988). To
add a policy, write its section, its id, its name in `POLICY_IDS`, and its branch in
:func:`policy_damping`. The policy `optimal` is in :mod:`dls_ik.core.optimal_damping`.
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
# lambda = lambda_0 (1 - w / w_t)^2 below a threshold w_t of the manipulability w =
# sqrt(det(J J^T)), else 0 (Deo & Walker 1993, method 2; Nakamura & Hanafusa 1986).


@kernel
def manipulability_damping(params: MethodParams, s: Array, n: int) -> float:
    """Return lambda^2 for the singular values s (r,) of an (r, n) Jacobian."""
    w = manipulability(s, n)
    if w >= params.w_t:
        return 0.0
    short = 1.0 - w / params.w_t
    return params.lambda0 * short * short


# rate ---------------------------------------------------------------------------------------------
# lambda = lambda_0 (1 - w_k / w_{k-1}) while the manipulability w falls by a ratio below w_t, else
# 0 (Deo & Walker 1993, method 3; Kelmar & Khosla 1988). w_t in the paper is rate_t here. Unlike w,
# the ratio of two steps does not depend on the size of the arm. The first step of an attempt and a
# step out of a singularity (w_{k-1} = 0) have no ratio and are not damped.


@kernel
def rate_damping(params: MethodParams, s: Array, n: int, memory: Memory) -> float:
    """Return lambda^2 from the singular values s (r,) of J (r, n) and w of the last step."""
    w, last = manipulability(s, n), memory.manipulability[0]
    if memory.steps[0] == 0 or not w < params.rate_t * last:
        return 0.0
    return params.lambda0 * (1.0 - w / last)


# velocity -----------------------------------------------------------------------------------------
# lambda = s_min / b - s_min^2 if s_min <= 1/b, else 0: the joint velocity for a unit velocity of
# the tip along the direction of s_min is at most b, here velocity_bound (Deo & Walker 1993, (6);
# Maciejewski & Klein 1988).
#
# A singular value between s_min and 1/b - s_min has a gain above b. With one nearly singular
# direction, as in the paper, no singular value is in this interval, and b bounds the joint velocity
# for every unit velocity. With two such directions, the second is not damped enough (the law nf
# damps both).


@kernel
def velocity_damping(params: MethodParams, s: Array, n: int) -> float:
    """Return lambda^2 for the singular values s (r,) of an (r, n) Jacobian."""
    return least_damping(least_singular_value(s, n), params.velocity_bound)


# tracking -----------------------------------------------------------------------------------------
# lambda = s_r^2 R / (1 - R), the largest lambda that keeps the tracking error relative to the
# velocity of the tip, lambda / (s^2 + lambda), within R = tracking_bound in every direction of
# the range of J; s_r is the smallest singular value above zero (Deo & Walker 1993, (7); Maciejewski
# & Klein 1988).


@kernel
def tracking_damping(params: MethodParams, s: Array) -> float:
    """Return lambda^2 for the singular values s (r,)."""
    least = s[0]
    for i in range(s.shape[0]):
        if s[i] > SINGULAR * s[0]:
            least = s[i]
    R = params.tracking_bound
    return least * least * R / (1.0 - R)


# condition ----------------------------------------------------------------------------------------
# lambda = (s_1^2 - k s_n^2) / (k - 1), at least 0, bounds the condition number of J^T J + lambda I
# by k = condition_bound (Deo & Walker 1993, (8); Maciejewski & Klein 1988). J^T J is (n, n), so
# that s_n is 0 with fewer rows than joints.


@kernel
def condition_damping(params: MethodParams, s: Array, n: int) -> float:
    """Return lambda^2 for the singular values s (r,) of an (r, n) Jacobian."""
    k = params.condition_bound
    least = s[n - 1] if n <= s.shape[0] else 0.0
    return max(0.0, (s[0] * s[0] - k * least * least) / (k - 1.0))


# accuracy -----------------------------------------------------------------------------------------
# Damping near a singularity, with less accuracy along a direction d first. With s the smallest
# singular value, for s < epsilon (Deo & Walker 1993, method 6; Chiaverini, Egeland & Kanestrom
# 1991):
#
# lambda = (1 - (s / epsilon)^2) lambda_max,  (w - 1)^2 = (1 - (s / epsilon)^2) (w_min - 1)^2
#
# otherwise lambda = 0 and w = 1. J and the error are multiplied by W = I + (w - 1) d d^T before the
# damped inverse. lambda_max in the paper is lambda_max^2 here, and d is `direction`.


@kernel
def accuracy_damping(params: MethodParams, s: Array, n: int) -> float:
    """Return lambda^2 for the singular values s (r,) of an (r, n) Jacobian."""
    return _nearness(params, s, n) * params.lambda_max * params.lambda_max


@kernel
def accuracy_weight(params: MethodParams, s: Array, n: int) -> float:
    """Return w, which rises from w_min at a singularity to 1, from s (r,) of J (r, n)."""
    near = _nearness(params, s, n)
    return 1.0 - sqrt(near) * (1.0 - params.w_min)


@kernel
def weight_vector(x: Array, direction: Array, w: float) -> None:
    """Multiply x (r',) by W in place.

    Args:
        x: (r',) vector, r' >= r; further entries, such as the row of TA, are unchanged.
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
    """Multiply J (r', n) by W in place; the arguments are those of :func:`weight_vector`."""
    for j in range(J.shape[1]):
        along = 0.0
        for i in range(direction.shape[0]):
            along += direction[i] * J[i, j]
        for i in range(direction.shape[0]):
            J[i, j] += (w - 1.0) * direction[i] * along


@allocating
def weight_matrix(r: int, direction: Array, w: float) -> Array:
    """Return W (r, r), which is symmetric."""
    W = np.eye(r)
    if w != 1.0:
        for i in range(r):
            weight_vector(W[i], direction, w)
    return W


@kernel
def _nearness(params: MethodParams, s: Array, n: int) -> float:
    """Return 1 at a singularity, falling to 0 if the smallest singular value is epsilon."""
    share = least_singular_value(s, n) / params.epsilon
    return 1.0 - share * share if share < 1.0 else 0.0


# mayorga-condition --------------------------------------------------------------------------------
# lambda = lambda_0 (1 - l)^2 for l > 1, else 0; l is an upper bound on the condition number of
# J J^T divided by a threshold, here condition_bound (Deo & Walker 1993, method 7; Mayorga, Wong &
# Milano 1992). The paper does not print its bound. This bound for A = J J^T (r, r) needs no
# singular vectors:
#
# cond(A) < 2 / |det A| (|A|_F / sqrt(r))^r  (Guggenheimer, Edelman & Johnson 1995)
#
# With more rows than joints A is J^T J, because J J^T is then always singular. lambda is unbounded
# at a singularity; it is limited to 1e12 |J|_F^2, at which no joint moves.


HEAVIEST = 1e12  # maximum lambda^2 relative to |J|_F^2
INFINITE = 1e150  # maximum condition number; its square is finite


@kernel
def mayorga_condition_damping(params: MethodParams, J: Array, s: Array) -> float:
    """Return lambda^2 for J (r, n) and its singular values s (r,)."""
    return excess_damping(params, J, bound_on_condition(s, J.shape[1]) / params.condition_bound)


@kernel
def bound_on_condition(s: Array, n: int) -> float:
    """Return an upper bound on the condition number of J J^T, for r > n of J^T J."""
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
    """Return lambda_0 (1 - l)^2 for the ratio l > 1, else 0."""
    if ratio <= 1.0:
        return 0.0
    excess = min(ratio, INFINITE) - 1.0
    return min(params.lambda0 * excess * excess, HEAVIEST * squared_norm(J))


# mayorga-rank -------------------------------------------------------------------------------------
# lambda = lambda_0 (1 - l)^2 for l > 1, else 0: steps are damped if the Jacobian may have lost rank
# since the last step. The rank cannot fall if |J_k - J_{k-1}| < s_min(J_{k-1}); l is the ratio of
# the left side, in the Frobenius norm, to the right side (Deo & Walker 1993, method 7; Mayorga,
# Wong & Milano 1992). The first step of an attempt is not damped. lambda is limited as in
# mayorga-condition.


@allocating
def mayorga_rank_damping(params: MethodParams, J: Array, memory: Memory) -> float:
    """Return lambda^2 for J (r, n), compared with the Jacobian of the last step."""
    if memory.steps[0] == 0:
        return 0.0
    r, n = J.shape
    last = memory.J[:r].copy()
    change = sqrt(squared_norm(J - last))
    s = np.empty(r)
    svd(last, np.empty((r, r)), s, np.empty((r, n)))
    room = least_singular_value(s, n)
    if change <= room:
        return 0.0
    return excess_damping(params, J, change / room if room > change / INFINITE else INFINITE)


# All policies -------------------------------------------------------------------------------------


@force_inline
def needs_singular_values(policy: int) -> bool:
    """Return whether :func:`policy_damping` reads the singular values of the Jacobian."""
    return policy not in (POLICY_CONSTANT, POLICY_ERROR, POLICY_MAYORGA_RANK)


@kernel
def policy_damping(
    method: Method, params: MethodParams, J: Array, s: Array, error_norm: float, memory: Memory
) -> float:
    """Return lambda^2 of any policy but `optimal`.

    Args:
        J: (r, n) Jacobian to invert, before the weight of the policy accuracy.
        s: (r,) singular values of J in descending order; read only if the policy needs them.
        error_norm: Norm of the scaled error [m].
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
    """Store the values that the policy compares with the next step; J: (r, n), s: (r,)."""
    if params.policy == POLICY_RATE:
        memory.manipulability[0] = manipulability(s, J.shape[1])
    elif params.policy == POLICY_MAYORGA_RANK:
        for i in range(J.shape[0]):
            copy(J[i], memory.J[i])


@allocating
def law_damping(method: Method, params: MethodParams, B: Array, e: Array, memory: Memory) -> float:
    """Return lambda^2 of the law, or of its policy, and store lambda^2 in the memory.

    Args:
        B: (r, n) Jacobian to invert.
        e: (r,) scaled error.
    """
    total = 0.0
    for i in range(memory.e.shape[0]):  # excludes the row of TA
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
