# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tests that leave global state behind fail and leave later tests alone; a seed orders them."""

import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest
from isolation import CONFTEST_FILES
from robots import ROOT

LEAKS = {
    "registry": ("register_method('left', print)", "dls_ik.solver.plugins._PLUGINS"),
    "replaced": ("plugins._PLUGINS = {}", "dls_ik.solver.plugins._PLUGINS"),
    "added": ("os.environ['LEFT'] = '1'", "environment variable LEFT: '1', before None"),
    "removed": ("del os.environ['HOME']", "environment variable HOME: None"),
    "folder": ("os.chdir('/')", "working directory /, before"),
    "path": ("sys.path.append('/left')", "sys.path: "),
    "thread": ("threading.Thread(target=stop.wait).start()", "> runs"),
    "process": ("subprocess.Popen([sys.executable, '-c', 'input()'], stdin=-1)", "runs: "),
}
HEADER = """
import os, random, subprocess, sys, threading
import numpy as np
from dls_ik.solver import plugins
from dls_ik.solver.plugins import register_method
stop = threading.Event()
FOLDER, STATE, PATH = os.getcwd(), random.getstate(), list(sys.path)
"""
LEAK = """
def test_{name}():
    {statement}
"""
LAST = """
def test_zz_restored():
    assert 'left' not in plugins.plugin_names()
    assert os.getcwd() == FOLDER and 'LEFT' not in os.environ and 'HOME' in os.environ
    assert sys.path == PATH and random.getstate() == STATE
    assert np.geterr()['divide'] == 'warn'

def test_zzz_ends_the_thread():
    stop.set()
"""
QUIET = "random.seed(7); np.random.seed(7); np.seterr(divide='raise')"


@pytest.fixture
def run(tmp_path):
    """Runs pytest on a file in a tree with the configuration of this suite."""
    (tmp_path / "test").mkdir()
    for file in CONFTEST_FILES:
        shutil.copy(ROOT / file, tmp_path / file)

    def run(content, *arguments):
        (tmp_path / "test" / "test_it.py").write_text(content)
        report = tmp_path / "report.xml"
        command = [sys.executable, "-m", "pytest", f"--junit-xml={report}", *arguments]
        environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "HOME": str(tmp_path)}
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert report.is_file(), done.stdout + done.stderr
        return done.stdout, list(ET.parse(report).iter("testcase"))

    return run


def test_leaked_global_state_fails_the_test_and_is_restored(run):
    tests = [LEAK.format(name=name, statement=leak) for name, (leak, _) in LEAKS.items()]
    quiet = LEAK.format(name="quiet", statement=QUIET)
    output, cases = run(HEADER + "".join([*tests, quiet]) + LAST, "-o", "isolation_wait=0.1")
    told = {
        case.get("name").removeprefix("test_"): "".join(error.text for error in case.iter("error"))
        for case in cases
    }
    assert {name for name, text in told.items() if text} == set(LEAKS), output
    for name, (_, message) in LEAKS.items():
        assert message in told[name], told[name]


FIVE = "".join(f"def test_{name}(): ...\n" for name in "abcdefghij")


@pytest.mark.parametrize("workers", [(), ("-p", "xdist", "-n", "2", "--dist", "loadfile")])
def test_a_seed_gives_the_same_order_again(run, workers):
    pytest.importorskip("pytest_randomly")

    def order(*arguments):
        output, cases = run(FIVE, "-p", "randomly", *workers, *arguments)
        seed = re.search(r"randomly-seed=(\d+)", output)
        return seed[1], [case.get("name") for case in cases]

    seed, shuffled = order()
    assert shuffled != sorted(shuffled)
    assert order(f"--randomly-seed={seed}") == (seed, shuffled)
