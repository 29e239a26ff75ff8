"""Objectives of the redundancy: small functions H(q) to be made less. One file each."""

from dls_ik.core.jit import kernel
from dls_ik.core.objectives import centring, limits, manipulability, obstacle, posture
from dls_ik.core.types import Array, Chain, Details, Workspace

LIMITS, CENTRING, MANIPULABILITY, POSTURE, OBSTACLE = range(5)
IDS = {
    limits.NAME: LIMITS,
    centring.NAME: CENTRING,
    manipulability.NAME: MANIPULABILITY,
    posture.NAME: POSTURE,
    obstacle.NAME: OBSTACLE,
}
NAMES = tuple(IDS)


@kernel
def gradient(
    chain: Chain,
    details: Details,
    T_d: Array,
    q: Array,
    work: Workspace,
    out: Array,
) -> float:
    """Write grad H [1/rad or 1/m by joint]; return H.

    Args:
        T_d: (k, 4, 4) target, q: (n,), out: (n,).
        work: holds the kinematics at q.
    """
    if details.settings.objective == CENTRING:
        return centring.gradient(chain, q, out)
    elif details.settings.objective == MANIPULABILITY:
        return manipulability.gradient(chain, details.task, T_d, q, out)
    elif details.settings.objective == POSTURE:
        return posture.gradient(details.reference, q, out)
    elif details.settings.objective == OBSTACLE:
        return obstacle.gradient(
            chain, details.obstacle, details.settings.influence, work.axes, work.T, out
        )
    return limits.gradient(chain, q, out)
