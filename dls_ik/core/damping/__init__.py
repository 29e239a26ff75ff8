"""Damping laws: what becomes of a singular value. One file a law; this table tells them apart.

A law gives the inverse P = sum_i g_i v_i u_i^T its gains g_i. The laws that add the same lambda^2
to every squared singular value need none of them, only a factorisation.
"""

import numpy as np

from dls_ik.core.damping import ed, ied, jd, jf, jp, jt, nf, svf, svf_ed, tpinv
from dls_ik.core.jit import kernel, spliced
from dls_ik.core.types import Array, Method, Settings

JP, JD, ED, SVF, IED, JT, TPINV, JF, NF, SVF_ED = range(10)
IDS = {
    jp.NAME: JP,
    jt.NAME: JT,
    tpinv.NAME: TPINV,
    jd.NAME: JD,
    jf.NAME: JF,
    nf.NAME: NF,
    ed.NAME: ED,
    ied.NAME: IED,
    svf.NAME: SVF,
    svf_ed.NAME: SVF_ED,
}


@spliced
def quick_lambda_squared(method: Method, error_norm: float) -> float:
    """What JP, JD with its constant factor, and ED add to every squared singular value.

    While a target is followed the error damps every law: far from the target a step that is not
    damped overshoots, and the next one comes back.

    Args:
        error_norm: norm of the scaled error [m].
    """
    if method.damping == ED:
        return ed.lambda_squared(method, error_norm)
    added = ed.lambda_squared(method, error_norm) if method.following else 0.0
    if method.damping == JD:
        return added + jd.lambda_squared(method)
    return added


@kernel
def lambda_squared(method: Method, settings: Settings, error_norm: float) -> float:
    """As :func:`quick_lambda_squared`, for all laws; JD with its constant factor."""
    if method.damping == SVF_ED:
        return ed.lambda_squared(method, error_norm)
    if method.damping == IED:
        return ied.lambda_squared(method, settings.omega, error_norm)
    return quick_lambda_squared(method, error_norm)


@spliced
def is_uniform(method: Method) -> bool:
    """Whether every gain is s / (s^2 + lambda^2), so that a factorisation does."""
    law = method.damping
    return law in (JP, JD, ED, IED)


@spliced
def is_filter(method: Method) -> bool:
    """Whether the law puts other singular values in place of the Jacobian's."""
    return method.damping == SVF or method.damping == SVF_ED


@kernel
def gains(
    method: Method, settings: Settings, s: Array, count: int, strength: float, g: Array
) -> None:
    """Write the gain of every direction.

    Args:
        s: (r,) singular values, falling, of which the first `count` are real.
        strength: lambda^2; for JT its step length.
        g: (r,) out.
    """
    law = method.damping
    for i in range(s.shape[0]):
        g[i] = 0.0
        if i >= count:
            continue
        if law in (SVF, SVF_ED):
            filtered = svf.filtered(method, s[i])
            g[i] = filtered / (filtered * filtered + strength)
        elif s[i] <= 0.0:
            continue
        elif law == JT:
            g[i] = strength * s[i]
        elif law == TPINV:
            g[i] = tpinv.gain(settings.truncation, s, i, strength)
        elif law == JF:
            g[i] = jf.gain(settings, s, i, i == count - 1, strength)
        elif law == NF:
            g[i] = nf.gain(settings.velocity_bound, s, i, count, strength)
        else:
            g[i] = s[i] / (s[i] * s[i] + strength)


@kernel
def rebuilt(method: Method, Ut: Array, s: Array, Vt: Array) -> Array:
    """Return sum_i h(s_i) u_i v_i^T, (r, k): the Jacobian with SVF's singular values."""
    r, columns = Vt.shape
    B = np.zeros((r, columns))
    for k in range(r):
        sigma = svf.filtered(method, s[k])
        for i in range(r):
            along = sigma * Ut[k, i]
            for j in range(columns):
                B[i, j] += along * Vt[k, j]
    return B
