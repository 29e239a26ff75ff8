# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Checks that tests and their modules leave no global state behind, and its restoration.

The state that is compared: the working directory, the environment, ``sys.path``, the names and the
containers of all modules of the package (registries, tables, caches), threads that are not daemons,
and child processes. The states of random generators and of NumPy's errors are only restored.
"""

import gc
import os
import random
import signal
import sys
import threading
import time
from concurrent.futures.thread import _threads_queues  # the threads that Python joins at its end
from contextlib import suppress
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

PACKAGE = "dls_ik"
CONTAINERS = (dict, list, set)
PYTEST_OWN = "PYTEST_CURRENT_TEST"  # differs between the phases of a test
WAIT_OPTION = "isolation_wait"
MAX_WAIT = "60"  # [s]
# Files of the repository that conftest.py needs, for tests that run pytest on other tests.
CONFTEST_FILES = (
    "pyproject.toml",
    *(f"test/{m}.py" for m in ("conftest", "isolation", "schedule")),
)
HELPERS = ("multiprocessing.resource_tracker", "multiprocessing.forkserver")  # kept by Python

# Functions that keep what they find outside of their arguments: a library, a file, entry points.
STATEFUL_CACHES = (
    ("dls_ik.ros.params", "_load_plugin"),
    ("dls_ik.ros.sim_arm.physics_shapes", "mujoco"),
    ("dls_ik.scene.exact", "library"),
    ("dls_ik.solver.plugins", "_load_entry_points"),
)

# Ids of processes that outlive the test or module in which they start, and that fixtures end.
SESSION_PROCESSES: set[int] = set()

# What a command sets for its process, and whether a kernel was compiled or loaded: only restored.
OF_THE_PROCESS = ("dls_ik.solver._said", "dls_ik.solver._say", "dls_ik.solver.search._loaded")


def add_options(parser):
    """Add the options of this module to pytest's configuration."""
    parser.addini(WAIT_OPTION, "time for the end of threads and processes [s]", default=MAX_WAIT)


@pytest.fixture(autouse=True)
def leaves_no_state(pytestconfig):
    """Fail a test that leaves global state behind, and restore the state for later tests."""
    before = GlobalState(pytestconfig.getini(WAIT_OPTION), workers=False)
    yield
    before.check()


@pytest.fixture(scope="module", autouse=True)
def module_leaves_no_state(pytestconfig, private_domain, interruptible):
    """Fail if the fixtures of a module leave global state behind."""
    before = GlobalState(pytestconfig.getini(WAIT_OPTION))
    yield
    before.check()


@pytest.fixture
def own_plugins(monkeypatch):
    """Provide an empty method registry for a test."""
    from dls_ik.solver import plugins  # once the package is found

    monkeypatch.setattr(plugins, "_PLUGINS", {})


class GlobalState:
    """The global state of this process at one time.

    Args:
        wait: time [s] for the end of threads and processes that were told to end.
        workers: whether threads of executors count, which may belong to fixtures of a module.
    """

    def __init__(self, wait, workers=True):
        self.wait, self.workers = float(wait), workers
        self.folder = os.getcwd()
        self.environment = dict(os.environ)
        self.path = list(sys.path)
        self.names, self.contents = {}, {}
        for name, module in package_modules():
            self.names[name], containers = names_of(name, module)
            for key, value in containers:
                self.contents[name, key] = (value, value.copy())
        self.threads = set(threading.enumerate())
        self.children = child_processes()
        self.random = random.getstate(), np.random.get_state(), np.geterr()  # noqa: NPY002

    def check(self):
        """Restore this state, and fail if it had changed."""
        left = [*self._threads(), *self._children(), *self._process(), *self._package()]
        random.setstate(self.random[0])
        np.random.set_state(self.random[1])  # noqa: NPY002
        np.seterr(**self.random[2])
        clear_stateful_caches()
        if left:
            pytest.fail("global state was left behind:\n  " + "\n  ".join(left), pytrace=False)

    def _process(self):
        if not os.path.exists(self.folder):  # a folder that the module's fixtures removed
            return
        if (folder := current_folder()) != self.folder:
            os.chdir(self.folder)
            yield f"working directory {folder}, before {self.folder}"
        environment = dict(os.environ)
        for name in sorted({*environment, *self.environment} - {PYTEST_OWN}):
            before, after = self.environment.get(name), environment.get(name)
            if before != after:
                if before is None:
                    del os.environ[name]
                else:
                    os.environ[name] = before
                yield f"environment variable {name}: {after!r}, before {before!r}"
        if sys.path != self.path:
            after, sys.path[:] = list(sys.path), self.path
            yield f"sys.path: {after}, before {self.path}"

    def _package(self):
        for name, module in package_modules():
            before, found = self.names.get(name), vars(module)
            if before is None or same(found, before):
                continue
            for key, value in before.items():
                if (after := found.get(key)) is not value:
                    found[key] = value
                    if f"{name}.{key}" not in OF_THE_PROCESS:
                        yield f"{name}.{key}: {after!r}, before {value!r}"
        for (name, key), (container, before) in self.contents.items():
            found = self.names[name] if name not in sys.modules else vars(sys.modules[name])
            if (after := found.get(key)) is not container:  # an equal one
                found[key] = container
                yield f"{name}.{key}: another container, {after!r}"
            if not same(container, before):
                after = container.copy()
                container.clear()
                (container.extend if isinstance(container, list) else container.update)(before)
                yield f"contents of {name}.{key}: {after!r}, before {before!r}"

    def _threads(self):
        left = self._new_threads()
        if left:
            gc.collect()  # ends the threads of executors that nobody uses any more
            deadline = time.monotonic() + self.wait
            for thread in left:
                thread.join(max(deadline - time.monotonic(), 0.0))
        for thread in self._new_threads():
            yield f"{thread!r} runs"

    def _new_threads(self):
        return [
            thread
            for thread in threading.enumerate()
            if not thread.daemon
            and thread not in self.threads
            and (self.workers or not is_worker(thread))
        ]

    def _children(self):
        deadline = time.monotonic() + self.wait
        while (left := child_processes() - self.children) and time.monotonic() < deadline:
            time.sleep(0.02)
        for pid in left:
            command = command_line(pid)
            with suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            yield f"process {pid} runs: {command}"


def is_worker(thread):
    """Return whether a thread belongs to an executor of concurrent.futures."""
    return thread in _threads_queues


# Names and containers of each module when a state was last taken: most tests change no module, so
# the search for containers is not repeated.
KNOWN_NAMES: dict[str, tuple[dict, list]] = {}


def names_of(name, module):
    """Return a copy of the names of a module, and the keys and values that are containers."""
    known = KNOWN_NAMES.get(name)
    if known is None or not same(vars(module), known[0]):
        names = vars(module).copy()
        containers = [
            (key, value)
            for key, value in names.items()
            if type(value) in CONTAINERS and not key.startswith("__")
        ]
        known = KNOWN_NAMES[name] = names, containers
    return known


def package_modules():
    """Return the names and modules of the package that are imported."""
    return [
        (name, module)
        for name, module in list(sys.modules.items())  # other threads may import meanwhile
        if (name == PACKAGE or name.startswith(f"{PACKAGE}.")) and isinstance(module, ModuleType)
    ]


def same(one, other):
    """Return whether containers are equal; entries that are the same object are."""
    try:
        return one == other
    except ValueError:  # comparison of arrays
        return False


def clear_stateful_caches():
    """Clear the caches of functions whose results depend on external state."""
    for name, function in STATEFUL_CACHES:
        if name in sys.modules:
            clear = getattr(getattr(sys.modules[name], function), "cache_clear", None)
            if clear is not None:
                clear()


def current_folder():
    """Return the working directory, also if it was removed."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return "a folder that was removed"


def child_processes():
    """Return the ids of running children, without those of the session; empty if unknown."""
    found = set()
    for file in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):
            found.update(map(int, file.read_text().split()))
    return {pid for pid in found - SESSION_PROCESSES if is_left_over(pid)}


def is_left_over(pid):
    """Return whether a child process runs and is not a helper of Python."""
    with suppress(OSError):
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state != "Z" and not any(helper in command_line(pid) for helper in HELPERS)
    return False


def command_line(pid):
    """Return the command of a process."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ").strip()
    return ""
