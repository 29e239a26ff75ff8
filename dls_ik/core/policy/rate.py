"""Damped while the manipulability w falls: lambda_0 (1 - w_k / w_{k-1}) if the ratio is below w_t.

Deo & Walker 1993, section 3, method 3; Kelmar & Khosla 1988. Unlike w itself, the ratio of two
steps does not depend on the size of the arm. Their lambda is our lambda^2, their lambda_0 our
lambda0, their w_t our rate_t. The first step of an attempt has no ratio, nor has one that leaves a
singularity (w_{k-1} = 0): neither is damped.
"""

from dls_ik.core.jit import kernel
from dls_ik.core.policy.measures import manipulability
from dls_ik.core.types import Array, Memory, Settings

NAME = "rate"


@kernel
def lambda_squared(settings: Settings, s: Array, n: int, memory: Memory) -> float:
    """lambda^2 for the singular values s (r,) of an (r, n) Jacobian and the last step's w."""
    w, last = manipulability(s, n), memory.manipulability[0]
    if memory.steps[0] == 0 or not w < settings.rate_t * last:
        return 0.0
    return settings.lambda0 * (1.0 - w / last)
