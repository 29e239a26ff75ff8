"""IED, improved error damping: something is left of the damping at a singular goal.

J^T (J J^T + E I + Omega)^-1 with E = error_gain * norm(e)^2 and Omega = omega^2 I
(Colome & Torras 2012, Table II; Sugihara 2009). Table V says "Omega = 0.01 I": its figures come out
when 0.01 is read as a damping factor, such as JD's lambda, whose square is added.
"""

from dls_ik.core.damping import ed
from dls_ik.core.jit import kernel
from dls_ik.core.types import Method

NAME = "ied"


@kernel
def lambda_squared(method: Method, omega: float, error_norm: float) -> float:
    """E + omega^2."""
    return ed.lambda_squared(method, error_norm) + omega * omega
