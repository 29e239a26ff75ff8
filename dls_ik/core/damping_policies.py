"""Policies that choose lambda^2 of the law JD: how large it is at a configuration.

Deo & Walker 1993, section 3, whose lambda is lambda^2 here; a policy has a section with its formula
and source. `optimal` is a search of its own: :mod:`dls_ik.core.optimal_damping`.
"""

from math import sqrt

import numpy as np

from dls_ik.core import damping
from dls_ik.core.damping import ed_lambda_squared, jd_lambda_squared, least_damping
from dls_ik.core.jit import kernel, spliced
from dls_ik.core.linalg import (
    copy,
    least_singular_value,
    manipulability,
    singular_values,
    squared_norm,
    svd,
)
from dls_ik.core.types import Array, Memory, Method, Settings

CONSTANT, ERROR, MANIPULABILITY, RATE, VELOCITY, TRACKING, CONDITION, ACCURACY = range(8)
MAYORGA_CONDITION, MAYORGA_RANK, OPTIMAL = range(8, 11)
IDS = {
    "constant": CONSTANT,
    "error": ERROR,
    "manipulability": MANIPULABILITY,
    "rate": RATE,
    "velocity": VELOCITY,
    "tracking": TRACKING,
    "condition": CONDITION,
    "accuracy": ACCURACY,
    "mayorga-condition": MAYORGA_CONDITION,
    "mayorga-rank": MAYORGA_RANK,
    "optimal": OPTIMAL,
}
NAMES = tuple(IDS)
SINGULAR = 1e-10  # share of the largest singular value up to which another one counts as zero


# manipulability -----------------------------------------------------------------------------------
#
# Damped where the manipulability w falls below a threshold: lambda_0 (1 - w / w_t)^2, else 0.
#
# Deo & Walker 1993, section 3, method 2; Nakamura & Hanafusa 1986. w = sqrt(det(J J^T)). Their
# lambda is our lambda^2, their lambda_0 our lambda0, which is lambda^2 at a singularity.


@kernel
def manipulability_damping(settings: Settings, s: Array, n: int) -> float:
    """lambda^2 for the singular values s (r,) of an (r, n) Jacobian."""
    w = manipulability(s, n)
    if w >= settings.w_t:
        return 0.0
    short = 1.0 - w / settings.w_t
    return settings.lambda0 * short * short


# rate ---------------------------------------------------------------------------------------------
#
# Damped while the manipulability w falls: lambda_0 (1 - w_k / w_{k-1}) if the ratio is below w_t.
#
# Deo & Walker 1993, section 3, method 3; Kelmar & Khosla 1988. Unlike w itself, the ratio of two
# steps does not depend on the size of the arm. Their lambda is our lambda^2, their lambda_0 our
# lambda0, their w_t our rate_t. The first step of an attempt has no ratio, nor has one that leaves
# a singularity (w_{k-1} = 0): neither is damped.


@kernel
def rate_damping(settings: Settings, s: Array, n: int, memory: Memory) -> float:
    """lambda^2 for the singular values s (r,) of an (r, n) Jacobian and the last step's w."""
    w, last = manipulability(s, n), memory.manipulability[0]
    if memory.steps[0] == 0 or not w < settings.rate_t * last:
        return 0.0
    return settings.lambda0 * (1.0 - w / last)


# velocity -----------------------------------------------------------------------------------------
#
# The joint velocity bounded for a unit velocity of the tip along the least singular direction.
#
# lambda = s_min / b - s_min^2 if s_min <= 1/b, else 0 (Deo & Walker 1993, (6); Maciejewski & Klein
# 1988). Their lambda is our lambda^2, their bound b our velocity_bound.
#
# In the least singular direction the gain s / (s^2 + lambda) is then at most b. A larger singular
# value has a gain above b if it lies between s_min and 1/b - s_min: with one direction near
# singular, as in the paper, none does and b bounds every unit velocity; with two, the policy lets
# the second pass (the law nf is what damps it too).


@kernel
def velocity_damping(settings: Settings, s: Array, n: int) -> float:
    """lambda^2 for the singular values s (r,) of an (r, n) Jacobian."""
    return least_damping(least_singular_value(s, n), settings.velocity_bound)


# tracking -----------------------------------------------------------------------------------------
#
# As much damping as a bound on the tracking error allows: lambda = s_r^2 R / (1 - R).
#
# Deo & Walker 1993, (7); Maciejewski & Klein 1988. R bounds the error relative to the velocity of
# the tip, lambda / (s^2 + lambda) <= R, in every direction that J can move in at all; s_r is the
# least singular value that is not zero. Their lambda is our lambda^2, their Delta R_max our
# tracking_bound.


@kernel
def tracking_damping(settings: Settings, s: Array) -> float:
    """lambda^2 for the singular values s (r,)."""
    least = s[0]
    for i in range(s.shape[0]):
        if s[i] > SINGULAR * s[0]:
            least = s[i]
    R = settings.tracking_bound
    return least * least * R / (1.0 - R)


# condition ----------------------------------------------------------------------------------------
#
# The condition number of J^T J + lambda I bounded: (s_1^2 - k s_n^2) / (k - 1), at least 0.
#
# Deo & Walker 1993, (8); Maciejewski & Klein 1988. J^T J is (n, n): s_n is 0 where there are fewer
# rows than joints. Their lambda is our lambda^2, their k_max our condition_bound.


@kernel
def condition_damping(settings: Settings, s: Array, n: int) -> float:
    """lambda^2 for the singular values s (r,) of an (r, n) Jacobian."""
    k = settings.condition_bound
    least = s[n - 1] if n <= s.shape[0] else 0.0
    return max(0.0, (s[0] * s[0] - k * least * least) / (k - 1.0))


# accuracy -----------------------------------------------------------------------------------------
#
# User-defined accuracy: near a singularity damped, and less exact along a direction d first.
#
# With s the least singular value, where s < epsilon (Deo & Walker 1993, section 3, method 6;
# Chiaverini, Egeland & Kanestrom 1991):
#
# lambda = (1 - (s / epsilon)^2) lambda_max,  (w - 1)^2 = (1 - (s / epsilon)^2) (w_min - 1)^2
#
# else lambda = 0 and w = 1. J and the error are multiplied by W = I + (w - 1) d d^T before the
# damped inverse. Their lambda is our lambda^2, their lambda_max our lambda_max^2, their d our
# direction.


@kernel
def accuracy_damping(settings: Settings, s: Array, n: int) -> float:
    """lambda^2 for the singular values s (r,) of an (r, n) Jacobian."""
    return _nearness(settings, s, n) * settings.lambda_max * settings.lambda_max


@kernel
def accuracy_weight(settings: Settings, s: Array, n: int) -> float:
    """w, from w_min at a singularity to 1 away from it; s: (r,) of an (r, n) Jacobian."""
    near = _nearness(settings, s, n)
    return 1.0 - sqrt(near) * (1.0 - settings.w_min)


@kernel
def apply_accuracy_weight(J: Array, left: Array, direction: Array, w: float) -> None:
    """Multiply J (r', n) and left (r',) by W in place.

    Args:
        direction: (r,) a unit vector; rows beyond it, such as that of TA, stay as they are.
    """
    along = 0.0
    for i in range(direction.shape[0]):
        along += direction[i] * left[i]
    for i in range(direction.shape[0]):
        left[i] += (w - 1.0) * direction[i] * along
    for j in range(J.shape[1]):
        along = 0.0
        for i in range(direction.shape[0]):
            along += direction[i] * J[i, j]
        for i in range(direction.shape[0]):
            J[i, j] += (w - 1.0) * direction[i] * along


@kernel
def _nearness(settings: Settings, s: Array, n: int) -> float:
    """1 at a singularity, falling to 0 where the least singular value is epsilon."""
    share = least_singular_value(s, n) / settings.epsilon
    return 1.0 - share * share if share < 1.0 else 0.0


# mayorga-condition --------------------------------------------------------------------------------
#
# Damped by how far the condition number may be above a threshold: lambda_0 (1 - l)^2 if l > 1.
#
# l is an upper bound on the condition number of J J^T over a threshold, our condition_bound (Deo &
# Walker 1993, section 3, method 7; Mayorga, Wong & Milano 1992). They do not print their bound;
# this one, of A = J J^T (r, r), needs no singular vectors:
#
# cond(A) < 2 / |det A| (|A|_F / sqrt(r))^r  (Guggenheimer, Edelman & Johnson 1995)
#
# With more rows than joints A is J^T J, as J J^T then is always singular. Their lambda is our
# lambda^2, which has no bound at a singularity: it ends at 1e12 |J|_F^2, where no joint moves.


HEAVIEST = 1e12  # lambda^2 relative to |J|_F^2
INFINITE = 1e150  # its square is still a number


@kernel
def mayorga_condition_damping(settings: Settings, J: Array, s: Array) -> float:
    """lambda^2 for J (r, n) and its singular values s (r,)."""
    return excess_damping(settings, J, bound_on_condition(s, J.shape[1]) / settings.condition_bound)


@kernel
def bound_on_condition(s: Array, n: int) -> float:
    """Upper bound on the condition number of J J^T, or J^T J, for J (r, n)."""
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
def excess_damping(settings: Settings, J: Array, ratio: float) -> float:
    """lambda_0 (1 - l)^2 for l > 1, else 0."""
    if ratio <= 1.0:
        return 0.0
    excess = min(ratio, INFINITE) - 1.0
    return min(settings.lambda0 * excess * excess, HEAVIEST * squared_norm(J))


# mayorga-rank -------------------------------------------------------------------------------------
#
# Damped where the Jacobian may have lost rank since the last step: lambda_0 (1 - l)^2 if l > 1.
#
# The rank stays where |J_k - J_{k-1}| < s_min(J_{k-1}): l is the one over the other, with the
# Frobenius norm (Deo & Walker 1993, section 3, method 7; Mayorga, Wong & Milano 1992). The first
# step of an attempt is not damped. Their lambda is our lambda^2; bounded as in
# mayorga_condition.py.


@kernel
def mayorga_rank_damping(settings: Settings, J: Array, memory: Memory) -> float:
    """lambda^2 for J (r, n) after the Jacobian of the last step."""
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
    return excess_damping(settings, J, change / room if room > change / INFINITE else INFINITE)


# All policies -------------------------------------------------------------------------------------


@spliced
def needs_singular_values(policy: int) -> bool:
    """Whether :func:`lambda_squared` reads the singular values of the Jacobian."""
    return policy not in (CONSTANT, ERROR, MAYORGA_RANK)


@spliced
def policy_damping(
    method: Method, settings: Settings, J: Array, s: Array, error_norm: float, memory: Memory
) -> float:
    """What a policy adds to every squared singular value: all but `optimal`, a search of its own.

    Args:
        J: (r, n) as it is inverted, before a weight of the policy.
        s: (r,) its singular values, falling; any numbers where they are not needed.
        error_norm: norm of the scaled error [m].
    """
    n, policy = J.shape[1], settings.policy
    if policy == ERROR:
        return ed_lambda_squared(method, error_norm)
    elif policy == MANIPULABILITY:
        return manipulability_damping(settings, s, n)
    elif policy == RATE:
        return rate_damping(settings, s, n, memory)
    elif policy == VELOCITY:
        return velocity_damping(settings, s, n)
    elif policy == TRACKING:
        return tracking_damping(settings, s)
    elif policy == CONDITION:
        return condition_damping(settings, s, n)
    elif policy == ACCURACY:
        return accuracy_damping(settings, s, n)
    elif policy == MAYORGA_CONDITION:
        return mayorga_condition_damping(settings, J, s)
    elif policy == MAYORGA_RANK:
        return mayorga_rank_damping(settings, J, memory)
    return jd_lambda_squared(method)


@spliced
def remember(settings: Settings, J: Array, s: Array, memory: Memory) -> None:
    """Keep what the next step compares with; J: (r, n), s: (r,)."""
    if settings.policy == RATE:
        memory.manipulability[0] = manipulability(s, J.shape[1])
    elif settings.policy == MAYORGA_RANK:
        for i in range(J.shape[0]):
            copy(J[i], memory.J[i])


@kernel
def law_damping(method: Method, settings: Settings, B: Array, e: Array, memory: Memory) -> float:
    """Return what is added to every squared singular value; remember it.

    Args:
        B: (r, n) the Jacobian as it is inverted, e: (r,) scaled error.
    """
    total = 0.0
    for i in range(memory.e.shape[0]):  # without the row of TA
        total += e[i] * e[i]
    if settings.policy == CONSTANT or method.damping != damping.JD:
        lambda2 = damping.lambda_squared(method, settings, sqrt(total))
    else:
        s = np.zeros(B.shape[0])
        if needs_singular_values(settings.policy):
            s = singular_values(B)
        lambda2 = policy_damping(method, settings, B, s, sqrt(total), memory)
        remember(settings, B, s, memory)
        if method.following:
            lambda2 += method.error_gain * total
    memory.lambda2[0] = lambda2
    return lambda2
