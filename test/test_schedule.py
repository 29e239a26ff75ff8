# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Order of tests for the workers of pytest-xdist, and how pytest-xdist divides them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
WORKERS = 3
CONFTEST = """
import pytest
from schedule import order_tests

def pytest_collection_modifyitems(config, items):
    order_tests(items, getattr(config, "workerinput", {}))

@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    node.workerinput["dist"] = node.config.option.dist
"""
FILES = {  # numbers of early and of other tests
    "test_a.py": (0, 10), "test_b.py": (4, 1), "test_c.py": (2, 5), "test_d.py": (0, 7),
    "test_e.py": (3, 0), "test_f.py": (1, 4), "test_g.py": (0, 3),
}  # fmt: skip
TEST = """
import pytest
{mark}
@pytest.mark.parametrize("k", range({count}))
def test_{name}(k): ...
"""


@pytest.fixture
def run(tmp_path):
    """Return a function that runs the files, and returns the tests in the order of each worker."""
    for name, (early, others) in FILES.items():
        parts = [TEST.format(mark="", count=others, name="quick")] if others else []
        mark = "@pytest.mark.slow"
        parts += [TEST.format(mark=mark, count=early, name="early")] if early else []
        (tmp_path / name).write_text("".join(parts))
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = slow\n")

    def started(dist):
        pytest.importorskip("xdist")
        command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "-p", "xdist"]
        paths = [str(FOLDER), os.environ.get("PYTHONPATH")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        environment |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        done = subprocess.run(
            [*command, "-n", str(WORKERS), "--dist", dist, "--no-loadscope-reorder"],
            cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout
        found = re.findall(r"\[(gw\d)\].* PASSED (\S+)::test_(early|quick)\[", done.stdout)
        assert len(found) == sum(map(sum, FILES.values()))
        return [
            [(file, kind) for worker, file, kind in found if worker == f"gw{k}"]
            for k in range(WORKERS)
        ]

    return started


def test_every_worker_starts_with_early_tests_of_whole_files(run):
    parts = run("worksteal")
    early = [[file for file, kind in part if kind == "early"] for part in parts]
    assert all(part[0][1] == "early" for part in parts)
    for file, (count, _) in FILES.items():
        assert sorted(files.count(file) for files in early) == [0, 0, count], file


def test_files_with_early_tests_come_first_and_keep_their_order(run):
    parts = run("loadfile")
    firsts = {part[0][0] for part in parts}
    assert all(FILES[file][0] for file in firsts)
    for file, (early, others) in FILES.items():
        expected = [(file, "quick")] * others + [(file, "early")] * early
        assert [each for part in parts for each in part if each[0] == file] == expected
