"""How strongly a law damps: lambda^2 of the laws and, for JD, of the policies."""

from math import sqrt

import numpy as np

from dls_ik.core import damping, policy
from dls_ik.core.jit import kernel
from dls_ik.core.linalg import svd
from dls_ik.core.types import Array, Memory, Method, Settings


@kernel
def law_damping(method: Method, settings: Settings, B: Array, e: Array, memory: Memory) -> float:
    """Return what is added to every squared singular value; remember it.

    Args:
        B: (r, n) the Jacobian as it is inverted, e: (r,) scaled error.
    """
    total = 0.0
    for i in range(memory.e.shape[0]):  # without the row of TA
        total += e[i] * e[i]
    if settings.policy == policy.CONSTANT or method.damping != damping.JD:
        lambda2 = damping.lambda_squared(method, settings, sqrt(total))
    else:
        s = np.zeros(B.shape[0])
        if policy.needs_singular_values(settings.policy):
            s = singular_values(B)
        lambda2 = policy.lambda_squared(method, settings, B, s, sqrt(total), memory)
        policy.remember(settings, B, s, memory)
        if method.following:
            lambda2 += method.error_gain * total
    memory.lambda2[0] = lambda2
    return lambda2


@kernel
def singular_values(J: Array) -> Array:
    """Return the r singular values of J (r, n), falling."""
    r = J.shape[0]
    s = np.empty(r)
    svd(J, np.empty((r, r)), s, np.empty(J.shape))
    return s


@kernel
def scaled_columns(J: Array, c: Array) -> Array:
    """Return J diag(c), (r, n)."""
    B = J.copy()
    for j in range(c.shape[0]):
        for i in range(J.shape[0]):
            B[i, j] *= c[j]
    return B
