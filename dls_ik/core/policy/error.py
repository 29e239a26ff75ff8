"""The farther from the goal, the heavier the damping: lambda_0 |dx|^2.

Deo & Walker 1993, (5); Chan & Lawrence 1988. Their lambda is our lambda^2, their lambda_0 our
error_gain: this is the law ED under the name it has among the policies.
"""

from dls_ik.core.jit import kernel
from dls_ik.core.types import Method

NAME = "error"


@kernel
def lambda_squared(method: Method, error_norm: float) -> float:
    """lambda^2 for the norm of the scaled error [m]."""
    return method.error_gain * error_norm * error_norm
