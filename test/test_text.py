# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tests of text in messages: one printable line of bounded length, with similar names."""

import numpy as np

from dls_ik.text import did_you_mean, elapsed, escape, listing, quoted, span, suggest_names

STEERS = "x\x1b]0;title\x07\x9b2J\r\n[FATAL] forged\u202e\x00"


def test_control_characters_are_escaped_and_nothing_else():
    for text in ("", "wam", "\u00e4 \u4e2d", "a'b\"c\\d"):
        assert escape(text) == text
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


def test_suggest_names_handles_several_words():
    known = ["wam_j1", "wam_j2", "grip"]
    assert suggest_names(["gripp"], known) == "did you mean grip?"
    assert suggest_names(["gripp", "newton"], known) == "gripp: did you mean grip?"
    assert suggest_names(["newton"], known) == "known are wam_j1, wam_j2, grip"


def test_quoted_escapes_and_shortens_values():
    deep = []
    for _ in range(100_000):
        deep = [deep]
    for given, shown in [
        ("a'b", '"a\'b"'),
        ("line\nline", r"'line\nline'"),
        (10**5000, "a very large int"),
        ([1, 10**5000], "a very large list"),
        (deep, "a very large list"),
        (np.eye(2), "array([[1., 0.], [0., 1.]])"),
    ]:
        assert quoted(given) == shown
    assert quoted("x" * 1000, 20) == "'xxxxxxxxx...xxxxxxxxx'"


def test_times_are_told_in_the_unit_that_a_person_would_use():
    assert elapsed(0.26) == "0.26 s"
    assert elapsed(3600.0) == "3600 s"
    assert elapsed(7200.0) == "2 hours"
    assert elapsed(3 * 86_400.0) == "3 days"
    assert elapsed(1.8e9) == "57 years"
    assert elapsed(1e300).endswith("years")


def test_a_range_of_one_value_is_told_as_one():
    assert span([8.0, 8.0], "Hz") == "8 Hz"
    assert span([8.0001, 8.0], "Hz") == "8 Hz"
    assert span([2.5, 8.0, 4.0], "Hz") == "2.5 to 8 Hz"
