"""Chunks through an executor, a few at a time; what is finished is kept at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from itertools import islice

from dls_ik.reachability.chunk import Voxels, solve_chunk
from dls_ik.reachability.settings import Job

Keep = Callable[[int, Voxels], None]
UnderWay = dict["Future[Voxels]", int]  # which chunk each is


def run_chunks(
    job: Job, chunks: Iterable[int], executor: Executor, depth: Callable[[], int], keep: Keep
) -> None:
    """Solve chunks and hand each to `keep` as it is finished, in the order of finishing.

    Args:
        chunks: their numbers.
        depth: how many to have under way; asked again as workers come and go.
        keep: called in this thread.

    Raises:
        Exception: what a chunk raised. What else was under way is cancelled, or kept where it
            cannot be; so it is after Ctrl-C.
    """
    waiting = iter(chunks)
    under_way: UnderWay = {}
    try:
        _submit(job, islice(waiting, depth()), executor, under_way)
        while under_way:
            done, _ = wait(under_way, return_when=FIRST_COMPLETED)
            for future in done:
                keep(under_way[future], future.result())
                del under_way[future]
            room = max(depth() - len(under_way), 0 if under_way else 1)
            _submit(job, islice(waiting, room), executor, under_way)
    finally:
        for chunk, voxels in _last_ones(under_way):
            keep(chunk, voxels)


def _submit(job: Job, chunks: Iterator[int], executor: Executor, under_way: UnderWay) -> None:
    for chunk in chunks:
        under_way[executor.submit(solve_chunk, job, chunk)] = chunk


def _last_ones(under_way: UnderWay) -> Iterator[tuple[int, Voxels]]:
    """Chunks that could not be cancelled any more, once they are finished."""
    running = [future for future in under_way if not future.cancel()]
    wait(running)
    for future in running:
        if not future.cancelled() and future.exception() is None:
            yield under_way[future], future.result()
