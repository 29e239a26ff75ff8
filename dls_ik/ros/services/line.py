"""The line that requests wait in, and in which they take turns."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import NamedTuple

TURN = 0.02  # [s] of a job, about, while others wait
LOOK_OUT = 0.01  # [s] between looks for jobs that are late


class Job(NamedTuple):
    """Work in short steps, and what is done instead if it cannot begin in time."""

    work: Iterator[None]
    deadline: float = float("inf")  # [s] on the clock of perf_counter
    give_up: Callable[[], None] = lambda: None


class _Place:
    """A job in the line."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.has_begun = False


class Line:
    """Threads that do jobs in turns, in the order in which they came; so many wait at most.

    A long job goes back to the end of the line after each turn. One that has not begun by its
    deadline is given up then, whatever the threads do; one that has is done next.

    Args:
        threads: jobs that are done at once.
        bound: jobs that may wait for a thread.
    """

    def __init__(self, threads: int, bound: int) -> None:
        self.bound = bound
        self._threads = threads
        self._here = 0  # waiting, or being done
        self._waiting: deque[_Place] = deque()
        self._closed = False
        self._changed = threading.Condition()
        self._executor = ThreadPoolExecutor(threads, "solve")
        threading.Thread(target=self._look_out, name="late", daemon=True).start()

    @property
    def waiting(self) -> int:
        """How many jobs wait for a thread."""
        return max(0, self._here - self._threads)

    def join(self, job: Job) -> bool:
        """Do a job when its turns come, unless too many wait; return whether that is so."""
        with self._changed:
            if self._closed or self._here >= self._threads + self.bound:
                return False
            self._here += 1
            self._wait(_Place(job))
        return True

    def close(self) -> None:
        """Begin no more turns; those being taken go on to their end."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _wait(self, place: _Place) -> None:
        """Take the last place, and ask for a turn; the lock is held."""
        self._waiting.append(place)
        self._changed.notify()
        with suppress(RuntimeError):  # it was closed
            self._executor.submit(self._take_turn)

    def _take_turn(self) -> None:
        with self._changed:
            if not self._waiting:  # one was given up
                return
            place = self._waiting.popleft()
            place.has_begun = True
        is_over = True
        try:
            is_over = self._work(place.job)
        finally:
            with self._changed:
                if is_over:
                    self._here -= 1
                else:
                    self._wait(place)

    def _work(self, job: Job) -> bool:
        """Do as much of a job as a turn allows; return whether it is over."""
        end = time.perf_counter() + TURN
        for _ in job.work:
            if self._closed or (self._waiting and time.perf_counter() > end):
                return self._closed
        return True

    def _look_out(self) -> None:
        """Give up jobs that cannot begin in time, as long as there are any that wait."""
        while not self._closed:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closed)
                late = self._sort_out(time.perf_counter())
            for job in late:
                with suppress(Exception):  # the others are told all the same
                    job.give_up()
            time.sleep(LOOK_OUT)

    def _sort_out(self, now: float) -> list[Job]:
        """Take out the jobs that are late and have not begun; put others that are late first."""
        late = [place for place in self._waiting if place.job.deadline < now]
        if late:
            others = [place for place in self._waiting if place.job.deadline >= now]
            self._waiting = deque([place for place in late if place.has_begun] + others)
        lost = [place.job for place in late if not place.has_begun]
        self._here -= len(lost)
        return lost
