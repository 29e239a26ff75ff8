"""Nodes as processes of their own: started, waited for, ended; what they cost."""

import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import Empty, Queue
from typing import Any

from dls_ik import DlsIkError
from dls_ik.ros.child import ChildProcess

STARTING = 180.0  # [s] for a node to be ready, with nothing in the cache of kernels
READY = "ready"  # in the line that says so
ENDED = "ended, or took too long"
ROOT = Path(__file__).resolve().parents[1]


def ros_node(program: str, namespace: str, **parameters: Any) -> list[str]:
    """The command line of a node, given as a module and its arguments, in a namespace."""
    words = [sys.executable, "-m", *program.split(), "--ros-args", "-r", f"__ns:=/{namespace}"]
    for name, value in parameters.items():
        words += ["-p", f"{name}:={value}"]
    return words


class Process(ChildProcess):
    """A context in which a process runs; its lines wait to be read."""

    def __init__(self, command: Sequence[str], **environment: str) -> None:
        self._lines: Queue[str] = Queue()
        super().__init__(command, self._lines.put, ROOT, **environment)

    def __enter__(self) -> "Process":
        """Start it."""
        self.started = time.perf_counter()
        super().__enter__()
        return self

    def wait_ready(self) -> float:
        """Wait for the line that says that it is ready; return the time since the start [s].

        Raises:
            DlsIkError: it ended, or took too long; with what it said last.
        """
        said: deque[str] = deque(maxlen=5)
        while READY not in (line := self._next_line()):
            said.append(line)
            if line == ENDED:
                raise DlsIkError(f"{' '.join(self.command)} is not ready: {' | '.join(said)}")
        return time.perf_counter() - self.started

    def line(self, patience: float) -> str:
        """The next line that it says.

        Raises:
            DlsIkError: it ended, or took too long.
        """
        try:
            line = self._lines.get(timeout=patience)
        except Empty:
            line = ENDED
        if line == ENDED:
            raise DlsIkError(f"{' '.join(self.command)} {ENDED}")
        return line

    def lines(self) -> list[str]:
        """The lines that it said since, without waiting."""
        found = []
        while not self._lines.empty():
            found.append(self._lines.get())
        return [line for line in found if line != ENDED]

    def _next_line(self) -> str:
        left = self.started + STARTING - time.perf_counter()
        try:
            return self._lines.get(timeout=max(0.0, left))
        except Empty:
            return ENDED

    def sleep(self) -> None:
        """Stop it where it is."""
        self.signal(signal.SIGSTOP)

    def wake(self) -> None:
        """Let it go on."""
        self.signal(signal.SIGCONT)

    def processor_time(self) -> float:
        """What it has used so far [s], in user and system mode."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _finish(self) -> None:
        self._lines.put(ENDED)


def wait_until(is_so: Callable[[], bool], what: str, patience: float = 15.0) -> None:
    """Look again and again.

    Raises:
        DlsIkError: it did not come to be.
    """
    deadline = time.perf_counter() + patience
    while not is_so():
        if time.perf_counter() > deadline:
            raise DlsIkError(f"{what}: not within {patience:g} s")
        time.sleep(0.05)
