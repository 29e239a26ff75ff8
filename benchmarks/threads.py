"""Batches on so many threads."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from dls_ik import IkBatchResult, IkSolver


def solve_on(
    threads: int | None, solver: IkSolver, Ts: np.ndarray, seeds: np.ndarray | None
) -> IkBatchResult:
    """Solve a batch on so many threads, None for all cores."""
    with _held(threads):
        return solver.solve_batch(Ts, seeds)


@contextmanager
def _held(cores: int | None) -> Iterator[None]:
    """Hold this thread, and those that it starts, on the last so many cores."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[-cores:] if cores else before)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def thread_counts() -> list[int]:
    """1, 2, 4, ... and as many as there are cores for this process."""
    cores = len(os.sched_getaffinity(0))
    return sorted({min(2**i, cores) for i in range(cores.bit_length() + 1)})
