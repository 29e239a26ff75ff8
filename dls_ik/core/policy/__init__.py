"""Damping-factor policies: how large lambda^2 is. One file each; told apart here.

Deo & Walker 1993, section 3, whose lambda is our lambda^2.
"""

from dls_ik.core.jit import spliced
from dls_ik.core.linalg import copy
from dls_ik.core.policy import (
    accuracy,
    condition,
    constant,
    error,
    manipulability,
    mayorga_condition,
    mayorga_rank,
    measures,
    optimal,
    rate,
    tracking,
    velocity,
)
from dls_ik.core.types import Array, Memory, Method, Settings

CONSTANT, ERROR, MANIPULABILITY, RATE, VELOCITY, TRACKING, CONDITION, ACCURACY = range(8)
MAYORGA_CONDITION, MAYORGA_RANK, OPTIMAL = range(8, 11)
IDS = {
    constant.NAME: CONSTANT,
    error.NAME: ERROR,
    manipulability.NAME: MANIPULABILITY,
    rate.NAME: RATE,
    velocity.NAME: VELOCITY,
    tracking.NAME: TRACKING,
    condition.NAME: CONDITION,
    accuracy.NAME: ACCURACY,
    mayorga_condition.NAME: MAYORGA_CONDITION,
    mayorga_rank.NAME: MAYORGA_RANK,
    optimal.NAME: OPTIMAL,
}
NAMES = tuple(IDS)


@spliced
def needs_singular_values(policy: int) -> bool:
    """Whether :func:`lambda_squared` reads the singular values of the Jacobian."""
    return policy not in (CONSTANT, ERROR, MAYORGA_RANK)


@spliced
def lambda_squared(
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
        return error.lambda_squared(method, error_norm)
    elif policy == MANIPULABILITY:
        return manipulability.lambda_squared(settings, s, n)
    elif policy == RATE:
        return rate.lambda_squared(settings, s, n, memory)
    elif policy == VELOCITY:
        return velocity.lambda_squared(settings, s, n)
    elif policy == TRACKING:
        return tracking.lambda_squared(settings, s)
    elif policy == CONDITION:
        return condition.lambda_squared(settings, s, n)
    elif policy == ACCURACY:
        return accuracy.lambda_squared(settings, s, n)
    elif policy == MAYORGA_CONDITION:
        return mayorga_condition.lambda_squared(settings, J, s)
    elif policy == MAYORGA_RANK:
        return mayorga_rank.lambda_squared(settings, J, memory)
    return constant.lambda_squared(method)


@spliced
def remember(settings: Settings, J: Array, s: Array, memory: Memory) -> None:
    """Keep what the next step compares with; J: (r, n), s: (r,)."""
    if settings.policy == RATE:
        memory.manipulability[0] = measures.manipulability(s, J.shape[1])
    elif settings.policy == MAYORGA_RANK:
        for i in range(J.shape[0]):
            copy(J[i], memory.J[i])
