"""Nodes as processes of their own: started, waited for, ended; what they cost."""

import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from types import TracebackType
from typing import Any

from dls_ik import DlsIkError

PATIENCE = 8.0  # [s] for a process to end when asked to
STARTING = 180.0  # [s] for a node to be ready, with nothing in the cache of kernels
READY = "ready"  # in the line that says so
ENDED = "ended, or took too long"
ROOT = Path(__file__).resolve().parents[1]


def isolate() -> None:
    """Meet no nodes but our own: a ROS domain for this run, unless one is chosen."""
    os.environ.setdefault("ROS_DOMAIN_ID", str(1 + os.getpid() % 100))
    os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    if os.environ.get("ROS_DISTRO") == "humble":
        os.environ.setdefault("ROS_LOCALHOST_ONLY", "1")  # the same, as Humble knows it


def ros_node(program: str, namespace: str, **parameters: Any) -> list[str]:
    """The command line of a node, given as a module and its arguments, in a namespace."""
    words = [sys.executable, "-m", *program.split(), "--ros-args", "-r", f"__ns:=/{namespace}"]
    for name, value in parameters.items():
        words += ["-p", f"{name}:={value}"]
    return words


class Process:
    """A context in which a process runs; it is ended on the way out, whatever happened."""

    def __init__(self, command: Sequence[str], **environment: str) -> None:
        self._command, self._environment = list(command), environment
        self._lines: Queue[str] = Queue()

    def __enter__(self) -> "Process":
        """Start it, apart from Ctrl-C in the terminal, which is for the benchmark."""
        self.started = time.perf_counter()
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **self._environment},
            start_new_session=True,
        )
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Ask it to end, then insist."""
        self.wake()
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(1.0)

    def wait_ready(self) -> float:
        """Wait for the line that says that it is ready; return the time since the start [s].

        Raises:
            DlsIkError: it ended, or took too long; with what it said last.
        """
        said: deque[str] = deque(maxlen=5)
        while READY not in (line := self._next_line()):
            said.append(line)
            if line == ENDED:
                raise DlsIkError(f"{' '.join(self._command)} is not ready: {' | '.join(said)}")
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
            raise DlsIkError(f"{' '.join(self._command)} {ENDED}")
        return line

    def _next_line(self) -> str:
        left = self.started + STARTING - time.perf_counter()
        try:
            return self._lines.get(timeout=max(0.0, left))
        except Empty:
            return ENDED

    def sleep(self) -> None:
        """Stop it where it is."""
        self._process.send_signal(signal.SIGSTOP)

    def wake(self) -> None:
        """Let it go on."""
        self._process.send_signal(signal.SIGCONT)

    def processor_time(self) -> float:
        """What it has used so far [s], in user and system mode."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _read(self) -> None:
        if self._process.stdout is not None:
            for line in self._process.stdout:
                self._lines.put(line.rstrip())
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
