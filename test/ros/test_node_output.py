# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tests that the node continues if nobody reads its log, or the disk is full."""

import os
import subprocess
from contextlib import suppress

import pytest
from ros_client import READY, NodeProcess
from ros_watched import Watched, pose, shifted, twist

pytestmark = [pytest.mark.ros, pytest.mark.slow]
APART = ("unshare", "--mount")  # a mount is seen by the process alone, and ends with it
FULL_DISK = """
mount -t tmpfs -o size=64k none "$DISK" && mkdir "$DISK/log" || exit 9
head -c 100000 /dev/zero > "$DISK/rest" 2> /dev/null
exec "$@"
"""


class UnreadProcess(NodeProcess):
    """A node whose output nobody reads from the line on that it is ready, and then has no room."""

    def fill(self):
        """Leave no room in the pipe."""
        pipe = os.open(f"/proc/{self.process.pid}/fd/2", os.O_WRONLY | os.O_NONBLOCK)
        for size in (4096, 1):
            with suppress(BlockingIOError):
                while os.write(pipe, b" " * size):
                    pass
        os.close(pipe)

    def _read(self):
        for line in self.process.stdout:
            with self._news:
                self.lines.append(line.rstrip("\n"))
                self._news.notify_all()
            if "ready" in line:
                return


class ClosedProcess(NodeProcess):
    """A node that was started without any standard stream."""

    wrapper = ("sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh")

    def wait_for_line(self, *words, timeout=None):
        """There are none."""

    def streams(self):
        return [os.readlink(f"/proc/{self.process.pid}/fd/{number}") for number in range(3)]


class FullDiskProcess(NodeProcess):
    """A node whose log files have no room."""

    wrapper = (*APART, "sh", "-c", FULL_DISK, "sh")


class Unread(Watched):
    process = UnreadProcess


class Closed(Watched):
    process = ClosedProcess

    def __enter__(self):
        self.client.spin_until(lambda: self.statuses, READY, "a status")
        return super().__enter__()


class FullDisk(Watched):
    process = FullDiskProcess


def assert_serves(arm):
    """It has something to say, goes on moving, answers, and ends."""
    for _ in range(2):
        arm.send(twist((0.0, 0.05, 0.0)))
        arm.client.spin_for(0.1)  # no order is kept between topics
        arm.answers(lambda: arm.send(pose(shifted(), "nowhere")), "invalid target", "nowhere")
    arm.goes(shifted(0.0, 0.1, 0.0))
    answer = arm.pause()
    assert answer.success, answer.message
    arm.pause(False)
    arm.goes(shifted())
    arm.assert_calm()
    assert arm.node.end() == 0


def test_a_log_that_nobody_reads_does_not_stop_the_arm():
    with Unread("unread", feedback_mode="none") as arm:
        arm.node.fill()
        assert_serves(arm)


def test_closed_standard_streams_are_replaced_by_the_null_device():
    with Closed("closed", feedback_mode="none") as arm:
        assert arm.node.streams() == [os.devnull] * 3
        assert_serves(arm)


def test_a_disk_that_is_full_does_not_stop_the_arm(tmp_path, monkeypatch):
    tried = subprocess.run(
        [*APART, "mount", "-t", "tmpfs", "none", str(tmp_path)], capture_output=True, text=True
    )
    if tried.returncode:
        pytest.skip(f"may not mount here: {tried.stderr.strip()}")
    monkeypatch.setenv("DISK", str(tmp_path))
    monkeypatch.setenv("ROS_LOG_DIR", str(tmp_path / "log"))
    with FullDisk("full", feedback_mode="none") as arm:
        assert_serves(arm)
