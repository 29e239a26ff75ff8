"""SVF, singular value filtering: no singular value below sigma0 gets through.

h(s) = (s^3 + nu s^2 + 2 s + 2 sigma0) / (s^2 + nu s + 2) takes the place of s
(Colome & Torras 2012, (3) and (4)). It rises with s where nu > sigma0 and 2 > nu sigma0, and the
condition number of the inverse is then bounded by h(s_1) / sigma0.
"""

from dls_ik.core.jit import kernel
from dls_ik.core.types import Method

NAME = "svf"


@kernel
def filtered(method: Method, s: float) -> float:
    """h(s)."""
    below = s * s + method.nu * s + 2.0
    return s + 2.0 * method.sigma0 / below
