# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""scripts/setup: its sets of requirements, and the files that it keeps once."""

import importlib.util
import re
import subprocess

import pytest
from robots import ROOT

SPEC = importlib.util.spec_from_file_location("slim", ROOT / "scripts" / "slim.py")
slim = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(slim)

SETUP = ROOT / "scripts" / "setup"
LARGE = b"x" * slim.SMALLEST


def sets(name):
    """The files of requirements/ that a set of scripts/setup adds, for wheels and elsewhere."""
    found = re.findall(rf"{name}_set=\((.*)\)", SETUP.read_text())
    return [[word for word in words.split() if not word.startswith('"')] for words in found]


def test_sets_name_files_that_exist():
    for name in ("core", "demo", "full"):
        wheels, distribution = sets(name)
        for file in (*wheels, *distribution):
            assert (ROOT / "requirements" / f"{file}.txt").is_file()


def test_the_demonstration_needs_no_file_of_tests_documentation_or_extras():
    small = {file for name in ("core", "demo") for words in sets(name) for file in words}
    assert small == {"core", "install", "demo", "ros", "distribution"}


@pytest.mark.parametrize("words", [["--bogus"], ["--demo", "--browser"]])
def test_other_options_are_refused_before_anything_is_done(words):
    result = subprocess.run([SETUP, *words], capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "the options are --demo and --browser" in result.stderr


def test_equal_files_are_stored_once_and_replaced_one_by_one(tmp_path):
    names = ("a.so", "b.so", "c.so")
    for name in names:
        (tmp_path / name).write_bytes(LARGE)
    (tmp_path / "other.so").write_bytes(b"y" * slim.SMALLEST)
    (tmp_path / "small").write_bytes(b"x")
    (tmp_path / "small_too").write_bytes(b"x")
    (tmp_path / "link.so").symlink_to("a.so")
    for _ in range(2):
        slim.link_equal_files(tmp_path)
        assert len({(tmp_path / name).stat().st_ino for name in names}) == 1
        assert (tmp_path / "small").stat().st_nlink == 1
        assert (tmp_path / "link.so").is_symlink()
        assert (tmp_path / "other.so").read_bytes()[:1] == b"y"
        assert len(list(tmp_path.iterdir())) == 7
    (tmp_path / "a.so").unlink()
    assert (tmp_path / "b.so").read_bytes() == LARGE


def test_files_of_another_mode_stay_apart(tmp_path):
    for name, mode in (("program", 0o755), ("library", 0o644)):
        (tmp_path / name).write_bytes(LARGE)
        (tmp_path / name).chmod(mode)
    assert slim.equal_files(tmp_path) == []


def test_tests_of_some_packages_are_removed_and_nothing_else(tmp_path):
    for folder in ("numpy/tests", "numpy/lib/tests", "numpy/testing", "own/tests"):
        (tmp_path / folder).mkdir(parents=True)
    slim.remove_tests(tmp_path)
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")}
    assert left == {"numpy", "numpy/lib", "numpy/testing", "own", "own/tests"}
