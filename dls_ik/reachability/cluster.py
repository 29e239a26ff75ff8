"""An existing Dask cluster as an executor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor
from contextlib import contextmanager
from typing import Any

from dls_ik import __version__
from dls_ik.reachability.connect import connected_client
from dls_ik.reachability.error import ReachabilityError

RETRIES = 5  # of a chunk that fails; Dask itself moves chunks away from workers that die
AHEAD = 2  # chunks for each thread of the cluster


@contextmanager
def dask_cluster(address: str) -> Iterator[tuple[Executor, Callable[[], int]]]:
    """The executor of a scheduler such as ``tcp://10.0.0.1:8786``, and how many chunks it takes.

    Raises:
        ReachabilityError: dask.distributed is not installed, no scheduler answers there, its
            workers have another dls_ik, it goes away, or a chunk kills one worker after another.
    """
    client = connected_client(address)
    from distributed import KilledWorker

    try:
        _check_workers(client)
        yield client.get_executor(retries=RETRIES, pure=False), lambda: _depth(client)
    except CancelledError as error:
        raise ReachabilityError(
            f"the Dask scheduler at {address} went away; what was finished is kept"
        ) from error
    except KilledWorker as error:
        raise ReachabilityError(
            f"several workers died over one chunk; what was finished is kept: {error}"
        ) from error
    finally:
        client.close()


def _check_workers(client: Any) -> None:
    """Refuse workers whose package is missing or of another version; later ones come unchecked."""
    try:
        versions = set(client.run(_version).values())
    except Exception as error:  # whatever importing raises over there
        raise ReachabilityError(f"the workers cannot import dls_ik: {error}") from error
    if versions - {__version__}:
        raise ReachabilityError(
            f"the workers have dls_ik {', '.join(sorted(versions))}, here is {__version__}"
        )


def _version() -> str:
    return __version__


def _depth(client: Any) -> int:
    threads: dict[str, int] = client.nthreads()  # of each worker
    return max(1, AHEAD * sum(threads.values()))
