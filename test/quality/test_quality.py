# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The tools that judge tests: records of coverage, mutants, runs, and tables."""

import contextlib
import os
from pathlib import Path

import pytest

from quality.covering import Covering, mode, node_id, passed, statement, varied, within
from quality.packages import by_package, ranges
from quality.runs import RunEnd, replaced, run_tests
from quality.verdicts import changed_lines, explained, is_same

ROOT = Path(__file__).parents[2]
SOURCE = """\
LIMIT = 1.0

def least(values):
    best = max(
        values,
        LIMIT,
    )
    for value in (
        values
    ):
        best = min(best, value)
    return best
"""
REPORT = """\
<testsuites><testsuite>
<testcase classname="test.core.test_a" name="test_b[x-1]" time="0.5" />
<testcase classname="test.core.test_a" name="test_c" time="0.1"><failure /></testcase>
<testcase classname="test.core.test_a" name="test_d" time="2"><system-out>b</system-out></testcase>
</testsuite></testsuites>
"""


def written(path, text):
    path.write_text(text)
    return path


def test_statement_range_covers_all_its_lines(tmp_path):
    path = written(tmp_path / "source.py", SOURCE)
    assert statement(path, 1) == range(1, 2)
    assert [statement(path, line) for line in (4, 6, 7)] == [range(4, 8)] * 3


def test_statement_range_of_a_loop_is_its_header(tmp_path):
    path = written(tmp_path / "source.py", SOURCE)
    assert statement(path, 9) == range(8, 11)
    assert statement(path, 11) == range(11, 12)


def test_passed_omits_failed_tests(tmp_path):
    times = passed(written(tmp_path / "report.xml", REPORT))
    assert times == {"test/core/test_a.py::test_b[x-1]": 0.5, "test/core/test_a.py::test_d": 2.0}
    assert node_id("test.a.test_b.TestC", "test_d[1]") == "test/a/test_b.py::TestC::test_d[1]"


def test_varied_puts_other_tests_before_further_cases():
    times = {"a[1]": 0.1, "a[2]": 0.2, "b[1]": 3.0, "c": 0.3}
    assert list(varied(times, times)) == ["a[1]", "c", "b[1]", "a[2]"]


def test_within_selects_tests_up_to_the_time_but_at_least_one():
    times = {"a": 1.0, "b": 5.0, "c": 0.5}
    assert within(2.0, times, times) == ["a", "c"]
    assert within(0.0, times, times) == ["a"]
    assert within(1.0, [], times) == []


def test_lines_run_at_import_are_covered_by_all_tests(tmp_path):
    covering = Covering.__new__(Covering)
    covering.root, covering.times = tmp_path, {"compiled": {"t::a": 0.1, "t::b": 0.2}}
    covering.contexts = lambda path: {1: set(), 11: {"t::b"}, 12: {"t::a"}}
    written(tmp_path / "source.py", SOURCE)
    assert covering.tests("source.py", 1, 9.0) == ["t::a", "t::b"]
    assert covering.tests("source.py", 11, 9.0) == ["t::b"]


def test_explained_mutants_refer_to_existing_lines():
    for (file, old, _), why in explained().items():
        lines = " ".join(line.strip() for line in (ROOT / file).read_text().splitlines())
        assert old in lines, f"{file} has no line {old!r} any more: take it out of equivalent.toml"
        assert why


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("if half < 1e150:", "if half < 1e+150:", True),
        ("if half < 1e15:", "if half < 1000000000000001.0:", False),
        ("n = q.shape[0]", "n = q.shape[ -1]", True),
        ("n = q.shape[0]", "n = q.shape[1]", False),
        ("n = q[0]", "n = q[ -1]", False),
        ("n = q.shape[1]", "n = q.shape[ -1]", False),
        ("x = 2", "x = 3", False),
        ("e1 = x", "e2 = x", False),
    ],
)
def test_is_same_detects_equivalent_changes(old, new, same):
    assert is_same(old, new) is same


# Mutants


@pytest.fixture
def mutants():
    return pytest.importorskip("quality.mutants", reason="needs cosmic_ray")


def test_each_mutant_is_another_program(mutants):
    path = "dls_ik/core/error_clamping.py"
    right = (ROOT / path).read_text()
    wrong = [mutant.code(ROOT) for mutant in mutants.mutants(ROOT, path)]
    assert len(wrong) > 20
    assert right not in wrong
    for mutant, code in zip(mutants.mutants(ROOT, path), wrong, strict=True):
        compile(code, path, "exec")
        old, new = changed_lines(right, code)
        assert old != new
        assert old in right.splitlines()[mutant.line - 1]


def test_left_out_files_exist_and_have_no_mutants(mutants):
    assert all((ROOT / path).is_file() for path in mutants.LEFT_OUT)
    assert all(mutants.mutants(ROOT, path) == [] for path in mutants.LEFT_OUT)


def test_kernels_are_run_as_plain_python():
    assert mode("dls_ik/core/error_clamping.py") == "plain"
    assert mode("dls_ik/solver/solver.py") == "compiled"


# Runs

RIGHT = "def double(x):\n    return x * 2\n"
TEST = "from tried import double\n\ndef test_zero():\n    assert double({}) == {}\n"


def tree(folder, value):
    """A program, and a test of it by one value."""
    (folder / "tried.py").write_text(RIGHT)
    (folder / "test_tried.py").write_text(TEST.format(value, 2 * value))
    return folder


@pytest.mark.parametrize(("value", "noticed"), [(3, True), (2, False)])
def test_run_tests_fails_for_a_mutant_only_if_a_test_detects_it(tmp_path, value, noticed):
    folder = tree(tmp_path, value)
    path, tests = folder / "tried.py", ["test_tried.py"]
    assert run_tests(folder, tests, plain=True, seconds=10.0) == RunEnd(True)
    with replaced(path, RIGHT.replace("*", "+")):  # equal length, in the same second
        assert run_tests(folder, tests, plain=True, seconds=10.0) == RunEnd(not noticed)
    assert run_tests(folder, tests, plain=True, seconds=10.0) == RunEnd(True)


def test_replaced_restores_the_file_after_an_interrupt(tmp_path):
    path = tree(tmp_path, 1) / "tried.py"
    os.utime(path, ns=(10**18, 10**18))
    with contextlib.suppress(KeyboardInterrupt), replaced(path, "broken"):
        assert path.read_text() == "broken"
        raise KeyboardInterrupt
    assert path.read_text() == RIGHT
    assert path.stat().st_mtime_ns == 10**18
    assert not list(tmp_path.glob("*.aside"))


def test_lines_are_counted_by_package():
    file = {"summary": {"num_statements": 10, "covered_lines": 8}}
    names = ("dls_ik/core/fast/step.py", "dls_ik/core/search.py", "dls_ik/errors.py")
    rows = by_package(dict.fromkeys(names, file))
    assert rows == {"dls_ik": [10, 8], "dls_ik/core": [20, 16]}
    assert ranges([1, 2, 3, 7, 9, 10]) == "1-3, 7, 9-10"
