# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Logging, signals, output streams that never block a node, and child processes."""

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
STDIN_DESCRIPTOR, OUTPUT_DESCRIPTORS = 0, (1, 2)  # file descriptors


def trace(error: BaseException) -> str:
    """Return the traceback of an exception as indented text."""
    return indent(escape("".join(traceback.format_exception(error)), keep="\n"), "  ")


class LogHandler(logging.Handler):
    """Handler of Python's `logging` that forwards warnings to the log of a node.

    Args:
        node: Node, a :class:`rclpy.node.Node`. The argument has no type because this module does
            not import rclpy.
    """

    def __init__(self, node: Any) -> None:
        super().__init__(logging.WARNING)
        self._logger = node.get_logger()

    def emit(self, record: logging.LogRecord) -> None:
        """Log a record as a warning of the node."""
        self._logger.warning(escape(record.getMessage()))


class Throttle:
    """Logger that logs at most one message about each subject per period.

    The subject is the argument `topic` of the methods. The throttle of rclpy's logger is too slow
    for a control cycle, because each call inspects the source code of the caller. It also uses a
    clock that can jump back; this class uses the steady clock.

    Args:
        node: Node in whose log messages are written.
        period: Minimum time between two messages about one subject [s].
        clock: Function that returns the time [s].
    """

    def __init__(
        self, node: Any, period: float = 2.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._logger = node.get_logger()
        self._period = period
        self._clock = clock
        self._logged: dict[str, float] = {}  # time of the last message on each subject [s]
        self._recent: dict[str, dict[str, float]] = {}  # times of messages on each subject [s]

    def warn(self, topic: str, message: str | Callable[[], str]) -> None:
        """Log a warning, unless a message about this subject was logged within the period.

        Args:
            topic: Subject.
            message: Text, or a function that returns the text and is called only if needed.
        """
        if self._is_due(topic):
            self._logger.warning(escape(message if isinstance(message, str) else message()))

    def warn_each(self, topic: str, message: str, most: int) -> None:
        """Log a warning, unless too many warnings about this subject were logged.

        Args:
            topic: Subject.
            message: Text; a text that was logged within the period is not logged again.
            most: Maximum number of different warnings about this subject within the period.
        """
        now = self._clock()
        known = self._recent.get(topic, {})
        recent = {text: at for text, at in known.items() if now - at < self._period}
        if message not in recent and len(recent) < most:
            recent[message] = now
            self._logger.warning(escape(message))
        self._recent[topic] = recent

    def failed(self, topic: str, message: str, error: BaseException) -> None:
        """Log a warning with the traceback of an exception, unless throttled as in :meth:`warn`."""
        if self._is_due(topic):
            self._logger.warning(f"{escape(message)}:\n{trace(error)}")

    def info(self, topic: str, message: str) -> None:
        """Log an info message, unless throttled as in :meth:`warn`."""
        if self._is_due(topic):
            self._logger.info(escape(message))

    def once(self, topic: str, message: str) -> None:
        """Log a warning, unless a message about this subject was logged at any time before."""
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
    """Block SIGINT and SIGTERM in this thread and in threads that it starts.

    :func:`on_signal` then waits for these signals.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)


def on_signal(act: Callable[[], object]) -> None:
    """Call a function once, in a new thread, when the first SIGINT or SIGTERM arrives.

    This includes a signal that arrived after :func:`hold_signals` and before this call.
    """

    def wait() -> None:
        signal.sigwait(SIGNALS)
        act()

    threading.Thread(target=wait, name="signals", daemon=True).start()


def give_back_memory() -> None:
    """Return unused memory of this process to the system, if the C library supports it."""
    with suppress(OSError, AttributeError):  # only glibc has malloc_trim
        ctypes.CDLL(None).malloc_trim(0)


def free_streams() -> None:
    """Make writes to standard output and error drop data instead of blocking.

    If a terminal is stopped with Ctrl-S, or a remote session is lost, the buffers of the streams
    fill up. A blocking write would then stop all threads, because rclpy holds the GIL while it
    logs.

    Standard streams that are closed are replaced by the null device; otherwise the next file or
    socket would get the file descriptor of a closed stream, and would receive log lines. Therefore
    this function must be called before any file is opened.
    """
    for number in (STDIN_DESCRIPTOR, *OUTPUT_DESCRIPTORS):
        if not _is_open(number):
            os.open(os.devnull, os.O_RDWR)  # returns the lowest free number, which is `number`
    for number in OUTPUT_DESCRIPTORS:
        with suppress(OSError):  # a stream without a reader fails here, but never blocks
            _unblock(number)


def flush_streams() -> None:
    """Flush standard output and standard error; ignore errors."""
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
        # Reopened, because the parent shell may share this stream and rely on blocking writes.
        flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY
        reopened = os.open(f"/proc/self/fd/{number}", flags)
        os.dup2(reopened, number)
        os.close(reopened)


# Child processes

# Signals that stop a process, in the order in which they are sent, and maximum times until the
# process exits after each signal [s].
SIGNAL_TIMEOUTS = {signal.SIGINT: 8.0, signal.SIGTERM: 3.0, signal.SIGKILL: 3.0}


def stay_alone() -> None:
    """Restrict ROS nodes of this process to a separate domain on this machine.

    This sets environment variables; variables that are already set are not changed.
    """
    os.environ.setdefault("ROS_DOMAIN_ID", str(1 + os.getpid() % 100))
    os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    if os.environ.get("ROS_DISTRO") == "humble":
        os.environ.setdefault("ROS_LOCALHOST_ONLY", "1")  # the name of this setting in Humble


class ChildProcess:
    """Context manager that starts a program on entry, and stops the program on every exit.

    Args:
        command: Program and its arguments.
        take: Function that is called with each line of the program's output, in a thread.
        folder: Working directory of the program; None: that of this process.
        environment: Environment variables of the program, in addition to those of this process.
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
        """Start the program in a new session, so that Ctrl-C does not reach the program."""
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
        """Stop the program by SIGINT; if it does not exit, send SIGTERM, then SIGKILL."""
        self.signal(signal.SIGCONT)
        for number, timeout in SIGNAL_TIMEOUTS.items():
            if not self.is_running:
                break
            self.signal(number)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout)
        self.signal(signal.SIGKILL)  # children of the program may still run
        self._reader.join(2.0)

    @property
    def is_running(self) -> bool:
        """Whether the program is still running."""
        return self.process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """Exit code of the program, negative if a signal ended it; None while it is running."""
        return self.process.poll()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the program and its child processes."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def _read(self) -> None:
        for line in self.process.stdout or ():
            self._take(line.rstrip())


def check_executables(nodes: Sequence[Any], context: Any) -> None:
    """Check that the executables of all nodes of a launch file are installed.

    Without this check, launch would stop at the first missing executable, after it has started the
    previous nodes.

    Args:
        nodes: ``launch_ros.actions.Node`` objects.
        context: Launch context.

    Raises:
        RuntimeError: If executables are missing; the message names all of them.
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
            "or source the workspace with it, or omit the launch argument that needs it"
        )
