"""Log lines, signals and streams of a node that none of them may stop; other processes."""

import ctypes
import logging
import os
import signal
import stat
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from textwrap import indent
from typing import Any

from dls_ik.text import escape

SIGNALS = (signal.SIGINT, signal.SIGTERM)
INPUT, OUTPUTS = 0, (1, 2)  # file descriptors


def trace(error: BaseException) -> str:
    """Format the traceback of an exception, indented."""
    return indent(escape("".join(traceback.format_exception(error)), keep="\n"), "  ")


class LogHandler(logging.Handler):
    """Forwards warnings of the package from Python's log to the log of a node.

    Args:
        node: a :class:`rclpy.node.Node`; this module does not import rclpy.
    """

    def __init__(self, node: Any) -> None:
        super().__init__(logging.WARNING)
        self._logger = node.get_logger()

    def emit(self, record: logging.LogRecord) -> None:
        """Log a warning."""
        self._logger.warning(escape(record.getMessage()))


class Throttle:
    """Logs a message of each topic at most once in a period of the steady clock.

    The throttle of rclpy's logger looks its caller up in the source at every call, which costs more
    than a cycle of the loop may, and follows a clock that can be wound back.

    Args:
        period: [s].
    """

    def __init__(
        self, node: Any, period: float = 2.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._logger = node.get_logger()
        self._period = period
        self._clock = clock
        self._logged: dict[str, float] = {}  # time by topic [s]
        self._recent: dict[str, dict[str, float]] = {}  # the same by topic and message

    def warn(self, topic: str, message: str | Callable[[], str]) -> None:
        """Log a warning, unless one of this topic was logged within the period.

        Args:
            message: the line, or a function that makes it if it is logged.
        """
        if self._is_due(topic):
            self._logger.warning(escape(message if isinstance(message, str) else message()))

    def warn_each(self, topic: str, message: str, most: int) -> None:
        """Log a warning, unless the same one, or `most` of this topic, came within the period."""
        now = self._clock()
        known = self._recent.get(topic, {})
        recent = {text: at for text, at in known.items() if now - at < self._period}
        if message not in recent and len(recent) < most:
            recent[message] = now
            self._logger.warning(escape(message))
        self._recent[topic] = recent

    def failed(self, topic: str, message: str, error: BaseException) -> None:
        """Log a warning with the traceback of an exception."""
        if self._is_due(topic):
            self._logger.warning(f"{escape(message)}:\n{trace(error)}")

    def info(self, topic: str, message: str) -> None:
        """Log a line, unless one of this topic was logged within the period."""
        if self._is_due(topic):
            self._logger.info(escape(message))

    def once(self, topic: str, message: str) -> None:
        """Log a warning the first time."""
        if topic not in self._logged:
            self._logged[topic] = self._clock()
            self._logger.warning(escape(message))

    def _is_due(self, topic: str) -> bool:
        now = self._clock()
        if now - self._logged.get(topic, -self._period) < self._period:
            return False
        self._logged[topic] = now
        return True


def hold_signals() -> None:
    """Block SIGINT and SIGTERM in this and all later threads until :func:`on_signal` waits."""
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)


def on_signal(act: Callable[[], object]) -> None:
    """Call `act` once, in a thread of its own, on the first signal that came or comes."""

    def wait() -> None:
        signal.sigwait(SIGNALS)
        act()

    threading.Thread(target=wait, name="signals", daemon=True).start()


def give_back_memory() -> None:
    """Return the memory of the start that is not used any more to the system, where libc can."""
    with suppress(OSError, AttributeError):  # only glibc can
        ctypes.CDLL(None).malloc_trim(0)


def free_streams() -> None:
    """Make writes to standard output and error drop their data instead of blocking.

    A terminal held with Ctrl-S or a lost remote session fills the buffers; rclpy logs while it
    holds the GIL, so that a write that blocks would stop all threads. Call this before files are
    opened: closed streams become the null device, or the next socket would take their numbers and
    the log would be written into it.
    """
    for number in (INPUT, *OUTPUTS):
        if not _is_open(number):
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this
    for number in OUTPUTS:
        with suppress(OSError):  # such as no reader: no write blocks then
            _unblock(number)


def flush_streams() -> None:
    """Flush standard output and error as far as they take data."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            if stream is not None:
                stream.flush()


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _unblock(number: int) -> None:
    mode = os.fstat(number).st_mode
    if stat.S_ISSOCK(mode):
        os.set_blocking(number, False)
    elif stat.S_ISFIFO(mode) or os.isatty(number):
        # opened anew: the shell that started us may share this one and rely on blocking writes
        flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY
        reopened = os.open(f"/proc/self/fd/{number}", flags)
        os.dup2(reopened, number)
        os.close(reopened)


# A program in a process of its own

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
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        return self

    def __exit__(self, *exception: object) -> None:
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


def check_executables(nodes: Sequence[Any], context: Any) -> None:
    """Look up the executables of all nodes of a launch file before any of them starts.

    A launch that finds one missing midway ends, and leaves running what it has started.

    Raises:
        RuntimeError: one or more are not installed; the message names each.
    """
    from ament_index_python.packages import PackageNotFoundError
    from launch.substitutions import SubstitutionFailure
    from launch_ros.substitutions import ExecutableInPackage

    missing = {}
    for node in nodes:
        package, name = node.node_package, node.node_executable
        try:
            ExecutableInPackage(executable=name, package=package).perform(context)
        except (PackageNotFoundError, SubstitutionFailure):
            missing[package] = name
    if missing:
        listed = " and ".join(
            name if name == package else f"{name} of {package}" for package, name in missing.items()
        )
        packages = " ".join(f"ros-$ROS_DISTRO-{each.replace('_', '-')}" for each in missing)
        raise RuntimeError(
            f"nothing was started, as {listed} cannot be found: sudo apt-get install {packages}, "
            "or source the workspace that has it, or leave out the argument that asks for it"
        )
