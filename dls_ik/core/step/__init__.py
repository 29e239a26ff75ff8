"""Step bounds: how far a step may go. One file each; told apart here."""

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.jit import kernel, spliced
from dls_ik.core.step import largest, none, norm, sd, sdls
from dls_ik.core.types import Array, Method, Settings

NONE, SD, SDLS, MAX, NORM = range(5)
IDS = {none.NAME: NONE, largest.NAME: MAX, norm.NAME: NORM, sd.NAME: SD, sdls.NAME: SDLS}


@spliced
def goes_by_direction(method: Method) -> bool:
    """Whether each singular direction is bounded for itself."""
    return method.step == SD or method.step == SDLS


@kernel
def bounded_sum(
    method: Method,
    settings: Settings,
    group: NDArray[np.int64],
    J: Array,
    Ut: Array,
    gain: Array,
    Vt: Array,
    e: Array,
    slides: NDArray[np.bool_],
    dq: Array,
) -> None:
    """Write sum_i w_i, w_i = gain_i v_i (u_i . e), each bounded where the method bounds directions.

    Args:
        group: (r,) which rows make one vector, see :class:`dls_ik.core.types.Task`.
        J: (r, k), Ut: (r, r), gain: (r,), Vt: (r, k), e: (r,), slides: (k,) joints that only slide.
        dq: (k,) out.
    """
    r, k = J.shape
    dq.fill(0.0)
    w = np.empty(k)
    for s in range(r):
        if gain[s] == 0.0:
            continue
        along = 0.0
        for i in range(r):
            along += Ut[s, i] * e[i]
        length, kept = gain[s] * along, 1.0
        for j in range(k):
            w[j] = length * Vt[s, j]
        if method.step == SD:
            kept = sd.share(J, Vt[s], gain[s], length, method.gamma_max, settings.published)
        elif method.step == SDLS:
            gamma = sdls.largest_bound(group, J, Ut[s], Vt[s], gain[s], method.gamma_max)
            kept = sdls.share(w, slides, gamma, settings.soft)
        for j in range(k):
            dq[j] += w[j] if method.step == SDLS and slides[j] else kept * w[j]


@spliced
def bound(method: Method, settings: Settings, slides: NDArray[np.bool_], dq: Array) -> None:
    """Shorten the whole step dq (n,) in place."""
    if method.step == SD:
        norm.bound(method.gamma_max, dq)
    elif method.step == SDLS:
        sdls.bound(dq, slides, method.gamma_max, settings.soft)
    elif method.step == MAX:
        largest.bound(settings.largest_change, dq)
    elif method.step == NORM:
        norm.bound(settings.Delta, dq)
