"""Executors that requests and new robots wait in."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

TURN = 0.02  # [s] that a job runs, about, while others wait
CHECK_PERIOD = 0.01  # [s] between looks for jobs that are late
# A job that has begun ends by itself soon after its deadline, unless a step takes long. It is cut
# after CUT_AFTER [s] of processor time, or of waiting for a turn; and after MAX_STARVED [s] without
# a processor or a lock: on a busy machine its own answer says more.
CUT_AFTER, MAX_STARVED = 0.02, 0.2


@dataclass(eq=False)
class _Job:
    work: Iterator[None]
    deadline: float  # [s] on the clock of perf_counter
    give_up: Callable[[], None]
    cut: Callable[[], None]
    has_begun: bool = False
    is_cut: bool = False
    clock: Callable[[], float] = time.perf_counter  # processor time of its thread [s]
    clock_at_deadline: float | None = None  # [s] in the turn that runs; None: not looked at yet

    def is_too_late(self, now: float, is_running: bool) -> bool:
        """Return whether a job that has begun must be cut; looked at again and again."""
        if now <= self.deadline:
            return False
        if not is_running:
            return now > self.deadline + CUT_AFTER
        used = self.clock()
        if self.clock_at_deadline is None:
            self.clock_at_deadline = used
        is_computing = used - self.clock_at_deadline > CUT_AFTER
        return is_computing or now > self.deadline + MAX_STARVED


class BoundedExecutor:
    """Runs jobs in threads, in turns and in the order in which they came; bounds how many wait.

    A long job goes back to the end of the queue after each turn. A job that has not begun by its
    deadline is given up then, whatever the threads do; a late job that has begun runs next, and is
    cut if it does not end soon. A step that blocks keeps its thread until it ends.

    Args:
        threads: jobs that run at once.
        bound: jobs that may wait for a thread.
    """

    def __init__(self, threads: int, bound: int) -> None:
        self.bound = bound
        self.threads = threads
        self._count = 0  # jobs that wait or run
        self._queue: deque[_Job] = deque()
        self._running: set[_Job] = set()
        self._closed = False
        self._changed = threading.Condition()
        self._executor = ThreadPoolExecutor(threads, "solve")
        threading.Thread(target=self._watch_deadlines, name="late", daemon=True).start()

    @property
    def waiting(self) -> int:
        """Number of jobs that wait for a thread."""
        return max(0, self._count - self.threads)

    @property
    def running(self) -> int:
        """Number of jobs that have a thread."""
        return len(self._running)

    def submit(
        self,
        work: Iterator[None],
        deadline: float = float("inf"),
        give_up: Callable[[], None] = lambda: None,
        cut: Callable[[], None] = lambda: None,
    ) -> bool:
        """Queue a job, unless too many wait; return whether it was queued.

        Args:
            work: does the job in short steps.
            deadline: by which it must begin [s], on the clock of perf_counter.
            give_up: called instead of the work if it cannot begin in time.
            cut: called if the work has begun, and does not end soon after its deadline.
        """
        with self._changed:
            if self._closed or self._count >= self.threads + self.bound:
                return False
            self._count += 1
            self._enqueue(_Job(work, deadline, give_up, cut))
        return True

    def close(self) -> None:
        """Begin no more turns; those that run go on to their end."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _enqueue(self, job: _Job) -> None:
        """Append a job and ask for a turn; the lock is held."""
        self._queue.append(job)
        self._changed.notify()
        with suppress(RuntimeError):  # it was closed
            self._executor.submit(self._take_turn)

    def _take_turn(self) -> None:
        with self._changed:
            if not self._queue:  # a job was given up
                return
            job = self._queue.popleft()
            job.has_begun = True
            job.clock, job.clock_at_deadline = _thread_clock(), None
            self._running.add(job)
            self._changed.notify()
        is_over = True
        try:
            is_over = self._run(job)
        finally:
            with self._changed:
                self._running.discard(job)
                if is_over or job.is_cut:
                    self._count -= 1
                else:
                    self._enqueue(job)

    def _run(self, job: _Job) -> bool:
        """Run a job for one turn; return whether it is over."""
        end = time.perf_counter() + TURN
        for _ in job.work:
            if self._closed or job.is_cut or (self._queue and time.perf_counter() > end):
                return self._closed
        return True

    def _watch_deadlines(self) -> None:
        """Give up or cut late jobs; sleep while there are no jobs."""
        while not self._closed:
            with self._changed:
                self._changed.wait_for(lambda: self._queue or self._running or self._closed)
                now = time.perf_counter()
                calls = [job.give_up for job in self._remove_late(now)]
                calls += [job.cut for job in self._cut_late(now)]
            for call in calls:
                with suppress(Exception):  # the other jobs are given up all the same
                    call()
            time.sleep(CHECK_PERIOD)

    def _remove_late(self, now: float) -> list[_Job]:
        """Remove late jobs that have not begun and return them; put other late jobs first."""
        late = [job for job in self._queue if job.deadline < now]
        if late:
            in_time = [job for job in self._queue if job.deadline >= now]
            self._queue = deque([job for job in late if job.has_begun] + in_time)
        lost = [job for job in late if not job.has_begun]
        self._count -= len(lost)
        return lost

    def _cut_late(self, now: float) -> list[_Job]:
        """Mark jobs that have begun and are too late to end by themselves; return them."""
        begun = [(job, True) for job in self._running if not job.is_cut]
        begun += [(job, False) for job in self._queue if job.has_begun]
        cut = [job for job, is_running in begun if job.is_too_late(now, is_running)]
        for job in cut:
            job.is_cut = True
        queued = [job for job in self._queue if job.is_cut]
        if queued:
            self._queue = deque(job for job in self._queue if not job.is_cut)
            self._count -= len(queued)
        return cut


def _thread_clock() -> Callable[[], float]:
    """Return a clock of the processor time of this thread [s]; of time, where there is none."""
    find = getattr(time, "pthread_getcpuclockid", None)  # not on macOS and Windows
    if find is None:
        return time.perf_counter
    return partial(time.clock_gettime, find(threading.get_ident()))


class LatestOnlyExecutor:
    """Runs jobs one after the other in a thread; a job that waits is replaced by a newer one.

    Args:
        failed: called with the exception that a job raises.
    """

    def __init__(self, failed: Callable[[Exception], None]) -> None:
        self._failed = failed
        self._lock = threading.Lock()
        self._next: Callable[[], None] | None = None
        self._closed = False
        self._executor = ThreadPoolExecutor(1, "builder")

    def submit(self, job: Callable[[], None]) -> None:
        """Run a job after the current one, unless a newer job replaces it."""
        with self._lock:
            self._next = job
        self._executor.submit(self._run_next)

    def close(self) -> None:
        """Begin no more jobs, and pass over a failure of the current one."""
        self._closed = True
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _run_next(self) -> None:
        with self._lock:
            job, self._next = self._next, None
        if job is None:
            return
        try:
            job()
        except Exception as error:  # noqa: BLE001  the next job may succeed
            if not self._closed:  # else what the job works with may be gone
                self._failed(error)


class SerialExecutor:
    """Runs jobs one after the other in a thread, in order; bounds how many wait, and their size.

    Args:
        name: Name of the thread.
        failed: Called with the exception that a job raises.
        bound: Jobs that may wait.
        max_bytes: That they may hold together.
    """

    def __init__(
        self, name: str, failed: Callable[[Exception], None], bound: int, max_bytes: int
    ) -> None:
        self._failed, self._bound, self._max_bytes = failed, bound, max_bytes
        self._lock = threading.Lock()
        self._count = self._bytes = 0
        self._closed = False
        self._executor = ThreadPoolExecutor(1, name)

    @property
    def has_more(self) -> bool:
        """True if jobs wait behind the one that runs."""
        return self._count > 1

    def submit(self, job: Callable[[], None], size: int = 0, is_bounded: bool = True) -> bool:
        """Run a job after all others; return False if too many wait.

        Args:
            size: Bytes that it holds.
            is_bounded: False: take it however many wait, for jobs that do not come in floods.
        """
        with self._lock:
            is_full = self._count >= self._bound or self._bytes + size > self._max_bytes
            if self._closed or (is_full and is_bounded):
                return False
            self._count += 1
            self._bytes += size
            self._executor.submit(self._run, job, size)
        return True

    def close(self) -> None:
        """Begin no more jobs, and pass over a failure of the current one."""
        with self._lock:
            self._closed = True
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _run(self, job: Callable[[], None], size: int) -> None:
        try:
            job()
        except Exception as error:  # noqa: BLE001  the next job may succeed
            if not self._closed:  # else what the job works with may be gone
                self._failed(error)
        finally:
            with self._lock:
                self._count -= 1
                self._bytes -= size
