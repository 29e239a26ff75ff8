"""TPINV, the truncated pseudoinverse: singular values near zero count as zero.

sum_{s_i > t s_1} 1/s_i v_i u_i^T (Tabaczynski 2005, 2.3; Buss & Kim 2004, section 5, whose
published code takes t = 0.01).
"""

from dls_ik.core.jit import kernel
from dls_ik.core.types import Array

NAME = "tpinv"


@kernel
def gain(truncation: float, s: Array, i: int, lambda2: float) -> float:
    """1/s_i, or 0; `lambda2` is not 0 only while a target is followed."""
    return s[i] / (s[i] * s[i] + lambda2) if s[i] > truncation * s[0] else 0.0
