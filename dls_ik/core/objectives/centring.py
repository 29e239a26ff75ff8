"""Keep every joint near the middle of its range: H = 1/(2n) sum_j ((q_j - mid_j) / half_j)^2.

The criterion of Liegeois 1977. A joint without two limits counts 0. How far a joint is off, in
halves of its range, and each slope end at +-1e6, for joints that have next to no range.
"""

from dls_ik.core.jit import kernel
from dls_ik.core.types import Array, Chain

NAME = "centring"
STEEPEST = 1e6


@kernel
def gradient(chain: Chain, q: Array, out: Array) -> float:
    """Write grad H (n,) at q (n,); return H."""
    n, H = q.shape[0], 0.0
    for j in range(n):
        half = 0.5 * (chain.upper[j] - chain.lower[j])
        out[j] = 0.0
        if 0.0 < half < 1e150:
            off = (q[j] - 0.5 * (chain.lower[j] + chain.upper[j])) / half
            off = min(max(off, -STEEPEST), STEEPEST)
            H += 0.5 * off * off / n
            out[j] = min(max(off / (n * half), -STEEPEST), STEEPEST)
    return H
