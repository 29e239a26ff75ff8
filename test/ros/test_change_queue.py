# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The queue of scene changes, without ROS: order, publication, and lost changes."""

import threading

import pytest

from dls_ik.ros.services.change_queue import ChangeQueue

LONG = 120.0  # [s] timeout of an immediate event


class Queue:
    """A queue with space for two changes, whose first job waits until `go` is set."""

    def __init__(self):
        self.events, self.errors = [], []
        self.go, started = threading.Event(), threading.Event()
        self.queue = ChangeQueue(self.publish, self.errors.append, 3)
        self.queue.submit(lambda: (started.set(), self.go.wait(LONG)), is_quick=True)
        assert started.wait(LONG)

    def publish(self, is_urgent):
        self.events.append(("publish", is_urgent))

    def add(self, name, **options):
        return self.queue.submit(lambda: self.events.append(name), **options)

    def finish(self):
        """Run all jobs, and return what happened."""
        done = threading.Event()
        self.queue.submit(done.set, is_quick=True, is_bounded=False)
        self.go.set()
        assert done.wait(LONG)
        return self.events


@pytest.fixture
def waiting():
    made = Queue()
    yield made
    made.go.set()
    made.queue.close()


def test_jobs_run_in_order_and_a_slow_job_publishes_changes_first(waiting):
    assert waiting.add("quick", is_quick=True)
    assert waiting.add("slow")
    assert waiting.queue.has_more
    first, delayed, urgent = ("publish", False), ("publish", False), ("publish", True)
    assert waiting.finish()[:5] == [first, "quick", delayed, urgent, "slow"]
    assert not waiting.errors


def test_a_full_queue_accepts_unbounded_jobs_only(waiting):
    assert waiting.add("a")
    assert waiting.add("b")
    assert not waiting.add("c")
    assert waiting.add("d", is_bounded=False)
    assert [each for each in waiting.finish() if isinstance(each, str)] == ["a", "b", "d"]


def test_a_failed_job_is_reported_and_published(waiting):
    waiting.queue.submit(lambda: 1 / 0, is_quick=True)
    waiting.finish()
    assert [type(error) for error in waiting.errors] == [ZeroDivisionError]
    assert waiting.events[:2] == [("publish", False)] * 2


def test_full_scene_clears_only_changes_lost_before_it(waiting):
    queue = waiting.queue
    queue.note_dropped()
    queue.submit(lambda: (queue.note_unreadable(), queue.note_whole_scene()), is_quick=True)
    queue.note_dropped()
    queue.note_dropped()
    assert queue.num_lost == 3
    waiting.finish()
    assert queue.num_lost == 2
    queue.submit(queue.note_unreadable, is_quick=True)
    done = threading.Event()
    queue.submit(done.set, is_quick=True)
    assert done.wait(LONG)
    assert queue.num_lost == 3
