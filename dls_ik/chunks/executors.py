# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Executors of chunks: the threads of this machine, or a Dask cluster."""

from __future__ import annotations

import asyncio
import logging
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
from dataclasses import dataclass
from itertools import islice
from typing import Any, Generic, TypeVar

from dls_ik import __version__
from dls_ik.errors import ChunkError
from dls_ik.solver.calls import usable_cores

LOG = logging.getLogger("dls_ik")
# Number of retries of a chunk that raises an error; chunks of a worker that dies are always retried
MAX_CHUNK_RETRIES = 5
CHUNKS_PER_THREAD = 2  # number of chunks submitted at a time for each thread of the cluster
SCHEDULER_TIMEOUT = 5.0  # [s] maximum time to connect to a scheduler

Result = TypeVar("Result")
# Arguments of a solve function: the job and the number of a chunk. Both are sent to the workers.
SolveChunk = Callable[[Any, int], Result]


@dataclass(frozen=True)
class Work(Generic[Result]):
    """A computation in numbered chunks."""

    solve: SolveChunk[Result]  # function of a module, so that it can be sent to workers
    job: Any


def run_chunks(
    work: Work[Result],
    chunks: Iterable[int],
    executor: Executor,
    depth: Callable[[], int],
    keep: Callable[[int, Result], None],
) -> None:
    """Solve chunks, and pass the results of each chunk to `keep` as soon as they are available.

    If a chunk raises an error, or at Ctrl-C, no further chunks are submitted and the submitted
    chunks are cancelled. Chunks that already run in this process cannot be cancelled; they are
    completed and passed to `keep`.

    Args:
        work: Job, and the function that solves one of its chunks.
        chunks: Numbers of the chunks.
        executor: Runs the chunks.
        depth: Returns the maximum number of chunks that are submitted at a time; called repeatedly,
            because the number of workers may change.
        keep: Called in this thread with the number and the results of a chunk.

    Raises:
        Exception: If solving a chunk raises this exception.
    """
    waiting = iter(chunks)
    under_way: dict[Future[Result], int] = {}
    try:
        _submit(work, islice(waiting, depth()), executor, under_way)
        while under_way:
            done, _ = wait(under_way, return_when=FIRST_COMPLETED)
            for future in done:
                keep(under_way[future], future.result())
                del under_way[future]
            free = max(depth() - len(under_way), 0 if under_way else 1)
            _submit(work, islice(waiting, free), executor, under_way)
    finally:
        for chunk, result in _uncancelled(under_way):
            keep(chunk, result)


def _submit(
    work: Work[Result],
    chunks: Iterator[int],
    executor: Executor,
    under_way: dict[Future[Result], int],
) -> None:
    for chunk in chunks:
        under_way[executor.submit(work.solve, work.job, chunk)] = chunk


def _uncancelled(under_way: dict[Future[Result], int]) -> Iterator[tuple[int, Result]]:
    """Cancel submitted chunks; yield numbers and results of the chunks that cannot be cancelled.

    Args:
        under_way: Submitted chunks and their numbers.
    """
    running = [future for future in under_way if not future.cancel()]
    wait(running)
    for future in running:
        if not future.cancelled() and future.exception() is None:
            yield under_way[future], future.result()


@contextmanager
def local_threads() -> Iterator[tuple[Executor, Callable[[], int]]]:
    """Yield an executor with one thread per core, and a function that returns the number of cores.

    The threads run in parallel, because the kernels release the GIL. The function limits the
    submitted chunks to one per thread, so that Ctrl-C waits for the running chunks only.
    """
    cores = usable_cores()
    with ThreadPoolExecutor(cores, thread_name_prefix="chunks") as executor:
        yield executor, lambda: cores


@contextmanager
def dask_cluster(address: str) -> Iterator[tuple[Executor, Callable[[], int]]]:
    """Yield an executor on a Dask cluster, and a function that returns how many chunks to submit.

    Args:
        address: Address of the Dask scheduler, such as ``tcp://10.0.0.1:8786``.

    Raises:
        ChunkError: If dask.distributed is not installed, no scheduler answers at the
            address, a process of the cluster has another version of dls_ik or none, the connection
            to the scheduler is lost, or a chunk repeatedly kills its worker.
    """
    client = _connected_client(address)
    from distributed import KilledWorker

    try:
        _check_versions(client)
        if not client.nthreads():
            LOG.warning("the cluster at %s has no worker yet: waiting for one", address)
        executor = client.get_executor(retries=MAX_CHUNK_RETRIES, pure=False)
        yield executor, lambda: max(1, CHUNKS_PER_THREAD * sum(client.nthreads().values()))
    except (CancelledError, OSError) as error:
        raise ChunkError(
            f"lost the connection to the Dask scheduler at {address}; finished chunks are kept"
        ) from error
    except KilledWorker as error:
        raise ChunkError(
            f"a chunk has killed several workers; finished chunks are kept: {error}"
        ) from error
    finally:
        client.close()


def _connected_client(address: str) -> Any:
    """Return a ``distributed.Client`` that is connected to the scheduler at an address.

    Raises:
        ChunkError: If dask.distributed is not installed, or no scheduler answers at the
            address.
    """
    try:
        import distributed
    except ImportError as error:
        raise ChunkError(
            "a Dask cluster needs dask.distributed: pip install 'dls-ik[cluster]'"
        ) from error
    try:
        with ThreadPoolExecutor(1) as thread:  # the main thread of a notebook runs an event loop
            thread.submit(asyncio.run, _shake_hands(address)).result()
        return distributed.Client(address, timeout=SCHEDULER_TIMEOUT, set_as_default=False)
    except Exception as error:  # a server that is no Dask scheduler may cause any error
        raise ChunkError(
            f"no Dask scheduler answers at {address!r} within {SCHEDULER_TIMEOUT:g} s; "
            "give an address such as tcp://10.0.0.1:8786"
        ) from error


async def _shake_hands(address: str) -> None:
    from distributed.comm import connect
    from distributed.security import Security

    arguments = Security().get_connection_args("client")  # certificates from Dask's configuration
    comm = await connect(address, timeout=SCHEDULER_TIMEOUT, **arguments)
    await comm.close()


def _check_versions(client: Any) -> None:
    """Check that the scheduler and the workers of a cluster have this version of dls_ik.

    Workers that join later, or stop before they answer, are not checked.

    Args:
        client: ``distributed.Client``.

    Raises:
        ChunkError: If a process has no dls_ik, or another version.
    """
    try:
        answers = client.run(_version, on_error="return").values()
        there = [answer for answer in answers if not isinstance(answer, OSError)]
        for answer in there:
            if isinstance(answer, Exception):
                raise answer
        versions = {client.run_on_scheduler(_version), *there}
    except Exception as error:  # the import on a worker may raise any error
        raise ChunkError(
            f"the Dask scheduler and its workers must have dls_ik {__version__} too: {error}"
        ) from error
    if versions != {__version__}:
        raise ChunkError(
            f"the Dask cluster must have dls_ik {__version__}, as this machine; it has "
            f"{', '.join(sorted(versions))}"
        )


def _version() -> str:
    return __version__
