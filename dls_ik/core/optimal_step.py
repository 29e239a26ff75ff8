"""The step with the optimal damping factor: as exact as a bound on its 2-norm allows.

Deo & Walker 1993, 3.1, and with a motion v of the null space 4.1; their lambda is our lambda^2.
"""

import numpy as np
from numpy.typing import NDArray

from dls_ik.core import limits, step
from dls_ik.core.free_columns import add_unbounded
from dls_ik.core.inverse import apply_singular, damped_gains, free_joints, gather
from dls_ik.core.jit import kernel, spliced
from dls_ik.core.linalg import svd, times
from dls_ik.core.policy import optimal
from dls_ik.core.step import norm
from dls_ik.core.types import Array, Memory, Method, Settings


@kernel
def optimal_step(
    method: Method,
    settings: Settings,
    group: NDArray[np.int64],
    J: Array,
    e: Array,
    h: Array,
    v: Array,
    slides: NDArray[np.bool_],
    memory: Memory,
    dq: Array,
) -> None:
    """Write dq = J* e + (I - J* J) v / lambda, or with J+ and v where that is short enough.

    Args:
        J: (r, n), e: (r,), h: (n,) 1 for joints that are held, v: (n,) motion that GP asks for.
        slides: (n,) joints that only slide, dq: (n,) out.
    """
    free = np.empty(h.shape[0], np.int64)
    count = free_joints(h, free)
    dq.fill(0.0)
    memory.steps[1] = 0
    if count == 0:
        return
    F = gather(J, free, count)
    r = F.shape[0]
    Ut, s, Vt = np.empty((r, r)), np.empty(r), np.empty(F.shape)
    svd(F, Ut, s, Vt)
    start, z = memory.lambda2[0], np.zeros(v.shape[0])
    if method.limits == limits.GP:
        lambda2, searched = _search_total(settings, s, times(Ut, e), times(Vt, v), v, start)
        for j in range(z.shape[0]):
            z[j] = v[j] / lambda2 if lambda2 > 0.0 else v[j]
    else:
        lambda2, searched = optimal.search_plain(settings, s, times(Ut, e), start)
    memory.lambda2[0] = lambda2
    memory.steps[1] = searched
    memory.steps[2] += searched
    damped_gains(s, lambda2, s)
    part, left = np.empty(count), e - times(J, z)
    if step.goes_by_direction(method):
        step.bounded_sum(method, settings, group, F, Ut, s, Vt, e, slides[free[:count]], part)
        add_unbounded(Ut, s, Vt, e, left, part)
    else:
        apply_singular(Ut, s, Vt, left, part)
    for k in range(count):
        dq[free[k]] = part[k]
    for j in range(dq.shape[0]):
        dq[j] += z[j]
    norm.bound(settings.Delta, dq)  # an undamped one too: a long z may cancel but for rounding


@spliced
def _search_total(
    settings: Settings, s: Array, gamma: Array, beta: Array, v: Array, start: float
) -> tuple[float, int]:
    """Return lambda^2 for the total motion, and the iterations; 0 where (20) is short enough.

    Args:
        s: (r,), gamma: (r,) U^T e, beta: (r,) V^T v, v: (n,).
    """
    rest2 = 0.0
    for j in range(v.shape[0]):
        rest2 += v[j] * v[j]
    for i in range(beta.shape[0]):
        rest2 -= beta[i] * beta[i]
    return optimal.search_total(settings, s, gamma, beta, max(rest2, 0.0), start)
