"""ED, error damping: the farther from the goal, the heavier the damping.

J^T (J J^T + E I)^-1 with E = error_gain * norm(e)^2; one half in the paper
(Colome & Torras 2012, Table II; Chan & Lawrence 1988).
"""

from dls_ik.core.jit import inlined
from dls_ik.core.types import Method

NAME = "ed"


@inlined
def lambda_squared(method: Method, error_norm: float) -> float:
    """E."""
    return method.error_gain * error_norm * error_norm
