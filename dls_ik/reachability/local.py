"""This machine as an executor."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager


@contextmanager
def local_threads() -> Iterator[tuple[Executor, Callable[[], int]]]:
    """A thread for each core: the kernels hold no lock of Python's.

    No more chunks are handed over than there are threads, so that an interruption waits for
    those alone.
    """
    cores = len(os.sched_getaffinity(0))
    with ThreadPoolExecutor(cores, thread_name_prefix="reachability") as executor:
        yield executor, lambda: cores
