"""MAX, the largest joint change: the whole step is scaled so that no joint moves farther.

Buss & Kim 2004, section 5; Tabaczynski 2005, 3.2 (whose text says norm, and whose code largest).
"""

from dls_ik.core.jit import kernel
from dls_ik.core.types import Array

NAME = "max"


@kernel
def bound(farthest: float, dq: Array) -> float:
    """Scale `dq` (n,) to a largest absolute component of `farthest`; return what it was."""
    largest = 0.0
    for j in range(dq.shape[0]):
        largest = max(largest, abs(dq[j]))
    if largest > farthest:
        for j in range(dq.shape[0]):
            dq[j] *= farthest / largest
    return largest
