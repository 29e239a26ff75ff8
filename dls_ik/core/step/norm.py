"""NORM: the step is shortened to a 2-norm of Delta: the bound of Deo & Walker 1993, by scaling."""

from math import sqrt

from dls_ik.core.jit import kernel
from dls_ik.core.types import Array

NAME = "norm"


@kernel
def bound(longest: float, dq: Array) -> None:
    """Shorten `dq` (n,) to a 2-norm of `longest`."""
    total = 0.0
    for j in range(dq.shape[0]):
        total += dq[j] * dq[j]
    if total > longest * longest:
        scale = longest / sqrt(total)
        for j in range(dq.shape[0]):
            dq[j] *= scale
