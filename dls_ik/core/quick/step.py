"""The step of JP, JD and ED; limits ignored, JC, or the active set of ``auto``.

dq = z + P (e - J z), P the damped inverse of the columns of the joints that are free.
"""

import numpy as np

from dls_ik.core import damping, limits
from dls_ik.core.inverse import apply_factored, apply_pseudoinverse, factor_normal
from dls_ik.core.jit import inlined, kernel, spliced
from dls_ik.core.quick.normal import solve_normal
from dls_ik.core.types import Arm, Array, Method, QuickWork


@spliced
def quick_step(arm: Arm, method: Method, error: float, q: Array, work: QuickWork) -> None:
    """Write the step for ``work.e`` and ``work.J``, both scaled, to ``work.dq``.

    ``work.e`` is spoilt.

    Args:
        error: norm of the scaled error [m].
    """
    work.h.fill(0.0)
    if limits.clips(method):
        hold_pushed(arm.lower, arm.upper, q, work.J, work.e, work.h, work.dq)
    lambda2 = damping.quick_lambda_squared(method, error)
    solve_free(arm.lower, arm.upper, limits.revises(method), lambda2, q, work)
    if method.alpha != 1.0:
        for j in range(q.shape[0]):
            work.dq[j] *= method.alpha


@spliced
def solve_free(
    lower: Array, upper: Array, revises: bool, lambda2: float, q: Array, work: QuickWork
) -> None:
    """Write the step of the joints that are not held; hold those that pass a limit, if wanted."""
    again = True
    while again:
        again = False
        solve_damped(lambda2, work)
        if revises:
            again = hold_passing(lower, upper, q, work.J, work.e, work.h, work.dq)


@spliced
def solve_damped(lambda2: float, work: QuickWork) -> None:
    """Write dq = P e of the joints that are not held, P the damped inverse of their columns."""
    enough = work.dq.shape[0] >= 6
    if enough and solve_normal(work.J, work.h, work.e, lambda2, work.y):
        apply_transposed(work.J, work.h, work.y, work.dq)
    else:
        solve_few(work.J, work.h, work.e, lambda2, work.dq)


@inlined
def hold_pushed(
    lower: Array, upper: Array, q: Array, J: Array, e: Array, h: Array, dq: Array
) -> None:
    """Hold the joints at (or past) a limit that the gradient of the error pushes outward.

    Args:
        lower, upper, q: (n,), J: (n, 6), e: (6,), h: (n,) in and out, dq: (n,) out where held.
    """
    for j in range(q.shape[0]):
        outward = 1.0 if q[j] >= upper[j] else (-1.0 if q[j] <= lower[j] else 0.0)
        if outward != 0.0 and outward * along(J, j, e) > 0.0:
            h[j], dq[j] = 1.0, 0.0


@inlined
def hold_passing(
    lower: Array, upper: Array, q: Array, J: Array, e: Array, h: Array, dq: Array
) -> bool:
    """Hold every free joint that `dq` takes past a limit at that limit; say whether one was.

    What its way there does to the error is taken off `e`.
    """
    again = False
    for j in range(q.shape[0]):
        there = min(max(q[j] + dq[j], lower[j]), upper[j])
        if h[j] == 0.0 and there != q[j] + dq[j]:
            h[j], dq[j], again = 1.0, there - q[j], True
            for i in range(6):
                e[i] -= J[j, i] * dq[j]
    return again


@inlined
def along(J: Array, j: int, y: Array) -> float:
    """Column j of the Jacobian times y, (6,)."""
    return (
        J[j, 0] * y[0] + J[j, 1] * y[1] + J[j, 2] * y[2]
        + J[j, 3] * y[3] + J[j, 4] * y[4] + J[j, 5] * y[5]
    )  # fmt: skip


@inlined
def apply_transposed(J: Array, h: Array, y: Array, dq: Array) -> None:
    """Write dq = J^T y for the joints that are not held."""
    for j in range(dq.shape[0]):
        if h[j] == 0.0:
            dq[j] = along(J, j, y)


@kernel
def solve_few(J: Array, h: Array, e: Array, lambda2: float, dq: Array) -> None:
    """As the normal equations, where they would cost digits: few joints free, or a singularity."""
    free = np.flatnonzero(h == 0.0)
    if free.size == 0:
        return
    B, A, x, y = np.empty((6, free.size)), np.empty((6, 6)), np.empty(free.size), np.empty(6)
    for k in range(free.size):
        for i in range(6):
            B[i, k] = J[free[k], i]
    if factor_normal(B, lambda2, A):
        apply_factored(B, A, e, y, x)
    else:
        apply_pseudoinverse(B, lambda2, e, x)
    for k in range(free.size):
        dq[free[k]] = x[k]
