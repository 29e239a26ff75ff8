"""The inverse as a matrix, (n, r): where it is a sum (CTP), or not the law's own decomposition."""

import numpy as np
from numpy.typing import NDArray

from dls_ik.core import damping, limits, policy, step
from dls_ik.core.continuous_inverse import continuous_inverse
from dls_ik.core.damping import jt
from dls_ik.core.jit import kernel, spliced
from dls_ik.core.linalg import svd, times
from dls_ik.core.policy import accuracy
from dls_ik.core.types import Array, Method, Settings


@spliced
def needs_whole_inverse(method: Method, settings: Settings) -> bool:
    """Whether directions are not those of the free columns: held by degrees, or weighted."""
    weighted = method.limits == limits.JW or (method.limits == limits.GP and settings.form == 22)
    weighted = weighted or settings.policy == policy.ACCURACY
    return method.limits == limits.CTP or (weighted and step.goes_by_direction(method))


@kernel
def filter_columns(method: Method, B: Array) -> None:
    """Put other singular values in place of those of B (r, n)."""
    r = B.shape[0]
    Ut, s, Vt = np.empty((r, r)), np.empty(r), np.empty(B.shape)
    svd(B, Ut, s, Vt)
    B[:] = damping.rebuilt(method, Ut, s, Vt)


@kernel
def invert_whole(
    method: Method,
    settings: Settings,
    group: NDArray[np.int64],
    J: Array,
    B: Array,
    e: Array,
    left: Array,
    lambda2: float,
    weight: float,
    h: Array,
    z: Array,
    c: Array,
    direction: Array,
    slides: NDArray[np.bool_],
    dq: Array,
) -> None:
    """Write dq = z + C P left, each direction of C P bounded if the method bounds them.

    Args:
        J: (r, n), B: (r, n) J diag(c), e: (r,), left: (r,) e - J z.
        weight: of the direction that may be less exact (policy accuracy), else 1.
        slides: (n,), dq: (n,) out.
    """
    r, n = J.shape
    W = np.eye(r)
    if weight != 1.0:  # row by row: W is symmetric
        for i in range(r):
            accuracy.apply_weight(np.empty((r, 0)), W[i], direction, weight)
        accuracy.apply_weight(B, np.zeros(r), direction, weight)
    right = times(W, left)
    strength = jt.step_length(B, h, right) if method.damping == damping.JT else lambda2
    by_direction = step.goes_by_direction(method)
    R = W if by_direction else right.reshape((1, r))
    X = np.empty((R.shape[0], n))
    continuous_inverse(method, settings, B, h, strength, R, X)
    for j in range(n):
        for i in range(R.shape[0]):
            X[i, j] *= c[j]
    if by_direction:
        _bounded(method, settings, group, J, e, left, X, slides, dq)
    else:
        for j in range(n):
            dq[j] = X[0, j]
    for j in range(n):
        dq[j] += z[j]


@spliced
def _bounded(
    method: Method,
    settings: Settings,
    group: NDArray[np.int64],
    J: Array,
    e: Array,
    left: Array,
    X: Array,
    slides: NDArray[np.bool_],
    dq: Array,
) -> None:
    """dq = -P J z + sum_i w_i, the w_i bounded: (7) and section VI of Colome & Torras 2012.

    Args:
        X: (r, n) the transpose of P.
    """
    r, n = J.shape
    Ut, gain, Vt = np.empty((r, r)), np.empty(r), np.empty((r, n))
    svd(X, Ut, gain, Vt)
    step.bounded_sum(method, settings, group, J, Ut, gain, Vt, e, slides, dq)
    for j in range(n):
        for i in range(r):
            dq[j] += X[i, j] * (left[i] - e[i])
