"""The priority of the loop's thread: that of real time, where the machine permits it."""

import os

PATIENCE = 1.0  # [s] for which a loop may work without a pause


class Priority:
    """Before all threads that are not of real time, for as long as the loop leaves room for them.

    A loop whose cycles take longer than their period never sleeps, and at this priority would keep
    a processor from everybody else.
    """

    def __init__(self, priority: int) -> None:
        self._priority = priority  # of SCHED_FIFO, 1 to 99; 0: an ordinary thread
        self._paused = 0.0  # [s] when the loop last had nothing to do

    def take(self, now: float) -> str:
        """Give it to the calling thread, but not to threads that this one starts.

        Returns:
            What came of it, in words.
        """
        self._paused = now
        if not self._priority:
            return "the loop has ordinary priority, as thread_priority is 0"
        try:
            _schedule(os.SCHED_FIFO, self._priority)
        except (AttributeError, OSError) as error:
            why = getattr(error, "strerror", None) or "this system has none"
            wanted, self._priority = self._priority, 0
            return f"the loop has ordinary priority: real-time priority {wanted}: {why}"
        return f"the loop has real-time priority {self._priority}"

    def is_lost(self, due: float, now: float) -> bool:
        """Note when the next cycle is due; give the priority up where the loop never pauses.

        Returns:
            True once, when it was given up.
        """
        if not self._priority or due > now:
            self._paused = now
        if now - self._paused < PATIENCE:
            return False
        self._priority = 0
        _schedule(os.SCHED_OTHER, 0)
        return True


def _schedule(policy: int, priority: int) -> None:
    """Schedule the calling thread; what it starts is ordinary, which is not to be undone."""
    os.sched_setscheduler(0, policy | os.SCHED_RESET_ON_FORK, os.sched_param(priority))
