"""JF, the filtered Jacobian: only the least singular value is damped.

J^T (J J^T + lambda^2 u_m u_m^T)^-1 (Colome & Torras 2012, Table II; Maciejewski & Klein 1988), with
lambda^2 = (1 - (s_m / epsilon)^2) lambda_max^2 for s_m < epsilon, else 0: the appendix's
g_F(s) = s / (alpha s^2 + lambda^2).
"""

from dls_ik.core.jit import kernel
from dls_ik.core.types import Array, Settings

NAME = "jf"


@kernel
def gain(settings: Settings, s: Array, i: int, is_last: bool, lambda2: float) -> float:
    """The gain of direction i; `lambda2` is not 0 only while a target is followed."""
    if is_last and s[i] < settings.epsilon:
        share = s[i] / settings.epsilon
        lambda2 += (1.0 - share * share) * settings.lambda_max * settings.lambda_max
    return s[i] / (s[i] * s[i] + lambda2)
