"""As much damping as a bound on the tracking error allows: lambda = s_r^2 R / (1 - R).

Deo & Walker 1993, (7); Maciejewski & Klein 1988. R bounds the error relative to the velocity of the
tip, lambda / (s^2 + lambda) <= R, in every direction that J can move in at all; s_r is the least
singular value that is not zero. Their lambda is our lambda^2, their Delta R_max our tracking_bound.
"""

from dls_ik.core.jit import kernel
from dls_ik.core.policy.measures import SINGULAR
from dls_ik.core.types import Array, Settings

NAME = "tracking"


@kernel
def lambda_squared(settings: Settings, s: Array) -> float:
    """lambda^2 for the singular values s (r,)."""
    least = s[0]
    for i in range(s.shape[0]):
        if s[i] > SINGULAR * s[0]:
            least = s[i]
    R = settings.tracking_bound
    return least * least * R / (1.0 - R)
