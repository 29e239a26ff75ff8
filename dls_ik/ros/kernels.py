# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Compilation of missing Numba kernels by a child process.

Compilation holds the lock of Numba, and most of the time the GIL, for several seconds, which would
stop the control loop. Therefore the node itself compiles only the kernels that every node needs,
and only before it is ready. A child process compiles all other kernels into the disk cache, from
which the node loads them: the kernels of collision checks, if they are not in the cache yet, and
kernels that are unexpectedly missing.
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

MAX_BUILDS_PER_KERNEL = 2  # a second build is needed if the kernel is removed from the cache
NICENESS = 10  # nice value (low priority) of the child process
SCENE_KERNELS = "the kernels of collision checks"
SCENE_BUILD_TIME = "about a minute on two free cores"


class Build(NamedTuple):
    """Compilation job for the child process."""

    name: str  # name of the kernels in messages
    arguments: Sequence[str]  # command line arguments of the module dls_ik.warm_up
    stdin: bytes = b""  # standard input of the child process


class KernelBuilder:
    """Queue of builds of missing kernels; a child process runs one build at a time.

    Args:
        logger: Logger of the node.
    """

    def __init__(self, logger: Any) -> None:
        self._logger = logger
        self._changed = threading.Condition()
        self._queue: list[Build] = []  # the first build is the one that is running
        # Number of builds by kernel and signature.
        self._attempts: Counter[tuple[object, ...]] = Counter()
        self._failures: dict[str, str] = {}  # reasons of failures by name of the build
        self._child: subprocess.Popen[bytes] | None = None
        self._closed, self._is_loading = threading.Event(), False

    def take_over_compilation(self) -> None:
        """Leave the compilation of further kernels to a child process; load those of the scene.

        If the kernels of collision checks in the scene are not in the disk cache, start to compile
        them. After this method, a call of a missing kernel raises a MissingKernelError, and a child
        process compiles the kernel.
        """
        compile_elsewhere(self._request)
        if not self._load_scene():
            self._logger.info(
                f"compiling {SCENE_KERNELS} in another process, which takes {SCENE_BUILD_TIME}; "
                "until then, requests with avoid_collisions are answered with TIMED_OUT (-6), and "
                "an arm whose stream avoids collisions holds its position"
            )
            self._submit(Build(SCENE_KERNELS, ("--scene",)))

    def await_scene(self, tell: Callable[[str], None]) -> None:
        """Wait until the kernels of collision checks are compiled, and load them.

        Args:
            tell: Function that is called with the reason for the wait.

        Raises:
            SceneError: If the kernels cannot be compiled.
        """
        if self._load_scene():
            return
        tell(f"{SCENE_KERNELS} are being compiled, which takes {SCENE_BUILD_TIME}")
        self.wait()
        if not self._load_scene():
            reason = self._failures.get(SCENE_KERNELS, "the disk cache does not contain them")
            raise SceneError(f"{SCENE_KERNELS} cannot be compiled: {reason}")

    def wait(self) -> None:
        """Wait until all builds are finished."""
        with self._changed:
            self._changed.wait_for(lambda: not self._queue or self._closed.is_set())

    def close(self) -> None:
        """Kill the child process, and drop all queued builds."""
        compile_elsewhere(None)
        with self._changed:
            self._closed.set()
            child = self._child
            self._changed.notify_all()
        if child is not None:
            _signal(child, signal.SIGKILL)  # the child blocks SIGINT and SIGTERM, as the node does

    def _load_scene(self) -> bool:
        """Load the kernels of collision checks from the disk cache, by calling each of them once.

        Returns:
            Whether the cache contains all of them.
        """
        self._is_loading = True
        try:
            warm_up.use_kernels(warm_up.SCENE_USES)
        except MissingKernelError:
            return False
        finally:
            self._is_loading = False
        return True

    def _request(self, missing: MissingKernelError) -> None:
        """Queue the build of a kernel, unless it is already queued or has failed too often.

        Any thread that calls a missing kernel calls this method, while it holds Numba's lock.

        Args:
            missing: Error that describes the kernel.
        """
        key, name = (missing.function, missing.signature), f"the kernel {missing.function.__name__}"
        is_queued = any(build.name == name for build in list(self._queue))
        if self._is_loading or is_queued or self._attempts[key] >= MAX_BUILDS_PER_KERNEL:
            return
        self._attempts[key] += 1
        self._logger.warning(
            f"compiling {name} in another process, which takes up to a minute; until then, "
            "requests that need it are refused"
        )
        self._submit(Build(name, ("--kernel",), warm_up.kernel_name(missing)))

    def _submit(self, build: Build) -> None:
        with self._changed:
            self._queue.append(build)
            if len(self._queue) == 1:
                threading.Thread(target=self._run, name="kernels", daemon=True).start()

    def _run(self) -> None:
        """Run the queued builds one after the other, until the queue is empty."""
        while not self._closed.is_set():
            start, build = time.monotonic(), self._queue[0]
            failure = self._compile(build)
            if self._closed.is_set():
                return
            if failure:
                self._failures[build.name] = failure
                self._logger.error(escape(f"{build.name} cannot be compiled: {failure}"))
            else:
                duration = time.monotonic() - start
                self._logger.info(f"{build.name}: compiled by another process, {duration:.0f} s")
            with self._changed:
                self._queue.pop(0)
                self._changed.notify_all()
                if not self._queue:
                    return

    def _compile(self, build: Build) -> str:
        """Run a build in a child process.

        Returns:
            Reason of a failure; empty if the build has succeeded.
        """
        command = [sys.executable, "-m", warm_up.__name__, *build.arguments]
        try:
            # The output goes to a file, because the children of a killed process would keep a pipe
            # open, and reading the pipe would never end.
            with tempfile.TemporaryFile() as errors:
                with self._changed:
                    if self._closed.is_set():
                        return ""
                    self._child = child = subprocess.Popen(  # noqa: S603  our own module
                        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=errors,
                        start_new_session=True,  # Ctrl-C goes to the node, which stops the child
                    )  # fmt: skip
                with suppress(OSError):
                    os.setpriority(os.PRIO_PGRP, child.pid, NICENESS)
                child.communicate(build.stdin)
                _signal(child, signal.SIGKILL)  # the child's own children may still run
                errors.seek(0)
                stderr = errors.read()
        except OSError as error:
            return str(error)
        finally:
            self._child = None
        lines = stderr.decode(errors="replace").strip().splitlines()
        exit_note = f"python -m {warm_up.__name__} exited with code {child.returncode}"
        return (lines[-1] if lines else exit_note) if child.returncode else ""


def _signal(child: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
    """Send a signal to a child process and its own children."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, number)
