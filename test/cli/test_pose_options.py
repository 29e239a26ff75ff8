"""Poses on the command line: the forms mean the same, and what is none is refused."""

import click
import numpy as np
import pytest
from cli_runner import refusal
from hypothesis import given
from hypothesis import strategies as st

from dls_ik.cli.numbers import parsed_numbers
from dls_ik.cli.pose import given_pose
from dls_ik.cli.pose_text import pose_facts

NUMBERS = st.floats(-3.0, 3.0)
SOLVE = ("solve", "wam")


@given(st.tuples(NUMBERS, NUMBERS, NUMBERS), st.tuples(NUMBERS, NUMBERS, NUMBERS))
def test_all_forms_of_a_pose_are_the_same_pose(xyz, rpy):
    T = given_pose(xyz, rpy, None, None)
    facts = pose_facts(T)
    numbers = [x for row in facts["matrix"] for x in row]
    words = " ".join(map(repr, numbers))
    for again in (
        given_pose(facts["xyz"], facts["rpy"], None, None),
        given_pose(facts["xyz"], None, facts["quat"], None),
        given_pose(None, None, None, parsed_numbers(words, 12, 16)),
        given_pose(None, None, None, tuple(numbers[:12])),
    ):
        np.testing.assert_allclose(again, T, atol=1e-12)


def test_no_option_is_no_pose():
    assert given_pose(None, None, None, None) is None


@pytest.mark.parametrize("words", ["1,2,3", "1 2 3", "[1, 2, 3]", "1;2;3", " 1 , 2 , 3 "])
def test_numbers_in_a_word(words):
    assert parsed_numbers(words, 3) == (1.0, 2.0, 3.0)
    with pytest.raises(click.BadParameter, match="4 or 5 numbers are wanted, not 3"):
        parsed_numbers(words, 4, 5)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "--xyz"),
        (["--rpy", 0, 0, 0], "--rpy goes with --xyz"),
        (["--quat", 0, 0, 0, 1], "--quat goes with --xyz"),
        (["--xyz", 1, 2], "--xyz"),
        (["--xyz", 1, 2, "nan"], "finite"),
        (["--xyz", 1, 2, "inf"], "finite"),
        (["--xyz", 1, 2, "1e300"], "within"),
        (["--xyz", 1, 2, 3, "--quat", 0, 0, 0, 0], "no direction"),
        (["--xyz", 1, 2, 3, "--rpy", 0, 0, 0, "--quat", 0, 0, 0, 1], "not both"),
        (["--xyz", 1, 2, 3, "--matrix", "1"], "12 or 16 numbers"),
        (["--matrix", "1 0 0 0 0 1 0 0 0 0 1 x"], "'x'"),
        (["--matrix", "2 0 0 0 0 1 0 0 0 0 1 0"], "rotation"),
        (["--matrix", "1 0 0 0 0 1 0 0 0 0 1 0 1 1 1 1"], "last row"),
    ],
)
def test_bad_poses_are_one_line(arguments, said):
    assert said in refusal(*SOLVE, *arguments)
