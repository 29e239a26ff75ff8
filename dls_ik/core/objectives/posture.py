"""Stay near a reference posture: H = 1/2 |q - reference|^2."""

from dls_ik.core.jit import kernel
from dls_ik.core.types import Array

NAME = "posture"


@kernel
def gradient(reference: Array, q: Array, out: Array) -> float:
    """Write grad H (n,) at q (n,); return H."""
    H = 0.0
    for j in range(q.shape[0]):
        out[j] = q[j] - reference[j]
        H += 0.5 * out[j] * out[j]
    return H
