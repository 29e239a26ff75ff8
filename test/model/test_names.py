"""Names and values in messages: one line, never endless."""

import numpy as np
import pytest

from dls_ik.text import quoted


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("a'b", '"a\'b"'),
        ("line\nline", r"'line\nline'"),
        (10**5000, "a very large int"),
        ([1, 10**5000], "a very large list"),
        (np.eye(2), "array([[1., 0.], [0., 1.]])"),
    ],
    ids=["quote", "two lines", "huge", "huge in a list", "array"],
)
def test_quoted(given, shown):
    assert quoted(given) == shown


def test_the_middle_of_a_long_one_is_left_out():
    assert quoted("x" * 1000, 20) == "'xxxxxxxxx...xxxxxxxxx'"


def test_a_list_in_itself():
    deep = []
    for _ in range(100_000):
        deep = [deep]
    assert quoted(deep) == "a very large list"
