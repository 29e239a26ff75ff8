"""What the policies look at: how near to a singularity a Jacobian is."""

from dls_ik.core.jit import kernel
from dls_ik.core.types import Array

SINGULAR = 1e-10  # share of the largest singular value up to which another one counts as zero


@kernel
def least(s: Array, n: int) -> float:
    """The least singular value of an (r, n) Jacobian; s: (r,), falling."""
    return s[min(s.shape[0], n) - 1]


@kernel
def manipulability(s: Array, n: int) -> float:
    """w, the product of the singular values of an (r, n) Jacobian: sqrt(det(J J^T)) for r <= n."""
    w = 1.0
    for i in range(min(s.shape[0], n)):
        w *= s[i]
    return w


@kernel
def squared_norm(J: Array) -> float:
    """The square of the Frobenius norm of J (r, n)."""
    total = 0.0
    for i in range(J.shape[0]):
        for j in range(J.shape[1]):
            total += J[i, j] * J[i, j]
    return total
