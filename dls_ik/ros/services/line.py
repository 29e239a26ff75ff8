"""The line that requests wait in."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor


class Line:
    """Threads that do jobs in the order in which they came; so many wait at most.

    Args:
        threads: jobs that are done at once.
        bound: jobs that may wait for a thread.
    """

    def __init__(self, threads: int, bound: int) -> None:
        self.bound = bound
        self._threads = threads
        self._here = 0  # waiting, or being done
        self._lock = threading.Lock()
        self._executor = ThreadPoolExecutor(threads, "solve")

    @property
    def waiting(self) -> int:
        """How many jobs wait for a thread."""
        return max(0, self._here - self._threads)

    def join(self, job: Callable[[], None]) -> bool:
        """Do a job when its turn comes, unless too many wait; return whether it will be done."""
        with self._lock:
            if self._here >= self._threads + self.bound:
                return False
            self._here += 1
        self._executor.submit(self._do, job)
        return True

    def close(self) -> None:
        """Begin no more jobs; those being done go on."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _do(self, job: Callable[[], None]) -> None:
        try:
            job()
        finally:
            with self._lock:
                self._here -= 1
