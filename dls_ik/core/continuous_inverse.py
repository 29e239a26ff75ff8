"""The continuous inverse J^{(I-H)+}: joints held by degrees."""

import numpy as np
from numpy.typing import NDArray

from dls_ik.core import damping
from dls_ik.core.inverse import apply_factored, apply_singular, damped_gains, factor_normal, gather
from dls_ik.core.jit import kernel
from dls_ik.core.linalg import svd
from dls_ik.core.types import Array, Method, Settings

MAX_BRANCHING = 10  # joints in their margins at once; more are rounded to free or held


@kernel
def _add_leaf(
    method: Method,
    settings: Settings,
    B: Array,
    free: NDArray[np.int64],
    strength: float,
    R: Array,
    weight: float,
    X: Array,
) -> None:
    """Add weight times the law's inverse of the free columns B (r, k), applied to R, to X."""
    r, k = B.shape
    part, A, y = np.empty(k), np.empty((r, r)), np.empty(r)
    Ut, s, Vt, gain = np.empty((r, r)), np.empty(r), np.empty(B.shape), np.empty(r)
    uniform = damping.is_uniform(method) or damping.is_filter(method)  # J is filtered already
    factored = uniform and factor_normal(B, strength, A)
    if not factored:
        svd(B, Ut, s, Vt)
        if uniform:
            damped_gains(s, strength, gain)
        else:
            damping.gains(method, settings, s, min(r, k), strength, gain)
    for c in range(R.shape[0]):
        if factored:
            apply_factored(B, A, R[c], y, part)
        else:
            apply_singular(Ut, gain, Vt, R[c], part)
        for j in range(k):
            X[c, free[j]] += weight * part[j]


@kernel
def _round_excess(h: Array) -> int:
    """Count the joints with 0 < h < 1; round the least undecided of them if there are too many."""
    count = 0
    for j in range(h.shape[0]):
        if 0.0 < h[j] < 1.0:
            count += 1
    while count > MAX_BRANCHING:
        nearest, best = 0, 2.0
        for j in range(h.shape[0]):
            if 0.0 < h[j] < 1.0 and min(h[j], 1.0 - h[j]) < best:
                nearest, best = j, min(h[j], 1.0 - h[j])
        h[nearest] = 0.0 if h[nearest] < 0.5 else 1.0
        count -= 1
    return count


@kernel
def continuous_inverse(
    method: Method,
    settings: Settings,
    J: Array,
    h: Array,
    strength: float,
    R: Array,
    X: Array,
) -> None:
    """Write X = J^{(I-H)+} R, exactly: the sum over the sets Q of joints that may be free.

    J^{(I-H)+} = sum_Q prod_{j in Q} (1 - h_j) prod_{j not in Q} h_j J_Q^+
    (Mansard, Remazeilles & Chaumette 2009, definition 4.1). A joint with h = 0 is in every set and
    one with h = 1 in none, so only those between branch: 2^b terms instead of 2^n.

    Args:
        J: (r, n), h: (n,), R: (c, r) right-hand sides as rows, X: (c, n) out.
        strength: lambda^2 of the law; for JT its step length.
    """
    X.fill(0.0)
    free = np.empty(h.shape[0], np.int64)
    branching = _round_excess(h)
    for chosen in range(1 << branching):
        count, branch, weight = 0, 0, 1.0
        for j in range(h.shape[0]):
            joint_is_free = h[j] == 0.0
            if 0.0 < h[j] < 1.0:
                joint_is_free = (chosen >> branch) & 1 == 1
                weight *= 1.0 - h[j] if joint_is_free else h[j]
                branch += 1
            if joint_is_free:
                free[count] = j
                count += 1
        if count > 0:
            B = gather(J, free, count)
            _add_leaf(method, settings, B, free, strength, R, weight, X)
