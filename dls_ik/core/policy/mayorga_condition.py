"""Damped by how far the condition number may be above a threshold: lambda_0 (1 - l)^2 if l > 1.

l is an upper bound on the condition number of J J^T over a threshold, our condition_bound (Deo &
Walker 1993, section 3, method 7; Mayorga, Wong & Milano 1992). They do not print their bound; this
one, of A = J J^T (r, r), needs no singular vectors:

cond(A) < 2 / |det A| (|A|_F / sqrt(r))^r  (Guggenheimer, Edelman & Johnson 1995)

With more rows than joints A is J^T J, as J J^T then is always singular. Their lambda is our
lambda^2, which has no bound at a singularity: it ends at 1e12 |J|_F^2, where no joint moves.
"""

from math import sqrt

from dls_ik.core.jit import kernel
from dls_ik.core.policy.measures import squared_norm
from dls_ik.core.types import Array, Settings

NAME = "mayorga-condition"
HEAVIEST = 1e12  # lambda^2 relative to |J|_F^2
INFINITE = 1e150  # its square is still a number


@kernel
def lambda_squared(settings: Settings, J: Array, s: Array) -> float:
    """lambda^2 for J (r, n) and its singular values s (r,)."""
    return excess_damping(settings, J, bound(s, J.shape[1]) / settings.condition_bound)


@kernel
def bound(s: Array, n: int) -> float:
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
