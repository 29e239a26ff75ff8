# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""``dls-ik methods``: all names, and selected ones."""

import re
from dataclasses import fields
from pathlib import Path

from cli_runner import document, refusal, run

from dls_ik import method_names, method_table
from dls_ik.solver.options import SolverOptions
from dls_ik.solver.references import keys_of


def test_every_method_is_listed_and_shown_in_any_width():
    assert [each["name"] for each in document("methods")] == [*method_names()]
    lines = run("methods", columns=60).stdout.splitlines()
    assert max(map(len, lines)) <= 60
    names = {line.split()[0] for line in lines if line and not line.startswith(" ")}
    assert set(method_names()) <= names


def test_named_methods_are_described_or_suggested():
    (found,) = document("methods", "SVF+jc")
    assert found["name"] == "jc+svf"
    assert found["long_name"] == "joint clamping + singular value filtering"
    assert "did you mean ctp?" in refusal("methods", "ctv")


def test_options_flag_lists_defaults_and_valid_values():
    lines = run("methods", "--options", columns=200).stdout.splitlines()
    rows = {line.split()[0]: line for line in lines if line}
    assert {each.name for each in fields(SolverOptions)} <= rows.keys()
    assert rows["timeout"].endswith("maximum time for one pose [s]; default 0.05, values 0 to 3600")
    assert rows["rotation_error"].endswith("; default vector, values vector, sine")
    assert "--options cannot be combined" in refusal("methods", "--options", "svf")


def test_bibtex_flag_prints_the_papers_of_methods():
    text = run("methods", "--bibtex", "svf+ed", "jc+sdls").stdout
    keys = re.findall(r"^@\w+\{(\w+),$", text, re.MULTILINE)
    assert keys == ["colometorras2012", "busskim2004", "raunhardtboulic2007"]
    assert text.count("{") == text.count("}")
    assert "doi = {10.1080/2151237X.2005.10129202}" in text
    for each in method_table():
        assert keys_of(each.name) or each.name not in method_names()
    pages = (Path(__file__).parents[2] / "docs" / "references.md").read_text()
    for title in re.findall(
        r"  title = \{\{(.*)\}\},$", run("methods", "--bibtex").stdout, re.MULTILINE
    ):
        assert title.lower() in pages.lower()
