"""A program in a process of its own, and its output."""

import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread
from types import TracebackType

# Time [s] for a process to end after each signal, from asking to forcing.
PATIENCE = {signal.SIGINT: 8.0, signal.SIGTERM: 3.0, signal.SIGKILL: 3.0}


def stay_alone() -> None:
    """Choose a ROS domain of our own on this machine, unless the environment chooses one."""
    os.environ.setdefault("ROS_DOMAIN_ID", str(1 + os.getpid() % 100))
    os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    if os.environ.get("ROS_DISTRO") == "humble":
        os.environ.setdefault("ROS_LOCALHOST_ONLY", "1")  # Humble's name of the same


class ChildProcess:
    """A context in which a program runs; it is ended on the way out, also after an exception.

    Args:
        command: the program and its arguments.
        take: called with each line of its output, in a thread.
        folder: working directory; default: that of this process.
        environment: added to that of this process.
    """

    def __init__(
        self,
        command: Sequence[str],
        take: Callable[[str], None],
        folder: Path | None = None,
        **environment: str,
    ) -> None:
        self.command = list(command)
        self._take, self._folder, self._environment = take, folder, environment

    def __enter__(self) -> "ChildProcess":
        """Start the program, in a session of its own, so that Ctrl-C goes to this process only."""
        self.process = subprocess.Popen(  # noqa: S603  a list from the caller, no shell
            self.command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            cwd=self._folder,
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
        """Ask the program to end, then force it."""
        self.signal(signal.SIGCONT)
        for number, patience in PATIENCE.items():
            if not self.is_running:
                break
            self.signal(number)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(patience)
        self.signal(signal.SIGKILL)  # its own children
        self._reader.join(2.0)

    @property
    def is_running(self) -> bool:
        """True until the program has ended."""
        return self.process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """Exit code, negative for a signal; None while it runs."""
        return self.process.poll()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the program and its children."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def _read(self) -> None:
        for line in self.process.stdout or ():
            self._take(line.rstrip())
