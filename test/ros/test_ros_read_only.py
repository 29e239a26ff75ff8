"""Which parameters may change while an arm moves, as docs/security.md has it."""

import re
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="needs rclpy")

from dls_ik.ros.params import DECLARED

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "security.md").read_text()
ROWS = re.findall(r"^\| (`.*`) \| (read-only|live) \|", TEXT, re.MULTILINE)
LISTED = {name: mark for names, mark in ROWS for name in re.findall(r"`(\w+)`", names)}


def test_every_parameter_is_listed_as_it_is_declared():
    marks = {name: field.metadata["read_only"] for name, field in DECLARED.items()}
    assert LISTED == {name: "read-only" if fixed else "live" for name, fixed in marks.items()}


@pytest.mark.parametrize("words", ["output", "acceleration", "jerk", "deviation", "feedback_mode"])
def test_what_could_harm_an_arm_is_fixed(words):
    found = [name for name in DECLARED if words in name]
    assert found
    assert all(DECLARED[name].metadata["read_only"] for name in found)
