# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Executors with own threads, for requests, scene changes and new robots."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

TURN_DURATION = 0.02  # [s] approximate time after which a job is suspended if other jobs wait
DEADLINE_CHECK_PERIOD = 0.01  # [s] period in which the watchdog thread checks deadlines
# A started job normally ends by itself shortly after its deadline, with a better answer than the
# watchdog could give. The watchdog cancels a running job if the job computes, or waits for a lock,
# for MAX_OVERTIME after the deadline. Time in which the job is ready but gets no processor does not
# count, up to MAX_STARVATION after the deadline. The watchdog cancels a job that waits for its next
# turn MAX_OVERTIME after the deadline of the job.
MAX_OVERTIME, MAX_STARVATION = 0.02, 0.2  # [s]


@dataclass(eq=False)
class _Job:
    work: Iterator[None]
    deadline: float  # time on the clock of perf_counter [s]
    give_up: Callable[[], None]
    cut: Callable[[], None]
    has_started: bool = False
    is_cut: bool = False
    clock: Callable[[], float] = time.perf_counter  # time less waits of the thread for a core [s]
    # Value of `clock` [s] at the first check after the deadline in the current turn, or None.
    clock_at_deadline: float | None = None

    def is_too_late(self, now: float, is_running: bool) -> bool:
        """Return whether this job, which has started, must be cancelled.

        The watchdog calls this method in each DEADLINE_CHECK_PERIOD.

        Args:
            now: Current time on the clock of perf_counter [s].
            is_running: Whether a thread runs the job; otherwise the job waits for its next turn.
        """
        if now <= self.deadline:
            return False
        if not is_running:
            return now > self.deadline + MAX_OVERTIME
        used = self.clock()
        if self.clock_at_deadline is None:
            self.clock_at_deadline = used
        is_overtime = used - self.clock_at_deadline > MAX_OVERTIME
        return is_overtime or now > self.deadline + MAX_STARVATION


class BoundedExecutor:
    """Executor that runs jobs from a bounded queue in turns, with a fixed number of threads.

    A job is an iterator of short steps. If a job has not ended after a turn of TURN_DURATION and
    other jobs wait, it goes back to the end of the queue. A watchdog thread enforces deadlines: a
    job that has not started by its deadline is removed from the queue; a job that has started and
    waits is moved to the front of the queue at its deadline; and a started job that does not end
    within MAX_OVERTIME or MAX_STARVATION after its deadline is cancelled. A step of a job cannot be
    interrupted, so a step that blocks also blocks its thread.

    Args:
        threads: Number of threads.
        bound: Maximum number of jobs that wait for a thread.
    """

    def __init__(self, threads: int, bound: int) -> None:
        self.bound = bound
        self.threads = threads
        self._count = 0  # number of waiting and running jobs
        self._queue: deque[_Job] = deque()
        self._running: set[_Job] = set()
        self._closed = False
        self._changed = threading.Condition()
        self._executor = ThreadPoolExecutor(threads, "solve")
        threading.Thread(target=self._watch_deadlines, name="late", daemon=True).start()

    @property
    def waiting(self) -> int:
        """Number of jobs waiting for a thread."""
        return max(0, self._count - self.threads)

    @property
    def running(self) -> int:
        """Number of jobs that threads are running now."""
        return len(self._running)

    def submit(
        self,
        work: Iterator[None],
        deadline: float = float("inf"),
        give_up: Callable[[], None] = lambda: None,
        cut: Callable[[], None] = lambda: None,
    ) -> bool:
        """Queue a job; return False if the queue is full or the executor is closed.

        Args:
            work: Job as an iterator of short steps.
            deadline: Time by which the job should have ended, on the clock of perf_counter [s].
            give_up: Function that is called if no thread has started the job by its deadline; the
                job is then removed.
            cut: Function that is called if the job has started, but has not ended shortly after its
                deadline; the job is then cancelled.
        """
        with self._changed:
            if self._closed or self._count >= self.threads + self.bound:
                return False
            self._count += 1
            self._enqueue(_Job(work, deadline, give_up, cut))
        return True

    def close(self) -> None:
        """Stop starting turns of jobs; a running turn ends after its current step."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _enqueue(self, job: _Job) -> None:
        """Append a job to the queue and request a turn; the caller must hold the lock."""
        self._queue.append(job)
        self._changed.notify()
        with suppress(RuntimeError):  # the executor is closed
            self._executor.submit(self._take_turn)

    def _take_turn(self) -> None:
        with self._changed:
            if not self._queue:  # the watchdog removed a job
                return
            job = self._queue.popleft()
            job.has_started = True
            job.clock, job.clock_at_deadline = _thread_clock(), None
            self._running.add(job)
            self._changed.notify()
        has_ended = True
        try:
            has_ended = self._run(job)
        finally:
            with self._changed:
                self._running.discard(job)
                if has_ended or job.is_cut:
                    self._count -= 1
                else:
                    self._enqueue(job)

    def _run(self, job: _Job) -> bool:
        """Run a job for one turn; return whether the job has ended or the executor is closed."""
        end = time.perf_counter() + TURN_DURATION
        for _ in job.work:
            if self._closed or job.is_cut or (self._queue and time.perf_counter() > end):
                return self._closed
        return True

    def _watch_deadlines(self) -> None:
        """Remove or cancel late jobs, in a loop until the executor is closed."""
        while not self._closed:
            with self._changed:
                self._changed.wait_for(lambda: self._queue or self._running or self._closed)
                now = time.perf_counter()
                calls = [job.give_up for job in self._remove_late(now)]
                calls += [job.cut for job in self._cut_late(now)]
            for call in calls:
                with suppress(Exception):  # the other functions must still be called
                    call()
            time.sleep(DEADLINE_CHECK_PERIOD)

    def _remove_late(self, now: float) -> list[_Job]:
        """Remove and return the queued jobs that have not started and whose deadline has passed.

        Move started jobs whose deadline has passed to the front of the queue.
        """
        late = [job for job in self._queue if job.deadline < now]
        if late:
            in_time = [job for job in self._queue if job.deadline >= now]
            self._queue = deque([job for job in late if job.has_started] + in_time)
        removed = [job for job in late if not job.has_started]
        self._count -= len(removed)
        return removed

    def _cut_late(self, now: float) -> list[_Job]:
        """Mark the started jobs that must be cancelled, remove them from the queue; return them."""
        started = [(job, True) for job in self._running if not job.is_cut]
        started += [(job, False) for job in self._queue if job.has_started]
        cut = [job for job, is_running in started if job.is_too_late(now, is_running)]
        for job in cut:
            job.is_cut = True
        queued = [job for job in self._queue if job.is_cut]
        if queued:
            self._queue = deque(job for job in self._queue if not job.is_cut)
            self._count -= len(queued)
        return cut


def _thread_clock() -> Callable[[], float]:
    """Return a clock [s] that stands still while the calling thread waits for a core.

    Any thread may call the returned function. Systems other than Linux do not report these waits;
    the clock then never stands still.
    """
    path = f"/proc/self/task/{threading.get_native_id()}/schedstat"

    def clock() -> float:
        try:
            with open(path, "rb") as file:
                return time.perf_counter() - 1e-9 * int(file.read().split()[1])
        except (OSError, IndexError, ValueError):
            return time.perf_counter()

    return clock


class LatestOnlyExecutor:
    """Executor with one thread and at most one waiting job, which a newer job replaces.

    Args:
        failed: Function that is called with the exception that a job raises.
    """

    def __init__(self, failed: Callable[[Exception], None]) -> None:
        self._failed = failed
        self._lock = threading.Lock()
        self._next: Callable[[], None] | None = None
        self._closed = False
        self._executor = ThreadPoolExecutor(1, "builder")

    def submit(self, job: Callable[[], None]) -> None:
        """Run a job after the current job, unless it is replaced by a newer job before."""
        with self._lock:
            self._next = job
        self._executor.submit(self._run_next)

    def close(self) -> None:
        """Stop starting jobs; do not report an exception of the current job."""
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
            if not self._closed:  # a closed executor has closed the resources of the job, too
                self._failed(error)


class SerialExecutor:
    """Executor with one thread, and a queue whose number of jobs and total size are bounded.

    Args:
        name: Name of the thread.
        failed: Function that is called with the exception that a job raises.
        bound: Maximum number of queued jobs, including the current job.
        max_bytes: Maximum total size of the queued jobs, including the current job [bytes].
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
        """Whether further jobs are queued behind the current job."""
        return self._count > 1

    def submit(self, job: Callable[[], None], size: int = 0, is_bounded: bool = True) -> bool:
        """Queue a job behind all queued jobs; return False if the queue is full.

        Args:
            job: Function to call.
            size: Size of the data that the job uses [bytes].
            is_bounded: Whether a full queue refuses the job; if False, the job is always accepted.
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
        """Stop starting jobs; do not report an exception of the current job."""
        with self._lock:
            self._closed = True
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _run(self, job: Callable[[], None], size: int) -> None:
        try:
            job()
        except Exception as error:  # noqa: BLE001  the next job may succeed
            if not self._closed:  # a closed executor has closed the resources of the job, too
                self._failed(error)
        finally:
            with self._lock:
                self._count -= 1
                self._bytes -= size
