"""Keep away from singularities: H = -w, the manipulability of the scaled task Jacobian.

w = sqrt(det(J J^T)), the product of the singular values (Yoshikawa 1985; Deo & Walker 1993, 4).
"""

import numpy as np

from dls_ik.core.jit import kernel
from dls_ik.core.kinematics import forward
from dls_ik.core.linalg import copy, svd
from dls_ik.core.policy import measures
from dls_ik.core.task import task_jacobian
from dls_ik.core.types import Array, Chain, Task

NAME = "manipulability"
STEP = 1e-5  # [rad or m] of the central differences


@kernel
def gradient(chain: Chain, task: Task, T_d: Array, q: Array, out: Array) -> float:
    """Write grad H (n,) at q (n,) by central differences; return H.

    Args:
        T_d: (k, 4, 4) the target, whose axes the task may be along.
    """
    near = np.empty(q.shape[0])
    copy(q, near)
    for j in range(q.shape[0]):
        near[j] = q[j] + STEP
        above = value(chain, task, T_d, near)
        near[j] = q[j] - STEP
        out[j] = (above - value(chain, task, T_d, near)) / (2.0 * STEP)
        near[j] = q[j]
    return value(chain, task, T_d, q)


@kernel
def value(chain: Chain, task: Task, T_d: Array, q: Array) -> float:
    """H at q (n,)."""
    r, n = task.component.shape[0], q.shape[0]
    axes, T = np.empty((chain.prismatic.shape[0], 2, 3)), np.empty((T_d.shape[0], 3, 4))
    J, s = np.empty((r, n)), np.empty(r)
    forward(chain, q, axes, T)
    task_jacobian(chain, task, T_d, axes, T, np.empty((3, 3)), J)
    svd(J, np.empty((r, r)), s, np.empty((r, n)))
    return -measures.manipulability(s, n)
