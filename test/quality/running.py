"""Tests run in a process apart, which is cheap: it begins with the libraries imported."""

import contextlib
import multiprocessing
import os
import resource
import signal
import sys
from pathlib import Path
from typing import NamedTuple

SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(["numba", "pytest", "hypothesis", "numpy.testing"])
LEAST, FACTOR = 20, 5  # [s] of processor time, and times what the tests take


class Outcome(NamedTuple):
    """How a run of tests ended."""

    passed: bool
    timed_out: bool = False


def outcome(tree: Path, tests: list[str], plain: bool, seconds: float) -> Outcome:
    """Run tests of a tree until one fails; `seconds` is what they take when all is well."""
    limit = int(LEAST + FACTOR * seconds)
    run = SERVER.Process(target=_run, args=(str(tree), tests, plain, limit))
    run.start()
    run.join(20 * limit)  # of the clock: for what waits and does not work
    late = run.is_alive() or run.exitcode in (-signal.SIGXCPU, -signal.SIGKILL)
    _end(run.pid)
    run.join()
    return Outcome(run.exitcode == 0, late)


def _end(group: int) -> None:
    """End what the tests have started too."""
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
    options = ["-x", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0"]
    code = int(pytest.main([*options, "--rootdir", tree, *tests]))
    sys.stdout.flush()
    os._exit(code)


def _silence() -> None:
    log = os.open("last_run.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    null = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((null, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
