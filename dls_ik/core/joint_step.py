"""One step of closed-loop inverse kinematics: the three choices put together.

dq = z + P (e - J z) for every combination: the limit strategy gives z and how far each joint is
held, the damping law gives P = J^{(I-H)+}, the step bound shortens what comes of the error.
"""

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from dls_ik.core import damping, limits, step
from dls_ik.core.inverse import apply_factored, continuous_inverse, factor_normal, gather
from dls_ik.core.jit import inlined, kernel
from dls_ik.core.linalg import svd
from dls_ik.core.step import sd
from dls_ik.core.types import Array, Chain, Method, Workspace


@inlined
def joint_step(chain: Chain, method: Method, q: Array, work: Workspace) -> None:
    """Write the step for the error ``work.e`` and Jacobian ``work.J``, both scaled, to ``work.dq``.

    ``work.J`` is spoilt. Equation (1) of Colome & Torras 2012.

    Args:
        q: (n,) joint values [rad or m].
    """
    total = 0.0
    for i in range(work.e.shape[0]):
        total += work.e[i] * work.e[i]
    lambda2 = damping.lambda_squared(method, sqrt(total))
    limits.activate(method, chain, q, work.J, work.e, work.h, work.z)
    if limits.is_continuous(method):
        _continuous_step(method, lambda2, work)
    else:
        while True:
            _discrete_step(method, lambda2, work)
            if not limits.revise(method, chain, q, work.dq, work.h, work.z):
                break
    if method.alpha != 1.0:
        for j in range(q.shape[0]):
            work.dq[j] *= method.alpha


@inlined
def _remaining_error(J: Array, e: Array, z: Array, left: Array) -> None:
    """Write e - J z, what the motion z leaves of the error: (6,)."""
    for i in range(6):
        left[i] = e[i]
    for j in range(z.shape[0]):
        if z[j] != 0.0:
            for i in range(6):
                left[i] -= J[i, j] * z[j]


@inlined
def _free_joints(h: Array, free: NDArray[np.int64]) -> int:
    """List the joints that are not held; return how many."""
    count = 0
    for j in range(h.shape[0]):
        if h[j] == 0.0:
            free[count] = j
            count += 1
    return count


@inlined
def _discrete_step(method: Method, lambda2: float, work: Workspace) -> None:
    """Joints either free or held: one damped inverse of the free columns."""
    free, dq, left = work.free, work.dq, work.r[0]
    count = _free_joints(work.h, free)
    _remaining_error(work.J, work.e, work.z, left)
    for j in range(dq.shape[0]):
        dq[j] = work.z[j]
    if count == 0:
        return
    B = gather(work.J, free, count)
    part = work.part[:count]
    by_factor = method.step == step.NONE and not damping.is_filter(method)
    if by_factor and factor_normal(B, lambda2, work.A):
        apply_factored(B, work.A, left, work.y, part)
    else:
        _step_by_singular_values(method, lambda2, B, left, part, work)
    for k in range(count):
        dq[free[k]] += part[k]
    if method.step == step.SD:
        sd.bound(method.gamma_max, dq)


@kernel
def _step_by_singular_values(
    method: Method, lambda2: float, B: Array, left: Array, part: Array, work: Workspace
) -> None:
    """Write the step of the free columns B (6, k) direction by direction to part (k,)."""
    Vt = np.empty(B.shape)
    svd(B, work.Ut, work.s, Vt)
    for s in range(6):
        work.gain[s] = damping.gain(method, work.s[s], lambda2)
    if damping.is_filter(method):
        _filter(method, B, Vt, work)
    sd.bounded_sum(B, work.Ut, work.gain, Vt, left, _component_bound(method), part)


@kernel
def _component_bound(method: Method) -> float:
    return method.gamma_max if method.step == step.SD else 1e300


@kernel
def _continuous_step(method: Method, lambda2: float, work: Workspace) -> None:
    """Joints held by degrees: the continuous inverse of the (filtered) Jacobian."""
    n = work.dq.shape[0]
    if damping.is_filter(method):
        _filter_jacobian(method, work)
    if method.step == step.NONE:
        X = np.empty((1, n))
        _remaining_error(work.J, work.e, work.z, work.r[0])
        continuous_inverse(work.J, work.h, lambda2, work.r[:1], X, work)
        for j in range(n):
            work.dq[j] = work.z[j] + X[0, j]
        return
    X = np.empty((6, n))
    R = work.r
    R.fill(0.0)
    for i in range(6):
        R[i, i] = 1.0
    continuous_inverse(work.J, work.h, lambda2, R, X, work)
    _selectively_damped(method, X, work)


@kernel
def _filter_jacobian(method: Method, work: Workspace) -> None:
    """J = sum_i s_i u_i v_i^T with other singular values, in place."""
    Vt = np.empty((6, work.dq.shape[0]))
    svd(work.J, work.Ut, work.s, Vt)
    _filter(method, work.J, Vt, work)


@kernel
def _filter(method: Method, B: Array, Vt: Array, work: Workspace) -> None:
    """Write the filtered B (6, k) from its singular values and vectors."""
    B.fill(0.0)
    for s in range(6):
        sigma = damping.filtered(method, work.s[s])
        for i in range(6):
            along = sigma * work.Ut[s, i]
            for j in range(B.shape[1]):
                B[i, j] += along * Vt[s, j]


@kernel
def _selectively_damped(method: Method, X: Array, work: Workspace) -> None:
    """dq = (I - P J) z + sum_s w_s, bounded: (7) and section VI of Colome & Torras 2012.

    Args:
        X: (6, n) the transpose of P.
    """
    n = work.dq.shape[0]
    Vt = np.empty((6, n))
    svd(X, work.Ut, work.gain, Vt)
    sd.bounded_sum(work.J, work.Ut, work.gain, Vt, work.e, method.gamma_max, work.dq)
    Jz = work.y
    for i in range(6):
        Jz[i] = 0.0
        for j in range(n):
            Jz[i] += work.J[i, j] * work.z[j]
    for j in range(n):
        work.dq[j] += work.z[j]
        for i in range(6):
            work.dq[j] -= X[i, j] * Jz[i]
    sd.bound(method.gamma_max, work.dq)
