"""Wrong programs for the command itself: what it must notice, and leave as it was."""

import contextlib
import os

import pytest

from quality.packages import by_package, ranges
from quality.running import Outcome, outcome
from quality.tree import written

RIGHT = "def double(x):\n    return x * 2\n"
TEST = "from tried import double\n\ndef test_zero():\n    assert double({}) == {}\n"


def tree(folder, value):
    """A program, and a test of it by one value."""
    (folder / "tried.py").write_text(RIGHT)
    (folder / "test_tried.py").write_text(TEST.format(value, 2 * value))
    return folder


@pytest.mark.parametrize(("value", "noticed"), [(3, True), (2, False)])
def test_a_wrong_program_is_noticed_by_tests_that_can(tmp_path, value, noticed):
    folder = tree(tmp_path, value)
    path, tests = folder / "tried.py", ["test_tried.py"]
    assert outcome(folder, tests, plain=True, seconds=10.0) == Outcome(True)
    with written(path, RIGHT.replace("*", "+")):  # as long as the right one, in the same second
        assert outcome(folder, tests, plain=True, seconds=10.0) == Outcome(not noticed)
    assert outcome(folder, tests, plain=True, seconds=10.0) == Outcome(True)


def test_a_file_is_left_as_it_was(tmp_path):
    path = tree(tmp_path, 1) / "tried.py"
    os.utime(path, ns=(10**18, 10**18))
    with contextlib.suppress(KeyboardInterrupt), written(path, "broken"):
        assert path.read_text() == "broken"
        raise KeyboardInterrupt
    assert path.read_text() == RIGHT
    assert path.stat().st_mtime_ns == 10**18
    assert not list(tmp_path.glob("*.aside"))


def test_lines_are_counted_by_package():
    file = {"summary": {"num_statements": 10, "covered_lines": 8}}
    names = ("dls_ik/core/fast/step.py", "dls_ik/core/attempt.py", "dls_ik/errors.py")
    rows = by_package(dict.fromkeys(names, file))
    assert rows == {"dls_ik": [10, 8], "dls_ik/core": [20, 16]}
    assert ranges([1, 2, 3, 7, 9, 10]) == "1-3, 7, 9-10"
