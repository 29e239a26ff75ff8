"""Work beside the callbacks, of which only the newest counts."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

Job = Callable[[], None]


class Newest:
    """Does jobs one after the other in a thread; one that waits gives way to a newer one.

    Args:
        failed: called with what a job raises.
    """

    def __init__(self, failed: Callable[[Exception], None]) -> None:
        self._failed = failed
        self._lock = threading.Lock()
        self._next: Job | None = None
        self._closed = False
        self._executor = ThreadPoolExecutor(1, "builder")

    def do(self, job: Job) -> None:
        """Do a job as soon as the one being done is finished, unless a newer one comes first."""
        with self._lock:
            self._next = job
        self._executor.submit(self._do_next)

    def close(self) -> None:
        """Begin no more jobs; whether the one being done fails does not matter any more."""
        self._closed = True
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _do_next(self) -> None:
        with self._lock:
            job, self._next = self._next, None
        if job is None:
            return
        try:
            job()
        except Exception as error:  # noqa: BLE001  the next job may do
            if not self._closed:  # else what it works with may be gone
                self._failed(error)
