"""Executors that chunks are run on: threads of this machine, or a Dask cluster."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    CancelledError,
    Executor,
    Future,
    ThreadPoolExecutor,
    wait,
)
from contextlib import contextmanager
from itertools import islice
from typing import Any

from dls_ik import __version__
from dls_ik.reachability.chunk import Voxels, solve_chunk
from dls_ik.reachability.grid import ReachabilityError
from dls_ik.reachability.settings import Job

LOG = logging.getLogger("dls_ik")
RETRIES = 5  # of a chunk that fails; Dask itself moves chunks away from workers that die
AHEAD = 2  # chunks for each thread of the cluster
PATIENCE = 5.0  # [s] for a scheduler to answer

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


@contextmanager
def local_threads() -> Iterator[tuple[Executor, Callable[[], int]]]:
    """A thread for each core: the kernels hold no lock of Python's.

    No more chunks are handed over than there are threads, so that an interruption waits for
    those alone.
    """
    cores = len(os.sched_getaffinity(0))
    with ThreadPoolExecutor(cores, thread_name_prefix="reachability") as executor:
        yield executor, lambda: cores


@contextmanager
def dask_cluster(address: str) -> Iterator[tuple[Executor, Callable[[], int]]]:
    """The executor of a scheduler such as ``tcp://10.0.0.1:8786``, and how many chunks it takes.

    Raises:
        ReachabilityError: dask.distributed is not installed, no scheduler answers there, its
            cluster lacks this dls_ik, it goes away, or a chunk kills worker after worker.
    """
    client = _connected_client(address)
    from distributed import KilledWorker

    try:
        _check_versions(client)
        if not client.nthreads():
            LOG.warning("the cluster at %s has no worker yet: waiting for one", address)
        yield client.get_executor(retries=RETRIES, pure=False), lambda: _depth(client)
    except (CancelledError, OSError) as error:
        raise ReachabilityError(
            f"the Dask scheduler at {address} went away; what was finished is kept"
        ) from error
    except KilledWorker as error:
        raise ReachabilityError(
            f"several workers died over one chunk; what was finished is kept: {error}"
        ) from error
    finally:
        client.close()


def _connected_client(address: str) -> Any:
    """A ``distributed.Client``.

    Raises:
        ReachabilityError: dask.distributed is not installed, or no scheduler answers there.
    """
    try:
        import distributed
    except ImportError as error:
        raise ReachabilityError(
            "a Dask cluster needs dask.distributed: pip install 'dls-ik[cluster]'"
        ) from error
    try:
        with ThreadPoolExecutor(1) as thread:  # a notebook has an event loop in its own
            thread.submit(asyncio.run, _shake_hands(address)).result()
        return distributed.Client(address, timeout=PATIENCE, set_as_default=False)
    except Exception as error:  # what is not Dask may answer anything
        raise ReachabilityError(
            f"no Dask scheduler answers at {address!r} within {PATIENCE:g} s; an address is like "
            "tcp://10.0.0.1:8786"
        ) from error


async def _shake_hands(address: str) -> None:
    from distributed.comm import connect
    from distributed.security import Security

    arguments = Security().get_connection_args("client")  # certificates, from Dask's configuration
    comm = await connect(address, timeout=PATIENCE, **arguments)
    await comm.close()


def _check_versions(client: Any) -> None:
    """Refuse a scheduler and workers without this package, or with another version of it.

    Workers that come later are not asked, nor are those that die before they answer.
    """
    try:
        answers = client.run(_version, on_error="return").values()
        there = [answer for answer in answers if not isinstance(answer, OSError)]
        for answer in there:
            if isinstance(answer, Exception):
                raise answer
        versions = {client.run_on_scheduler(_version), *there}
    except Exception as error:  # whatever importing raises over there
        raise ReachabilityError(
            f"the scheduler and its workers need dls_ik {__version__} too: {error}"
        ) from error
    if versions != {__version__}:
        raise ReachabilityError(
            f"the cluster has dls_ik {', '.join(sorted(versions))}, here is {__version__}"
        )


def _version() -> str:
    return __version__


def _depth(client: Any) -> int:
    threads: dict[str, int] = client.nthreads()  # of each worker
    return max(1, AHEAD * sum(threads.values()))
