"""The real ``ik_node`` as a process of its own, and what it logs."""

import re
import sys
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from dls_ik.ros.child import ChildProcess

Echo = Callable[[str], None]

COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def node_command(parameters: dict[str, Any]) -> list[str]:
    """How to run the node that belongs to this Python, with parameters."""
    script = Path(sys.executable).with_name("ik_node")
    program = [str(script)] if script.is_file() else [sys.executable, "-m", "dls_ik.ros.node"]
    settings = [f"{name}:={value}" for name, value in parameters.items()]
    return [*program, "--ros-args", *(word for setting in settings for word in ("-p", setting))]


class NodeProcess(ChildProcess):
    """A context in which a node runs.

    Args:
        command: the program and its arguments.
        log: a file for everything that the node prints.
        echo: called with each line until :meth:`hush`.
    """

    def __init__(self, command: Sequence[str], log: Path, echo: Echo) -> None:
        super().__init__(command, self._keep)
        self._log = log
        self._echo: Echo | None = echo
        self._tail: deque[str] = deque(maxlen=8)

    def __enter__(self) -> "NodeProcess":
        """Begin the log, and start."""
        self._file = self._log.open("w")
        super().__enter__()
        return self

    @property
    def tail(self) -> list[str]:
        """The last lines of its log."""
        return list(self._tail)

    def hush(self) -> None:
        """Show no more lines of the node; the log goes on."""
        self._echo = None

    def _keep(self, line: str) -> None:
        text = COLOURS.sub("", line)
        self._file.write(text + "\n")
        self._file.flush()
        self._tail.append(text)
        if self._echo is not None:
            self._echo(text)

    def _finish(self) -> None:
        self._file.close()
