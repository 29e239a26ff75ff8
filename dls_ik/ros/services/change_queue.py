# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Queue of planning scene changes, which counts lost changes."""

from collections.abc import Callable

from dls_ik.ros.services.executor import SerialExecutor

MAX_QUEUED_CHANGES, MAX_QUEUED_BYTES = 10_000, 16 * 1024 * 1024  # maxima of a change queue


class ChangeQueue:
    """Queue of jobs that each apply a scene change; one thread runs the jobs in order.

    The queue also counts lost changes. A change is lost if it is too large, if the queue is full,
    or if the message cannot be read. The scene then differs from the scene of the publisher until a
    whole scene is applied.

    The scene is published to the servo loop after each job. It is also published before a slow job,
    so that the servo loop need not wait for the slow job to receive the changes of earlier jobs.

    Args:
        publish: Function that publishes the scene to the servo loop. With the argument True, it
            must publish immediately; with False, it may skip this while more changes are queued.
        failed: Function that is called with the exception that a job raises.
        max_changes: Maximum number of queued changes; None: MAX_QUEUED_CHANGES.
    """

    def __init__(
        self,
        publish: Callable[[bool], None],
        failed: Callable[[Exception], None],
        max_changes: int | None = None,
    ) -> None:
        self._publish = publish
        bound = MAX_QUEUED_CHANGES if max_changes is None else max_changes
        self._executor = SerialExecutor("scene", failed, bound, MAX_QUEUED_BYTES)
        # Number of changes that were too large or not queued; written by the receiving thread.
        self._num_dropped = 0
        # Number of unreadable changes since the last whole scene; written by the queue's thread.
        self._num_unreadable = 0
        self._num_dropped_before = 0  # number dropped before the current job was submitted
        self._num_replaced = 0  # number of dropped changes that a later whole scene includes

    @property
    def has_more(self) -> bool:
        """Whether further jobs are queued behind the current job."""
        return self._executor.has_more

    @property
    def num_lost(self) -> int:
        """Number of lost changes that are not included in a whole scene applied later."""
        return self._num_dropped - self._num_replaced + self._num_unreadable

    def submit(
        self,
        job: Callable[[], None],
        size: int = 0,
        *,
        is_quick: bool = False,
        is_bounded: bool = True,
    ) -> bool:
        """Queue a job behind all queued jobs; return False if the queue is full.

        Args:
            job: Function that applies a change.
            size: Size of the change [bytes].
            is_quick: Whether the job is so short that the scene need not be published before it.
            is_bounded: Whether a full queue refuses the job; if False, the job is always accepted.
        """
        num_dropped = self._num_dropped

        def run() -> None:
            self._num_dropped_before = num_dropped
            try:
                if not is_quick:
                    self._publish(True)
            finally:
                try:
                    job()
                finally:  # also after an error, because earlier changes may not be published yet
                    self._publish(False)

        return self._executor.submit(run, size, is_bounded)

    def note_dropped(self) -> None:
        """Count a change that was too large, or that the full queue has refused, as lost."""
        self._num_dropped += 1

    def note_unreadable(self) -> None:
        """Count the change of the current job as lost, because its message cannot be read."""
        self._num_unreadable += 1

    def note_whole_scene(self) -> None:
        """Record that the current job has applied a whole scene, which includes earlier changes.

        Changes that were dropped before this job was submitted are no longer counted as lost.
        Changes that were dropped afterwards still are. All unreadable changes that were found so
        far are older than the whole scene, so none of them is counted any longer.
        """
        self._num_replaced = max(self._num_replaced, self._num_dropped_before)
        self._num_unreadable = 0

    def close(self) -> None:
        """Stop starting jobs; queued jobs are dropped."""
        self._executor.close()
