# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""A queue of planning scene changes that counts lost changes."""

from collections.abc import Callable

from dls_ik.ros.services.executor import SerialExecutor

MAX_QUEUED_CHANGES, MAX_QUEUED_BYTES = 10_000, 16 * 1024 * 1024  # per queue of scene changes


class ChangeQueue:
    """Queue of jobs that apply scene changes one at a time, in order; counts lost changes.

    A change is lost if it is too large, if the queue is full, or if its bytes cannot be read. The
    scene then differs from the scene of the publisher until a whole scene is applied.

    The scene is published to the servo loop after each job. Before a slow job it is published too,
    because otherwise the servo loop would receive changes of earlier jobs only after the slow job.

    Args:
        publish: Publishes the scene to the servo loop. The argument is whether to publish at once;
            if it is False, the function may wait while more changes are queued.
        failed: Called with the exception that a job raises.
        max_changes: Maximum number of queued changes; default: MAX_QUEUED_CHANGES.
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
        self._num_dropped = 0  # changes too large or not queued; written by the receiving thread
        self._num_unreadable = 0  # count since the last whole scene; written by the queue's thread
        self._num_dropped_before = 0  # changes dropped before the current job was submitted
        self._num_replaced = 0  # dropped changes that a later whole scene includes

    @property
    def has_more(self) -> bool:
        """True if jobs wait until the current job ends."""
        return self._executor.has_more

    @property
    def num_lost(self) -> int:
        """Number of lost changes that no later whole scene includes."""
        return self._num_dropped - self._num_replaced + self._num_unreadable

    def submit(
        self,
        job: Callable[[], None],
        size: int = 0,
        *,
        is_quick: bool = False,
        is_bounded: bool = True,
    ) -> bool:
        """Run a job after all queued changes; return False if the queue is full.

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
                finally:  # also if the job fails, as an earlier change may not be published yet
                    self._publish(False)

        return self._executor.submit(run, size, is_bounded)

    def note_dropped(self) -> None:
        """Record a change that was too large or did not fit into the queue."""
        self._num_dropped += 1

    def note_unreadable(self) -> None:
        """Record that the change of the current job cannot be read."""
        self._num_unreadable += 1

    def note_whole_scene(self) -> None:
        """Record that the current job has applied a whole scene, which includes earlier changes.

        Changes dropped before the job was submitted are no longer counted as lost; changes dropped
        later are. No unreadable change is counted as lost, because the queue reads changes in order
        and has found only changes that came before the whole scene.
        """
        self._num_replaced = max(self._num_replaced, self._num_dropped_before)
        self._num_unreadable = 0

    def close(self) -> None:
        """Start no more jobs."""
        self._executor.close()
