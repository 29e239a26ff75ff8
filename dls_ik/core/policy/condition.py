"""The condition number of J^T J + lambda I bounded: (s_1^2 - k s_n^2) / (k - 1), at least 0.

Deo & Walker 1993, (8); Maciejewski & Klein 1988. J^T J is (n, n): s_n is 0 where there are fewer
rows than joints. Their lambda is our lambda^2, their k_max our condition_bound.
"""

from dls_ik.core.jit import kernel
from dls_ik.core.types import Array, Settings

NAME = "condition"


@kernel
def lambda_squared(settings: Settings, s: Array, n: int) -> float:
    """lambda^2 for the singular values s (r,) of an (r, n) Jacobian."""
    k = settings.condition_bound
    least = s[n - 1] if n <= s.shape[0] else 0.0
    return max(0.0, (s[0] * s[0] - k * least * least) / (k - 1.0))
