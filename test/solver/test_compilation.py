# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Compilation: the first process announces it, later processes load kernels silently."""

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from dls_ik import solver
from dls_ik.solver import COMPILING, COMPILING_UNKEPT, LONG_KERNELS, compilation_message

SOLVE = """
import dls_ik
robot = dls_ik.RobotModel.wam()
print(dls_ik.IkSolver(robot).solve(robot.fk([0.1] * 7)).status, flush=True)
"""


GROUPS = ("tasks", "solvers", "control", "steps")  # argument of public_entries.py
SMALL = "fast_*/table.fill-*.nbc"  # kernel of core/fast that every call needs

BEFORE = """
import sys
import numpy as np
from dls_ik.model.robot import RobotModel
from dls_ik.warm_up import use_kernels

def signatures():
    core = [module for name, module in sys.modules.items() if name.startswith("dls_ik.core")]
    kernels = [(k, v) for m in core for k, v in vars(m).items() if hasattr(v, "overloads")]
    return {(name, len(kernel.overloads)) for name, kernel in kernels}

robot = RobotModel.wam()
"""
LIFE = """
from dls_ik.servo import Controller

def cycles(controller, count, begin, measured=None):
    for k in range(count):
        controller.cycle(begin + 0.01 * k, 0.01, measured)

use_kernels()
before = signatures()
q = np.full(robot.n, 0.3)
for options in ({}, {"acceleration": 8.0, "supervised": True}, {"method": "odls"}):
    controller = Controller(robot, **options)
    controller.seed(q)
    cycles(controller, 2, 0.0, q)
    controller.follow_pose(robot.fk(q + 0.05), 0.1)
    cycles(controller, 50, 0.1, q)
    controller.follow_twist(np.full(6, 0.1), 1.0)
    cycles(controller, 50, 1.0)
    controller.follow_trajectory([robot.fk(q), robot.fk(q + 0.02)], 0.05, 2.0)
    cycles(controller, 20, 2.0)
    controller.follow_pose(robot.fk(-q) + 3.0 * np.eye(4, k=3), 3.0)
    cycles(controller, 100, 3.0)
    controller.pause()
    cycles(controller, 10, 5.0)
print(sorted(signatures() - before))
"""


def start(*arguments, **environment):
    root = Path(__file__).resolve().parents[2]
    path = os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, *(arguments or ("-c", SOLVE))],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path, **environment},
    )


def test_compilation_is_announced_when_it_starts(tmp_path):
    process = start(NUMBA_CACHE_DIR=str(tmp_path))
    try:
        assert "compiling kernels" in process.stderr.readline()
        assert process.poll() is None
    finally:
        process.kill()
        process.communicate()


def test_an_old_numba_is_refused_with_a_remedy():
    said = compilation_message("0.58.1")
    assert "0.58.1" in said
    assert said.endswith("pip install 'numba>=0.59'")
    assert {compilation_message(v) for v in ("0.59.0", "0.68.1", "1.0.0rc1")} == {COMPILING}
    assert compilation_message("0.68.1", is_kept=False) == COMPILING_UNKEPT


def test_damaged_and_unsaveable_kernels_are_compiled_and_used(kernel_cache):
    """Each is reported in one log line; kernels on disk are loaded silently."""

    def solve():
        out, err = start(NUMBA_CACHE_DIR=str(kernel_cache)).communicate()
        assert out == "SUCCESS\n"
        return err.splitlines()

    solve()
    for path in kernel_cache.rglob(SMALL):
        path.write_bytes(b"")
    (line,) = solve()
    assert line.startswith(f"compiling kernels again, which takes up to a minute: {kernel_cache}")
    assert line.endswith("is damaged")
    assert solve() == []
    for path in kernel_cache.rglob(SMALL):
        path.unlink()
        path.mkdir()
    read, unwritten = solve()
    assert "Is a directory" in read
    assert f"cannot be kept in {path.parent} (Is a directory)" in unwritten


def test_a_controller_compiles_nothing_after_its_warm_up():
    out, err = start("-c", BEFORE + LIFE).communicate()
    assert (out, err) == ("[]\n", "")


ELSEWHERE = """
import subprocess, sys
import numpy as np
from dls_ik.compat import on_numba_compilation
from dls_ik.core.jit import MissingKernelError, compile_elsewhere
from dls_ik.core.selection import count_pair
from dls_ik.warm_up import kernel_name

asked, compiled, counts = [], [], np.zeros(40, np.int64)
on_numba_compilation(lambda kernel: compiled.append(kernel.py_func.__name__))
compile_elsewhere(asked.append)
try:
    count_pair(counts, 0)
except MissingKernelError as error:
    print(error)
assert len(asked) == 1 and not compiled and not counts.any()
command = [sys.executable, "-m", "dls_ik.warm_up", "--kernel"]
subprocess.run(command, input=kernel_name(asked[0]), check=True)
count_pair(counts, 0)
assert counts.any() and not compiled and len(asked) == 1
"""


def test_a_process_that_must_not_compile_reports_the_missing_kernel(kernel_cache):
    for file in kernel_cache.rglob("selection.count_pair-*"):
        file.unlink()
    process = start("-c", ELSEWHERE, NUMBA_CACHE_DIR=str(kernel_cache))
    out, err = process.communicate()
    assert (process.returncode, err) == (0, "")
    assert "the kernel count_pair is not compiled yet" in out


@pytest.mark.xdist_group("compilation")
@pytest.mark.parametrize("group", GROUPS)
def test_no_public_entry_compiles_after_set_up(group):
    """The process prints the kernels that it compiles or that set-up does not load."""
    for module in ("coal", "PyKDL", "ruckig", "viser"):
        pytest.importorskip(module)
    process = start(Path(__file__).with_name("public_entries.py"), group)
    out, err = process.communicate()
    assert (out, err, process.returncode) == ("", "", 0)


@pytest.mark.compiled
def test_the_compilation_of_a_whole_cycle_is_announced_when_it_starts(monkeypatch):
    """Formerly a node compiled its longest kernel for minutes without a message."""
    import_module("dls_ik.warm_up")  # imports the modules of all kernels
    core = [module for name, module in sys.modules.items() if name.startswith("dls_ik.core")]
    kernels = {k: v for m in core for k, v in vars(m).items() if hasattr(v, "overloads")}
    assert kernels.keys() >= LONG_KERNELS  # each name is that of a kernel
    said = []
    monkeypatch.setattr(solver, "_said", False)
    monkeypatch.setattr(solver, "_say", said.append)
    solver._announce(kernels["run_cycle"])
    assert len(said) == 1
    assert said[0].startswith("compiling kernels")
