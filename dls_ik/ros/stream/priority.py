"""The priority of the loop's thread: that of real time, where the machine permits it."""

import os

PATIENCE = 100  # cycles on end without a pause between them


class Priority:
    """Before all threads that are not of real time, for as long as the loop leaves room for them.

    A loop whose cycles take longer than their period never sleeps, and at this priority would keep
    a processor from everybody else.
    """

    def __init__(self, priority: int) -> None:
        self._priority = priority  # of SCHED_FIFO, 1 to 99; 0: an ordinary thread
        self._restless = 0  # cycles on end without a pause

    def take(self) -> str:
        """Give it to the calling thread, but not to threads that this one starts.

        Returns:
            What came of it, in words.
        """
        if not self._priority:
            return "the loop has ordinary priority, as thread_priority is 0"
        try:
            _schedule(os.SCHED_FIFO, self._priority)
        except (AttributeError, OSError) as error:
            why = getattr(error, "strerror", None) or "this system has none"
            wanted, self._priority = self._priority, 0
            return f"the loop has ordinary priority: real-time priority {wanted}: {why}"
        return f"the loop has real-time priority {self._priority}"

    def is_lost(self, rests: bool) -> bool:
        """Note whether there is a pause before the next cycle; give up where there never is one.

        Returns:
            True once, when it was given up.
        """
        self._restless = 0 if rests or not self._priority else self._restless + 1
        if self._restless < PATIENCE:
            return False
        self._priority = 0
        _schedule(os.SCHED_OTHER, 0)
        return True


def _schedule(policy: int, priority: int) -> None:
    """Schedule the calling thread; what it starts is ordinary, which is not to be undone."""
    os.sched_setscheduler(0, policy | os.SCHED_RESET_ON_FORK, os.sched_param(priority))
