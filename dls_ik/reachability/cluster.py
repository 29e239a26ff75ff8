"""An existing Dask cluster as an executor."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor
from contextlib import contextmanager
from typing import Any

from dls_ik import __version__
from dls_ik.reachability.connect import connected_client
from dls_ik.reachability.error import ReachabilityError

LOG = logging.getLogger("dls_ik")
RETRIES = 5  # of a chunk that fails; Dask itself moves chunks away from workers that die
AHEAD = 2  # chunks for each thread of the cluster


@contextmanager
def dask_cluster(address: str) -> Iterator[tuple[Executor, Callable[[], int]]]:
    """The executor of a scheduler such as ``tcp://10.0.0.1:8786``, and how many chunks it takes.

    Raises:
        ReachabilityError: dask.distributed is not installed, no scheduler answers there, its
            cluster lacks this dls_ik, it goes away, or a chunk kills worker after worker.
    """
    client = connected_client(address)
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
