"""Damped where the manipulability w falls below a threshold: lambda_0 (1 - w / w_t)^2, else 0.

Deo & Walker 1993, section 3, method 2; Nakamura & Hanafusa 1986. w = sqrt(det(J J^T)). Their
lambda is our lambda^2, their lambda_0 our lambda0, which is lambda^2 at a singularity.
"""

from dls_ik.core.jit import kernel
from dls_ik.core.policy.measures import manipulability
from dls_ik.core.types import Array, Settings

NAME = "manipulability"


@kernel
def lambda_squared(settings: Settings, s: Array, n: int) -> float:
    """lambda^2 for the singular values s (r,) of an (r, n) Jacobian."""
    w = manipulability(s, n)
    if w >= settings.w_t:
        return 0.0
    short = 1.0 - w / settings.w_t
    return settings.lambda0 * short * short
