"""JP, the Moore-Penrose pseudoinverse: singular values as they are.

J+ = sum_i 1/s_i v_i u_i^T (Colome & Torras 2012, (2), Table II; Whitney 1969).
"""

from dls_ik.core.jit import inlined
from dls_ik.core.types import Method

NAME = "jp"


@inlined
def lambda_squared(method: Method, error_norm: float) -> float:
    """No damping."""
    return 0.0
