"""The joint velocity bounded for a unit velocity of the tip along the least singular direction.

lambda = s_min / b - s_min^2 if s_min <= 1/b, else 0 (Deo & Walker 1993, (6); Maciejewski & Klein
1988). Their lambda is our lambda^2, their bound b our velocity_bound.

In the least singular direction the gain s / (s^2 + lambda) is then at most b. A larger singular
value has a gain above b if it lies between s_min and 1/b - s_min: with one direction near
singular, as in the paper, none does and b bounds every unit velocity; with two, the policy lets
the second pass (the law nf is what damps it too).
"""

from dls_ik.core.jit import kernel
from dls_ik.core.policy.measures import least
from dls_ik.core.types import Array, Settings

NAME = "velocity"


@kernel
def least_damping(s: float, bound: float) -> float:
    """(6): the least lambda^2 with s / (s^2 + lambda^2) <= bound."""
    return s / bound - s * s if s * bound <= 1.0 else 0.0


@kernel
def lambda_squared(settings: Settings, s: Array, n: int) -> float:
    """lambda^2 for the singular values s (r,) of an (r, n) Jacobian."""
    return least_damping(least(s, n), settings.velocity_bound)
