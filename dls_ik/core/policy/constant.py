"""A constant damping factor (Deo & Walker 1993, section 3, method 1; Wampler 1986).

Their lambda is our lambda^2.
"""

from dls_ik.core.jit import kernel
from dls_ik.core.types import Method

NAME = "constant"


@kernel
def lambda_squared(method: Method) -> float:
    """lambda^2, whatever the configuration."""
    return method.lambda_ * method.lambda_
