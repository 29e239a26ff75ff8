# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""A queue of planning scene changes that knows whether it lost a change."""

from collections.abc import Callable

from dls_ik.ros.services.executor import SerialExecutor

MAX_QUEUED_CHANGES, MAX_QUEUED_BYTES = 10_000, 16 * 1024 * 1024  # per queue of scene changes


class ChangeQueue:
    """Queue whose thread applies scene changes one at a time, in order; counts lost changes.

    A change is lost if it is too large, if the queue is full, or if its bytes cannot be read. The
    scene then differs from the scene of the publisher until a whole scene is applied.

    Each job publishes the scene to the servo loop when it ends. A slow job publishes it first as
    well, so that the servo loop does not wait for changes that are already applied.

    Args:
        publish: Publishes the scene to the servo loop. False allows a delay while more changes
            are queued; True does not.
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
        self._num_dropped = 0  # too large, or queue full; written by the receiving thread
        self._num_unreadable = 0  # count since the last whole scene; written by the queue's thread
        self._num_dropped_before = 0  # dropped before the current job was submitted
        self._num_replaced = 0  # dropped changes that a whole scene has made irrelevant

    @property
    def has_more(self) -> bool:
        """True if jobs wait behind the current one."""
        return self._executor.has_more

    @property
    def num_lost(self) -> int:
        """Number of changes that the scene lacks."""
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
            size: Size of the change [bytes].
            is_quick: The job is short, so the scene need not be published before it.
            is_bounded: False accepts the job even if the queue is full.
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
                finally:  # also after a failure: an earlier change may be unpublished
                    self._publish(False)

        return self._executor.submit(run, size, is_bounded)

    def note_dropped(self) -> None:
        """Record a change that was too large or did not fit into the queue."""
        self._num_dropped += 1

    def note_unreadable(self) -> None:
        """Record that the change of the current job cannot be read."""
        self._num_unreadable += 1

    def note_whole_scene(self) -> None:
        """Forget the changes lost before the current job, which has applied a whole scene.

        Changes that were dropped after the job was submitted stay lost. Unreadable changes are
        found in the order of the jobs, so all of them came before.
        """
        self._num_replaced = max(self._num_replaced, self._num_dropped_before)
        self._num_unreadable = 0

    def close(self) -> None:
        """Start no more jobs."""
        self._executor.close()
