# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Step of a nonlinear least-squares method that shortens a joint path along its self-motion.

The unknowns are displacements of the configurations of all poses. A displacement in the null space
of the task Jacobian keeps the pose to first order. The sum of weighted squared motions between
successive poses is minimized, which leads to a block-tridiagonal system.

Arrays `x` are scaled configurations: joint positions times the square roots of the joint weights.
"""

import numpy as np

from dls_ik.core.hierarchy import factor_rows
from dls_ik.core.jit import allocating
from dls_ik.core.linalg import factor, solve_factored
from dls_ik.core.task import jacobian_there, observe
from dls_ik.core.types import Array, Chain, GeneralProblem, Method
from dls_ik.core.workspace import new_memory, workspace

LEAST_BLOCK_PIVOT = 1e-14  # minimum pivot relative to the largest diagonal entry
LEAST_ROW = 1e-9  # rows of the Jacobian [m] shorter than this count as zero


@allocating
def null_bases(
    chain: Chain, method: Method, general: GeneralProblem, T: Array, q: Array, scale: Array,
    bases: Array,
) -> None:  # fmt: skip
    """Write a basis of the null space of the scaled task Jacobian at each configuration.

    Rows of the task with a tolerance are left out, because they do not fix the configuration.

    Args:
        chain: The chain of the arm.
        method: Method, from which the sizes of scratch arrays follow.
        general: Contains the definition of the task.
        T: (m, k, 4, 4) desired poses.
        q: (m, n) configurations [rad or m].
        scale: (n,) square roots of the joint weights.
        bases: (m, n, d) orthonormal bases, written. With r rows without a tolerance, d is
            max(n - r, 0).
    """
    work = workspace(chain, general, new_memory(chain, method, general))
    n, d, rows = q.shape[1], bases.shape[2], general.task.tolerance.shape[0]
    r = 0
    for i in range(rows):
        r += general.task.tolerance[i] == 0.0
    B, Q, order = np.empty((r, n)), np.empty((n, n)), np.empty(r, np.int64)
    for p in range(q.shape[0]):
        observe(chain, general, T[p], q[p], work)
        jacobian_there(chain, general, T[p], work)
        a = 0
        for i in range(rows):
            if general.task.tolerance[i] == 0.0:
                for j in range(n):
                    B[a, j] = work.J[i, j] / scale[j]
                a += 1
        factor_rows(B, LEAST_ROW, Q, order)
        for j in range(n):
            for i in range(d):
                bases[p, j, i] = Q[j, n - d + i]


@allocating
def smoothing_step(x: Array, bases: Array, pull: Array, stay: Array) -> Array:
    """Return the displacements that minimize the sum of weighted squared motions of a path.

    The objective is the sum of ``pull[i] * |motion i|^2`` over all motions plus the sum of
    ``stay[i] * |displacement i|^2`` over all configurations. Each displacement is in the null space
    of its configuration.

    Args:
        x: (m, n) scaled configurations.
        bases: (m, n, d) orthonormal bases of the null spaces.
        pull: (m - 1,) weights of the motions between successive configurations.
        stay: (m,) weights of the displacements, above 0.

    Returns:
        Displacements (m, n) of the scaled configurations.
    """
    m, n, d = bases.shape
    diagonal, beside, ahead = np.zeros((m, d, d)), np.zeros((m, d, d)), np.zeros((m, d, d))
    y, column, out = np.zeros((m, d)), np.empty(d), np.zeros((m, n))
    for i in range(m):
        before = pull[i - 1] if i > 0 else 0.0
        after = pull[i] if i < m - 1 else 0.0
        for a in range(d):
            diagonal[i, a, a] += before + after + stay[i]
            for j in range(n):
                if i > 0:
                    y[i, a] += before * bases[i, j, a] * (x[i - 1, j] - x[i, j])
                if i < m - 1:
                    y[i, a] += after * bases[i, j, a] * (x[i + 1, j] - x[i, j])
            if i < m - 1:
                for b in range(d):
                    for j in range(n):
                        beside[i, a, b] -= after * bases[i, j, a] * bases[i + 1, j, b]
    # Eliminate block by block: ahead[i] is diagonal[i]^-1 beside[i], with the eliminated diagonal.
    for i in range(m):
        factor(diagonal[i], d, LEAST_BLOCK_PIVOT)
        solve_factored(diagonal[i], d, y[i])
        if i == m - 1:
            break
        for b in range(d):
            for a in range(d):
                column[a] = beside[i, a, b]
            solve_factored(diagonal[i], d, column)
            for a in range(d):
                ahead[i, a, b] = column[a]
            for c in range(d):
                for a in range(d):
                    diagonal[i + 1, c, b] -= beside[i, a, c] * column[a]
            for a in range(d):
                y[i + 1, b] -= beside[i, a, b] * y[i, a]
    for i in range(m - 1, -1, -1):
        for a in range(d):
            if i < m - 1:
                for b in range(d):
                    y[i, a] -= ahead[i, a, b] * y[i + 1, b]
            for j in range(n):
                out[i, j] += bases[i, j, a] * y[i, a]
    return out
