"""Damping laws: what becomes of a singular value. One file a law; this table tells them apart.

A law either adds lambda^2 to every squared singular value (`lambda_squared`), or puts another
value in its place (`filtered`); the second kind needs the singular values themselves.
"""

from dls_ik.core.damping import ed, jd, jp, svf
from dls_ik.core.jit import inlined, kernel
from dls_ik.core.types import Method

JP, JD, ED, SVF = range(4)
IDS = {jp.NAME: JP, jd.NAME: JD, ed.NAME: ED, svf.NAME: SVF}


@inlined
def lambda_squared(method: Method, error_norm: float) -> float:
    """What is added to every squared singular value.

    While a target is followed the error damps every law: far from the target a step that is not
    damped overshoots, and the next one comes back.

    Args:
        error_norm: norm of the scaled error [m].
    """
    if method.damping == ED:
        return ed.lambda_squared(method, error_norm)
    added = ed.lambda_squared(method, error_norm) if method.following else 0.0
    if method.damping == JD:
        return added + jd.lambda_squared(method, error_norm)
    return added + jp.lambda_squared(method, error_norm)


@inlined
def is_filter(method: Method) -> bool:
    """Whether the law puts other singular values in place of the Jacobian's."""
    return method.damping == SVF


@kernel
def filtered(method: Method, s: float) -> float:
    """What stands in for singular value s."""
    if method.damping == SVF:
        return svf.filtered(method, s)
    return s


@kernel
def gain(method: Method, s: float, lambda2: float) -> float:
    """What the inverse multiplies u_i . e by, to go along v_i."""
    s = filtered(method, s)
    return s / (s * s + lambda2) if s > 0.0 else 0.0
