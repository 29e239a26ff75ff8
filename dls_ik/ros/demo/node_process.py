"""The real ``ik_node`` as a process of its own, and what it logs."""

import os
import re
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Any

Echo = Callable[[str], None]

# How long a signal may take to end the node [s], from asking to forcing.
PATIENCE = {signal.SIGINT: 8.0, signal.SIGTERM: 3.0, signal.SIGKILL: 3.0}
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def node_command(parameters: dict[str, Any]) -> list[str]:
    """How to run the node that belongs to this Python, with parameters."""
    script = Path(sys.executable).with_name("ik_node")
    program = [str(script)] if script.is_file() else [sys.executable, "-m", "dls_ik.ros.node"]
    settings = [f"{name}:={value}" for name, value in parameters.items()]
    return [*program, "--ros-args", *(word for setting in settings for word in ("-p", setting))]


class NodeProcess:
    """A context in which a node runs; it is ended on the way out, whatever happened.

    Args:
        command: the program and its arguments.
        log: a file for everything that the node prints.
        echo: called with each line until :meth:`hush`.
    """

    def __init__(self, command: Sequence[str], log: Path, echo: Echo) -> None:
        self._command, self._log = list(command), log
        self._echo: Echo | None = echo
        self._tail: deque[str] = deque(maxlen=8)

    def __enter__(self) -> "NodeProcess":
        """Start it, apart from Ctrl-C in the terminal, which is for the demonstration."""
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
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
        for number, patience in PATIENCE.items():
            if not self.is_running:
                break
            self._signal(number)
            try:
                self._process.wait(patience)
            except subprocess.TimeoutExpired:
                continue
        self._signal(signal.SIGKILL)  # whatever the node itself started
        self._reader.join(2.0)

    @property
    def is_running(self) -> bool:
        """Whether the node has not ended."""
        return self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """What it ended with; negative for a signal; None while it runs."""
        return self._process.poll()

    @property
    def tail(self) -> list[str]:
        """The last lines of its log."""
        return list(self._tail)

    def hush(self) -> None:
        """Show no more lines of the node; the log goes on."""
        self._echo = None

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def _read(self) -> None:
        with self._log.open("w") as log:
            for line in self._process.stdout or ():
                text = COLOURS.sub("", line.rstrip())
                log.write(text + "\n")
                log.flush()
                self._tail.append(text)
                if self._echo is not None:
                    self._echo(text)
