"""One inverse of the columns of the joints that are free: all strategies but CTP."""

import numpy as np
from numpy.typing import NDArray

from dls_ik.core import damping, step
from dls_ik.core.damping import jt
from dls_ik.core.inverse import (
    apply_factored,
    apply_singular,
    factor_normal,
    free_joints,
    gather,
)
from dls_ik.core.jit import kernel, spliced
from dls_ik.core.linalg import copy, svd
from dls_ik.core.types import Array, Method, Settings


@kernel
def invert_free_columns(
    method: Method,
    settings: Settings,
    group: NDArray[np.int64],
    B: Array,
    e: Array,
    left: Array,
    lambda2: float,
    h: Array,
    z: Array,
    c: Array,
    slides: NDArray[np.bool_],
    dq: Array,
) -> None:
    """Write dq = z + C P left, with the joints where h = 1 held at their z.

    Args:
        B: (r, n) J diag(c), e: (r,), left: (r,) e - J z, slides: (n,), dq: (n,) out.
    """
    free = np.empty(h.shape[0], np.int64)
    count = free_joints(h, free)
    copy(z, dq)
    if count == 0:
        return
    F = gather(B, free, count)
    r = F.shape[0]
    part, Ut, Vt = np.zeros(count), np.empty((r, r)), np.empty(F.shape)
    s, gain = np.empty(r), np.empty(r)
    strength = jt.step_length(B, h, left) if method.damping == damping.JT else lambda2
    by_direction = step.goes_by_direction(method)
    if method.damping == damping.JT and not by_direction:
        _transposed(F, left, strength, part)
    elif damping.is_uniform(method) and not by_direction and factor_normal(F, lambda2, Ut):
        apply_factored(F, Ut, left, s, part)
    else:
        svd(F, Ut, s, Vt)
        damping.gains(method, settings, s, min(r, count), strength, gain)
        if by_direction:
            if damping.is_filter(method):
                F = damping.rebuilt(method, Ut, s, Vt)
            step.bounded_sum(
                method, settings, group, F, Ut, gain, Vt, e, slides[free[:count]], part
            )
            add_unbounded(Ut, gain, Vt, e, left, part)
        else:
            apply_singular(Ut, gain, Vt, left, part)
    for k in range(count):
        dq[free[k]] += c[free[k]] * part[k]


@spliced
def _transposed(F: Array, left: Array, alpha: float, part: Array) -> None:
    for k in range(F.shape[1]):
        for i in range(F.shape[0]):
            part[k] += alpha * F[i, k] * left[i]


@spliced
def add_unbounded(Ut: Array, gain: Array, Vt: Array, e: Array, left: Array, part: Array) -> None:
    """Add -P J z to part (k,), what makes up for z: (7) of Colome & Torras 2012."""
    made_up = np.empty(part.shape[0])
    apply_singular(Ut, gain, Vt, left - e, made_up)
    for k in range(part.shape[0]):
        part[k] += made_up[k]
