"""The step of the methods that need no singular values: JP, JD and ED; limits ignored, JC, active.

dq = z + P (e - J z), P the damped inverse of the columns of the joints that are free.
"""

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from dls_ik.core import damping, limits
from dls_ik.core.inverse import apply_factored, apply_pseudoinverse, factor_normal, gather
from dls_ik.core.jit import inlined, spliced
from dls_ik.core.types import Array, Chain, Method, Workspace


@spliced
def quick_step(chain: Chain, method: Method, q: Array, work: Workspace) -> None:
    """As :func:`dls_ik.core.joint_step.joint_step`."""
    total = 0.0
    for i in range(work.e.shape[0]):
        total += work.e[i] * work.e[i]
    lambda2 = damping.quick_lambda_squared(method, sqrt(total))
    work.z.fill(0.0)
    limits.quick_activate(method, chain, q, work.J, work.e, work.h)
    while True:
        free_joints_step(lambda2, work)
        if not limits.revise(method, chain, q, work.dq, work.h, work.z):
            break
    if method.alpha != 1.0:
        for j in range(q.shape[0]):
            work.dq[j] *= method.alpha


@inlined
def remaining_error(J: Array, e: Array, z: Array, left: Array) -> None:
    """Write e - J z, what the motion z leaves of the error: (r,)."""
    for i in range(e.shape[0]):
        left[i] = e[i]
    for j in range(z.shape[0]):
        if z[j] != 0.0:
            for i in range(e.shape[0]):
                left[i] -= J[i, j] * z[j]


@inlined
def free_joints(h: Array, free: NDArray[np.int64]) -> int:
    """List the joints that are not held; return how many."""
    count = 0
    for j in range(h.shape[0]):
        if h[j] == 0.0:
            free[count] = j
            count += 1
    return count


@spliced
def free_joints_step(lambda2: float, work: Workspace) -> None:
    """Write the step with some joints held at their z."""
    free, dq, left = work.free, work.dq, work.left
    count = free_joints(work.h, free)
    remaining_error(work.J, work.e, work.z, left)
    for j in range(dq.shape[0]):
        dq[j] = work.z[j]
    if count > 0:
        B = gather(work.J, free, count)
        part = work.part[:count]
        if factor_normal(B, lambda2, work.A):
            apply_factored(B, work.A, left, work.y, part)
        else:
            apply_pseudoinverse(B, lambda2, left, part)
        for k in range(count):
            dq[free[k]] += part[k]
