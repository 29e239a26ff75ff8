"""JD, the damped Jacobian; with a constant damping factor unless a policy chooses it.

J^T (J J^T + lambda^2 I)^-1 = sum_i s_i / (s_i^2 + lambda^2) v_i u_i^T
(Colome & Torras 2012, Table II; Wampler 1986; Nakamura & Hanafusa 1986).
"""

from dls_ik.core.jit import inlined
from dls_ik.core.types import Method

NAME = "jd"


@inlined
def lambda_squared(method: Method) -> float:
    """lambda^2, whatever the error."""
    return method.lambda_ * method.lambda_
