"""Kernels that a running node lacks: another process compiles them, and the node loads them.

Compiling holds numba's lock and most of Python's for seconds, in which a control loop would stop.
So a node compiles what every node needs before it is ready, and nothing later: the kernels of
collision checks, where an installation left them out, and those that nobody foresaw come from
another process, by the cache on disk.
"""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from dls_ik import warm_up
from dls_ik.core.jit import MissingKernelError, compile_elsewhere
from dls_ik.errors import SceneError
from dls_ik.text import escape

MAX_ATTEMPTS = 2  # builds of one kernel, for one that the cache loses
NICENESS = 10  # of the process that compiles
SCENE = "the kernels of collision checks"
SCENE_TIME = "about a minute on two free cores"


class Build(NamedTuple):
    """Kernels for another process to compile."""

    what: str
    arguments: Sequence[str]  # of dls_ik.warm_up
    given: bytes = b""  # its standard input


class KernelBuilder:
    """Has missing kernels compiled by another process, one build after the other.

    Args:
        logger: of the node.
    """

    def __init__(self, logger: Any) -> None:
        self._logger = logger
        self._changed = threading.Condition()
        self._queue: list[Build] = []  # the first one runs
        self._attempts: Counter[tuple[object, ...]] = Counter()  # by kernel and signature
        self._failures: dict[str, str] = {}  # by what was to be compiled
        self._child: subprocess.Popen[bytes] | None = None
        self._closed, self._is_loading = threading.Event(), False

    def take_over_compilation(self) -> None:
        """Load the kernels of scenes, or start compiling them; this process compiles no more.

        A kernel that any thread lacks from now on raises a MissingKernelError there, and is
        compiled by another process.
        """
        compile_elsewhere(self._request)
        if not self._load_scene():
            self._logger.info(
                f"compiling {SCENE} in another process, {SCENE_TIME}: until then requests with "
                "avoid_collisions are answered with TIMED_OUT (-6), and targets of a stream that "
                "keeps distances wait"
            )
            self._submit(Build(SCENE, ("--scene",)))

    def await_scene(self, tell: Callable[[str], None]) -> None:
        """Wait until the kernels of scenes are compiled, and load them.

        Args:
            tell: called with the reason why they are not there yet.

        Raises:
            SceneError: If they cannot be compiled.
        """
        if self._load_scene():
            return
        tell(f"{SCENE} are being compiled by another process, which takes {SCENE_TIME}")
        self.wait()
        if not self._load_scene():
            reason = self._failures.get(SCENE, "they cannot be loaded")
            raise SceneError(f"{SCENE} cannot be compiled: {reason}")

    def wait(self) -> None:
        """Wait until nothing is being compiled."""
        with self._changed:
            self._changed.wait_for(lambda: not self._queue or self._closed.is_set())

    def close(self) -> None:
        """Stop compiling."""
        compile_elsewhere(None)
        with self._changed:
            self._closed.set()
            child = self._child
            self._changed.notify_all()
        if child is not None:
            _signal(child, signal.SIGKILL)  # it has blocked all others, as the node

    def _load_scene(self) -> bool:
        """Use each kernel of a scene once; return False if one is not on disk."""
        self._is_loading = True
        try:
            warm_up.use_kernels(warm_up.SCENE_USES)
        except MissingKernelError:
            return False
        finally:
            self._is_loading = False
        return True

    def _request(self, missing: MissingKernelError) -> None:
        """Have one kernel compiled; called in any thread, while it holds numba's lock."""
        key, name = (missing.function, missing.signature), f"the kernel {missing.function.__name__}"
        is_queued = any(build.what == name for build in list(self._queue))
        if self._is_loading or is_queued or self._attempts[key] >= MAX_ATTEMPTS:
            return
        self._attempts[key] += 1
        self._logger.warning(
            f"compiling {name} in another process, up to a minute: what needs it is refused until "
            "then"
        )
        self._submit(Build(name, ("--kernel",), warm_up.kernel_name(missing)))

    def _submit(self, build: Build) -> None:
        with self._changed:
            self._queue.append(build)
            if len(self._queue) == 1:
                threading.Thread(target=self._run, name="kernels", daemon=True).start()

    def _run(self) -> None:
        """Compile until the queue is empty."""
        while not self._closed.is_set():
            begin, build = time.monotonic(), self._queue[0]
            failure = self._compile(build)
            if self._closed.is_set():
                return
            if failure:
                self._failures[build.what] = failure
                self._logger.error(escape(f"{build.what} cannot be compiled: {failure}"))
            else:
                duration = time.monotonic() - begin
                self._logger.info(f"{build.what}: compiled by another process, {duration:.0f} s")
            with self._changed:
                self._queue.pop(0)
                self._changed.notify_all()
                if not self._queue:
                    return

    def _compile(self, build: Build) -> str:
        """Compile in another process; return the reason of a failure."""
        command = [sys.executable, "-m", warm_up.__name__, *build.arguments]
        try:
            # A file, as the children of a killed process would keep a pipe open.
            with tempfile.TemporaryFile() as errors:
                with self._changed:
                    if self._closed.is_set():
                        return ""
                    self._child = child = subprocess.Popen(  # noqa: S603  our own module
                        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=errors,
                        start_new_session=True,  # Ctrl-C is for the node, which ends its children
                    )  # fmt: skip
                with suppress(OSError):
                    os.setpriority(os.PRIO_PGRP, child.pid, NICENESS)
                child.communicate(build.given)
                _signal(child, signal.SIGKILL)  # its own children, if it was killed
                errors.seek(0)
                said = errors.read()
        except OSError as error:
            return str(error)
        finally:
            self._child = None
        lines = said.decode(errors="replace").strip().splitlines()
        ended = f"python -m {warm_up.__name__} ended with code {child.returncode}"
        return (lines[-1] if lines else ended) if child.returncode else ""


def _signal(child: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
    """Send a signal to a child and to its own children."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, number)
