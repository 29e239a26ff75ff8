"""Whether a Dask scheduler answers at an address, before a client is made that insists on it."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from dls_ik.reachability.error import ReachabilityError

PATIENCE = 5.0  # [s]


def connected_client(address: str) -> Any:
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
