# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Allocation of scratch arrays inside kernels, which costs less than passing them from Python."""

import numpy as np

from dls_ik.core import limits
from dls_ik.core.jit import allocating, force_inline
from dls_ik.core.types import (
    AnyWorkspace,
    Chain,
    Decomposition,
    FastWorkspace,
    GeneralProblem,
    LimitState,
    Memory,
    Method,
    SearchScratch,
    SerialChain,
    Starts,
    StepScratch,
    Workspace,
)


@force_inline
def _task_rows(general: GeneralProblem | None) -> int:
    """Return the number of rows of the task error; 6 (a full pose) if `general` is None."""
    rows = 6
    if general is not None:
        rows = general.task.component.shape[0]
    return rows


@allocating
def new_memory(chain: Chain, method: Method, general: GeneralProblem | None) -> Memory:
    """Return a :class:`Memory` for a method that has not made a step yet."""
    n, r = chain.lower.shape[0], _task_rows(general)
    rows = r + 1 if method.limits == limits.TA else r
    return Memory(
        steps=np.zeros(4, np.int64),
        lambda2=np.zeros(1),
        manipulability=np.zeros(1),
        gradient=np.zeros(n),
        J=np.zeros((rows, n)),
        e=np.zeros(r),
        remaining=np.full(r, np.nan),
        sqp=np.zeros((n + 4 if method.limits in (limits.SQP, limits.DUAL) else 0, n + 2)),
    )


@force_inline
def forget(memory: Memory) -> None:
    """Reset the memory of a method for a new attempt, whose next step counts as the first step."""
    memory.steps[0] = 0
    memory.lambda2[0] = 0.0


@allocating
def workspace(chain: Chain, general: GeneralProblem | None, memory: Memory) -> Workspace:
    """Allocate the scratch arrays of one thread on the general path.

    The arrays have the sizes of the task of `general`. If `general` is None, the task is the full
    pose (six rows) of one tip.
    """
    r, m = _task_rows(general), chain.prismatic.shape[0]
    n, k, rows = chain.lower.shape[0], chain.first.shape[0] - 1, memory.J.shape[0]
    return Workspace(
        axes=np.zeros((m, 2, 3)),
        T=np.zeros((k, 3, 4)),
        relative=np.zeros((3, 3)),
        full_error=np.zeros(r),
        e=np.zeros(r),
        J=np.zeros((r, n)),
        dq=np.zeros(n),
        limit=LimitState(
            activation=np.zeros(n), motion=np.zeros(n), scale=np.ones(n), axis=np.zeros(n)
        ),
        memory=memory,
        step=StepScratch(
            v=np.zeros(n),
            J=np.zeros((rows, n)),
            e=np.zeros(rows),
            B=np.zeros((rows, n)),
            left=np.zeros(rows),
            W=np.zeros((rows, rows)),
            free=np.zeros(n, np.int64),
        ),
        last_svd=Decomposition(
            B=np.full((r, n), np.nan), Ut=np.empty((r, r)), s=np.empty(r), Vt=np.empty((r, n))
        ),
    )


@allocating
def fast_workspace(chain: SerialChain, leaf: int) -> FastWorkspace:
    """Allocate the scratch arrays of one thread on the fast path.

    Args:
        leaf: Number of start configurations in a leaf of the :class:`dls_ik.core.types.ChainTable`.
    """
    m, n = chain.variable.shape[0], chain.lower.shape[0]
    return FastWorkspace(
        s=np.zeros(m),
        c=np.zeros(m),
        axes=np.zeros((m, 6)),
        T=np.zeros((3, 4)),
        target=np.zeros((3, 4)),
        relative=np.zeros((3, 3)),
        e=np.zeros(6),
        J=np.zeros((n, 6)),
        dq=np.zeros(n),
        h=np.zeros(n),
        y=np.zeros(6),
        z=np.zeros(n),
        distance=np.zeros(leaf),
        features=np.zeros(9),
        memory=np.zeros(13 * n + 48),
    )


@allocating
def search_scratch(starts: Starts, work: AnyWorkspace) -> SearchScratch:
    """Allocate the scratch arrays of a search, except the scratch arrays `work` of its path."""
    rows = np.empty((6, starts.lower.shape[0]))
    return SearchScratch(
        random_state=np.empty(1, np.uint64),
        q=rows[0],
        error=np.empty(2),
        kept=rows[1],
        lower=rows[2],
        upper=rows[3],
        starts=Starts(rows[4], rows[5], starts.periodic, starts.joint_weights),
        work=work,
    )
