# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Halley's method for inverse kinematics, with the derivatives of the Jacobian.

The method QUIK computes the step in two stages: d = P e by the damping law, then the step
P_2 e with P_2 the inverse of J + H d / 2, where H d is the derivative of J along d. To second
order, a motion dq close to d reduces the error by J dq + (H d) dq / 2. The method therefore
converges cubically near a solution (Lloyd, Irani & Ahmadi 2022). The error is clamped first. The
published code has one bound for positions and one for rotations; here the option D_max is the bound
for both.
"""

import numpy as np

from dls_ik.core.inverses import invert_free_columns
from dls_ik.core.jit import allocating
from dls_ik.core.task import jacobian_derivatives
from dls_ik.core.types import Array, Chain, GeneralProblem, StepMethod, Workspace


@allocating
def bend_jacobian(
    chain: Chain,
    step_method: StepMethod,
    general: GeneralProblem,
    T_d: Array,
    lambda2: float,
    work: Workspace,
) -> None:
    """Replace the Jacobian J in `work.step.B` by J + H d / 2, with the step d = P e.

    Args:
        chain: The chain of the arm.
        step_method: Damping law.
        general: Definition of the task.
        T_d: (k, 4, 4) desired poses.
        lambda2: Squared damping factor lambda^2.
        work: The error `e`, the Jacobian `J` and the forward kinematics are read; `step.B` is read
            and written, `dq` is overwritten.
    """
    (r, n), B = work.J.shape, work.step.B
    invert_free_columns(step_method, B, work.e, work.e, lambda2, work)
    row, change = np.zeros(r), np.empty((n, n))
    for i in range(r):
        if general.task.has_tolerance and work.e[i] == 0.0:
            continue  # the row has no error, and its Jacobian is zero
        row[i] = 1.0
        jacobian_derivatives(
            chain, general.task, T_d, work.axes, work.T, work.relative, row, change
        )
        row[i] = 0.0
        for j in range(n):
            total = 0.0
            for k in range(n):
                total += change[j, k] * work.dq[k]
            B[i, j] += 0.5 * total
