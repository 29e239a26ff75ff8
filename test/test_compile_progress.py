# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Progress of a compilation: which kernels are done, and an estimate of the time left."""

import io
import os
import pty
import subprocess
import sys
from contextlib import suppress
from importlib import import_module

import pytest
from programs import run_python

pytest.importorskip("numba")

from dls_ik import warm_up
from dls_ik.compile_progress import (
    CORE_PREFIX,
    TYPICAL_TIMES,
    CompileProgress,
    typical_time,
    wait_and_report,
)

KERNELS = [kernel for times in TYPICAL_TIMES.values() for kernel in times]
TOTAL = sum(map(typical_time, KERNELS))
USE = """
import sys
from dls_ik.compile_progress import KernelEvents
from dls_ik.warm_up import _robot

events = KernelEvents(["_solve_fast"], sys.stdout)
_robot().fk([0.5, 0.5])
events.tell_done()
"""


def progress(expected=KERNELS):
    found = CompileProgress(0.0, processes=2)
    for kernel in expected:
        found.take(f"expected {kernel}\n", 0.0)
    return found


def test_kernels_and_uses_of_the_table_exist():
    assert set(TYPICAL_TIMES) == {use.__name__ for use in warm_up.USES}
    for kernel in KERNELS:
        module, _, function = kernel.rpartition(".")
        assert callable(getattr(import_module(CORE_PREFIX + module), function, None)), kernel
    assert len(set(KERNELS)) == len(KERNELS)


@pytest.mark.compiled
def test_process_reports_compiled_and_loaded_kernels(tmp_path):
    forward = "kinematics.forward"
    for starts in ([f"started {forward}"], []):  # compiled, then loaded from the cache
        done = run_python("-c", USE, NUMBA_CACHE_DIR=str(tmp_path))
        assert done.returncode == 0, done.stderr
        events = done.stdout.splitlines()
        assert {f"expected {kernel}" for kernel in TYPICAL_TIMES["_solve_fast"]} <= set(events)
        assert [each for each in events if each.startswith("started")] == starts
        assert [each for each in events if each.startswith("done")] == [f"done {forward}"]


def test_time_left_is_typical_at_first_and_then_follows_the_speed():
    """Each of two processes takes three times as long as it typically does."""
    found, now = progress(), 0.0
    assert found.time_left(0.0) == pytest.approx(0.5 * TOTAL)
    halfway = 0.0
    for kernel in KERNELS:
        found.take(f"started {kernel}", now)
        now += 0.5 * 3.0 * typical_time(kernel)
        found.take(f"done {kernel}", now)
        if now > 0.5 * 1.5 * TOTAL and not halfway:
            halfway = found.time_left(now) / (1.5 * TOTAL - now)
    assert halfway == pytest.approx(1.0, rel=0.2)
    assert found.line(now) == ""


def test_progress_line_counts_the_kernels_of_all_processes():
    found = progress(["a.one", "a.two"])
    for event in (
        "started a.one",
        "started b.new",
        "done a.one",
        "done a.one",
        "done b.new",
        "",
        "x",
    ):
        found.take(event, 1.0)
    assert found.line(1.0) == "compiling kernels: 2 of 3 done, a few seconds left"
    found = progress(KERNELS[:4])
    assert found.line(0.0) == "compiling kernels: 0 of 4 done, about 10 s left"


def test_time_left_does_not_rise_while_a_long_kernel_compiles():
    found = progress()
    found.take("started kinematics.forward", 0.0)
    found.take("done kinematics.forward", 9.0)  # ten times its typical time
    found.take("started follow.follow", 9.0)
    left = [found.time_left(now) for now in (9.0, 20.0, 60.0, 600.0)]
    assert left == sorted(left, reverse=True)
    assert left[0] > 0.5 * TOTAL > 0.0


class AnsweringStream(io.StringIO):
    """Lets the processes go on once a line was printed."""

    def __init__(self, processes):
        super().__init__()
        self._processes = processes

    def write(self, text):
        for process in self._processes:
            if not process.stdin.closed:
                process.stdin.close()
        return super().write(text)


def test_lines_appear_while_processes_compile_and_their_exit_codes_are_returned():
    program = (
        "import sys; print('expected follow.follow', flush=True); sys.stdin.read(); sys.exit({})"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program.format(code)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for code in (0, 3)
    ]  # fmt: skip
    stream = AnsweringStream(processes)
    assert wait_and_report(processes, stream, period=0.05) == [0, 3]
    first = stream.getvalue().splitlines()[0]
    assert first.startswith("compiling kernels: 0 of 1 done, about ")
    for process in processes:
        process.stdout.close()


BUILD = """
import os, pty, sys
_, captured = pty.openpty()
os.dup2(captured, 1)
from dls_ik.compile_progress import open_terminal
print("compiling", file=open_terminal(), flush=True)
"""


def test_progress_appears_on_the_terminal_if_a_build_captures_output():
    """colcon gives a build a pseudo-terminal of its own, and writes what it reads to a file."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-c", BUILD])
    shown = b""
    with suppress(OSError):  # the end of a terminal on Linux
        while chunk := os.read(terminal, 1000):
            shown += chunk
    assert os.waitpid(pid, 0)[1] == 0, shown
    os.close(terminal)
    assert shown.split() == [b"compiling"]
