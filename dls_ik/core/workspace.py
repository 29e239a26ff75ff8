"""Scratch memory, made where it is used: cheaper than handing twenty arrays in from Python."""

import numpy as np

from dls_ik.core import limits
from dls_ik.core.jit import kernel, spliced
from dls_ik.core.types import Arm, Chain, Details, Memory, Method, QuickWork, Workspace


@spliced
def _task_rows(details: Details | None) -> int:
    rows = 6
    if details is not None:
        rows = details.task.component.shape[0]
    return rows


@kernel
def new_memory(chain: Chain, method: Method, details: Details | None) -> Memory:
    """Return the memory of a method that has made no step."""
    n, r = chain.lower.shape[0], _task_rows(details)
    rows = r + 1 if method.limits == limits.TA else r
    return Memory(
        np.zeros(3, np.int64),
        np.zeros(1),
        np.zeros(1),
        np.zeros(n),
        np.zeros((rows, n)),
        np.zeros(r),
        np.full(r, np.nan),
    )


@kernel
def workspace(chain: Chain, details: Details | None, memory: Memory) -> Workspace:
    """Allocate the scratch of one thread; without details for the full pose of one tip."""
    r, m = _task_rows(details), chain.prismatic.shape[0]
    n, k = chain.lower.shape[0], chain.first.shape[0] - 1
    return Workspace(
        np.zeros((m, 2, 3)),
        np.zeros((k, 3, 4)),
        np.zeros((3, 3)),
        np.zeros(r),
        np.zeros(r),
        np.zeros((r, n)),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n),
        memory,
    )


@kernel
def quick_workspace(arm: Arm, leaf: int) -> QuickWork:
    """Allocate the scratch of one thread on the quick path.

    Args:
        leaf: rows of a leaf of the table.
    """
    m, n = arm.variable.shape[0], arm.lower.shape[0]
    return QuickWork(
        np.zeros(m),
        np.zeros(m),
        np.zeros((m, 6)),
        np.zeros((3, 4)),
        np.zeros((3, 4)),
        np.zeros((3, 3)),
        np.zeros(6),
        np.zeros((n, 6)),
        np.zeros(n),
        np.zeros(n),
        np.zeros(6),
        np.zeros(n),
        np.zeros(leaf),
        np.zeros(9),
    )


@spliced
def forget(memory: Memory) -> None:
    """Begin an attempt: the next step is a first one."""
    memory.steps[0] = 0
    memory.lambda2[0] = 0.0
