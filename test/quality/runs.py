# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tests run in processes of their own, on a copy of the tree whose files may be mutants."""

import contextlib
import filecmp
import importlib.util
import multiprocessing
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(["numba", "pytest", "hypothesis", "numpy.testing"])
LEAST, FACTOR = 20, 5  # minimum [s] of processor time, and factor of the tests' time


# Copies of the tree


def files(root: Path) -> list[str]:
    """List the files that git tracks, or would add."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [name for name in listed.stdout.split("\0") if name and (root / name).is_file()]


def update_copy(root: Path, to: Path) -> Path:
    """Update a copy; unchanged files keep their compiled kernels."""
    names = files(root)
    for name in names:
        if not (to / name).is_file() or not filecmp.cmp(root / name, to / name, shallow=False):
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, to / name)
    for stale in {str(p.relative_to(to)) for p in to.rglob("*.py")} - set(names):
        (to / stale).unlink()
    return to


@contextlib.contextmanager
def replaced(path: Path, code: str) -> Iterator[None]:
    """Replace the code of a file for a while; restore it with its times."""
    aside = path.with_suffix(".aside")
    shutil.copy2(path, aside)
    try:
        path.write_text(code)
        _forget(path)
        yield
    finally:
        shutil.move(aside, path)
        _forget(path)


def _forget(path: Path) -> None:
    """Remove a cached module: Python knows it by seconds and size, which mutants may share."""
    Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)


# Runs


class RunEnd(NamedTuple):
    """End of a run of tests."""

    passed: bool
    timed_out: bool = False


def run_tests(tree: Path, tests: list[str], plain: bool, seconds: float) -> RunEnd:
    """Run tests of a tree until one fails; `seconds` is their usual time."""
    limit = int(LEAST + FACTOR * seconds)
    run = SERVER.Process(target=_run, args=(str(tree), tests, plain, limit))
    run.start()
    run.join(20 * limit)  # wall-clock time, for tests that only wait
    late = run.is_alive() or run.exitcode in (-signal.SIGXCPU, -signal.SIGKILL)
    _end(run.pid)
    run.join()
    return RunEnd(run.exitcode == 0, late)


def _end(group: int) -> None:
    """Kill the tests and their children."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def _run(tree: str, tests: list[str], plain: bool, limit: int) -> None:
    import numba
    import pytest

    os.setpgrp()
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
    os.chdir(tree)
    _silence()
    sys.path[:0] = [tree, f"{tree}/test"]
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)
    if plain:
        os.environ["NUMBA_DISABLE_JIT"] = "1"
        numba.config.DISABLE_JIT = True
    sys.dont_write_bytecode = False  # all but the mutant is the same next time
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly"]
    code = int(pytest.main([*options, "--rootdir", tree, *tests]))
    sys.stdout.flush()
    os._exit(code)


def _silence() -> None:
    log = os.open("last_run.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    null = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((null, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
