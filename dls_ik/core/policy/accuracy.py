"""User-defined accuracy: near a singularity damped, and less exact along a direction d first.

With s the least singular value, where s < epsilon (Deo & Walker 1993, section 3, method 6;
Chiaverini, Egeland & Kanestrom 1991):

lambda = (1 - (s / epsilon)^2) lambda_max,  (w - 1)^2 = (1 - (s / epsilon)^2) (w_min - 1)^2

else lambda = 0 and w = 1. J and the error are multiplied by W = I + (w - 1) d d^T before the damped
inverse. Their lambda is our lambda^2, their lambda_max our lambda_max^2, their d our direction.
"""

from math import sqrt

from dls_ik.core.jit import kernel
from dls_ik.core.policy.measures import least
from dls_ik.core.types import Array, Settings

NAME = "accuracy"


@kernel
def lambda_squared(settings: Settings, s: Array, n: int) -> float:
    """lambda^2 for the singular values s (r,) of an (r, n) Jacobian."""
    return _nearness(settings, s, n) * settings.lambda_max * settings.lambda_max


@kernel
def weight(settings: Settings, s: Array, n: int) -> float:
    """w, from w_min at a singularity to 1 away from it; s: (r,) of an (r, n) Jacobian."""
    near = _nearness(settings, s, n)
    return 1.0 - sqrt(near) * (1.0 - settings.w_min)


@kernel
def apply_weight(J: Array, left: Array, direction: Array, w: float) -> None:
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
    share = least(s, n) / settings.epsilon
    return 1.0 - share * share if share < 1.0 else 0.0
