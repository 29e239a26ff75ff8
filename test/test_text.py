"""Text in messages: one printable line, never endless, with names that were probably meant."""

import numpy as np
import pytest

from dls_ik.text import did_you_mean, escape, listing, quoted, suggest_names

STEERS = "x\x1b]0;title\x07\x9b2J\r\n[FATAL] forged\u202e\x00"


@pytest.mark.parametrize("text", ["", "wam", "\u00e4 \u4e2d", "a'b\"c\\d"])
def test_printable_text_is_unchanged(text):
    assert escape(text) == text


def test_control_characters_are_escaped():
    assert escape("a\nb\x1b", keep="\n") == "a\nb\\x1b"
    assert escape(STEERS).isprintable()
    assert listing(["a", STEERS]).isprintable()


def test_the_most_similar_names_are_suggested():
    joints = [f"wam_j{i}" for i in range(1, 8)]
    assert did_you_mean("wamj1", joints) == "did you mean wam_j1?"
    assert did_you_mean("WAM_J7", joints) == "did you mean wam_j7?"
    assert did_you_mean("ab", ["abc", "abd"]) == "did you mean abc or abd?"
    assert did_you_mean("newton", joints) == did_you_mean("", joints) == did_you_mean("a", []) == ""
    assert did_you_mean(STEERS, [STEERS]).isprintable()


def test_suggestions_for_several_words():
    known = ["wam_j1", "wam_j2", "grip"]
    assert suggest_names(["gripp"], known) == "did you mean grip?"
    assert suggest_names(["gripp", "newton"], known) == "gripp: did you mean grip?"
    assert suggest_names(["newton"], known) == "known are wam_j1, wam_j2, grip"


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
