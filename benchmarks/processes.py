# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Nodes in separate processes: start, wait, stop and measure."""

import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, Queue
from typing import Any, NamedTuple

from dls_ik import DlsIkError
from dls_ik.ros.util import ChildProcess, stay_alone

STARTING = 180.0  # [s] maximum start time of a node with an empty kernel cache
READY = "ready"  # word in the log line of a ready node
ENDED = "ended, or took too long"
ROOT = Path(__file__).resolve().parents[1]


def ros_node(program: str, namespace: str, **parameters: Any) -> list[str]:
    """Return the command line of a node in a namespace, for a module and its arguments."""
    words = [sys.executable, "-m", *program.split(), "--ros-args", "-r", f"__ns:=/{namespace}"]
    for name, value in parameters.items():
        words += ["-p", f"{name}:={value}"]
    return words


class Process(ChildProcess):
    """Context with a running process in our ROS domain; its output lines are queued."""

    def __init__(self, command: Sequence[str], **environment: str) -> None:
        stay_alone()
        self._lines: Queue[str] = Queue()
        super().__init__(command, self._lines.put, ROOT, **environment)

    def __enter__(self) -> "Process":
        """Start the process."""
        self.started = time.perf_counter()
        super().__enter__()
        return self

    def wait_ready(self) -> float:
        """Wait for the line that contains READY, and return the time since the start [s].

        Raises:
            DlsIkError: If the process exited or timed out; the message has its last output.
        """
        said: deque[str] = deque(maxlen=5)
        while READY not in (line := self._next(self.started + STARTING - time.perf_counter())):
            said.append(line)
            if line == ENDED:
                raise DlsIkError(f"{' '.join(self.command)} is not ready: {' | '.join(said)}")
        return time.perf_counter() - self.started

    def line(self, patience: float) -> str:
        """Return the next line of output.

        Raises:
            DlsIkError: If the process exited or timed out.
        """
        if (line := self._next(patience)) == ENDED:
            raise DlsIkError(f"{' '.join(self.command)} {ENDED}")
        return line

    def lines(self) -> list[str]:
        """Return the queued lines without waiting."""
        found = []
        while not self._lines.empty():
            found.append(self._lines.get())
        return [line for line in found if line != ENDED]

    def _next(self, patience: float) -> str:
        try:
            return self._lines.get(timeout=max(0.0, patience))
        except Empty:
            return ENDED

    def sleep(self) -> None:
        """Suspend the process."""
        self.signal(signal.SIGSTOP)

    def wake(self) -> None:
        """Resume the process."""
        self.signal(signal.SIGCONT)

    def processor_time(self) -> float:
        """Return the processor time so far [s], in user and system mode."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _finish(self) -> None:
        self._lines.put(ENDED)


def wait_until(is_so: Callable[[], bool], what: str, patience: float = 15.0) -> None:
    """Wait until a condition holds.

    Raises:
        DlsIkError: If the condition does not hold in time.
    """
    deadline = time.perf_counter() + patience
    while not is_so():
        if time.perf_counter() > deadline:
            raise DlsIkError(f"{what}: not within {patience:g} s")
        time.sleep(0.05)


# Figures of a process

MEBIBYTE = 1024.0  # [kB]


class ProcFigures(NamedTuple):
    """Memory, threads and files of a process, from /proc."""

    rss: float  # [MiB] resident
    pss: float  # [MiB] resident, of shared pages its part
    uss: float  # [MiB] resident, its own pages alone
    threads: int
    files: int  # open
    priority: int  # maximum real-time priority of its threads; 0: none


def proc_figures(pid: int) -> ProcFigures:
    """Measure a process.

    Raises:
        OSError: If the process has exited.
    """
    folder = Path(f"/proc/{pid}")
    sizes: dict[str, float] = {}
    for line in (folder / "smaps_rollup").read_text().splitlines()[1:]:
        name, size = line.split()[:2]
        sizes[name.rstrip(":")] = int(size) / MEBIBYTE
    own = sizes["Private_Clean"] + sizes["Private_Dirty"]
    threads, files = (len(os.listdir(folder / name)) for name in ("task", "fd"))
    highest = max(real_time_priorities(pid), default=0)
    return ProcFigures(sizes["Rss"], sizes["Pss"], own, threads, files, highest)


def real_time_priorities(pid: int) -> list[int]:
    """Return the priorities of the real-time threads of a process."""
    found = []
    for thread in os.listdir(f"/proc/{pid}/task"):
        with suppress(ProcessLookupError):  # it has just ended
            found.append(os.sched_getparam(int(thread)).sched_priority)
    return [priority for priority in found if priority]
