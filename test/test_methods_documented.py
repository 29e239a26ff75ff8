# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""docs/methods.md has an entry for everything that has a name, and for nothing else."""

from __future__ import annotations

import re
from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest

import dls_ik
from dls_ik.core import damping, damping_policies, error_clamping, limits, objectives, step_bounds
from dls_ik.reproduce.colome_torras_table_v import TABLE_V_METHODS
from dls_ik.solver.options import SolverOptions

ROOT = Path(__file__).resolve().parents[1]
METHODS_PAGE, REFERENCES = ROOT / "docs" / "methods.md", ROOT / "docs" / "references.md"
NAMED = {
    "Methods by name": dls_ik.method_names(),
    "Damping-factor policies": damping_policies.POLICY_IDS,
    "Null-space objectives": objectives.OBJECTIVE_IDS,
    "Error bounds": error_clamping.CLAMPING_IDS,
    "Step bounds": step_bounds.STEP_BOUND_IDS,
}
OPTIONS = {option.name: option for option in fields(SolverOptions)}
KEY = re.compile(
    r"[A-Z][a-z][\w-]*(?:(?:, [A-Z][\w-]+)* & [A-Z][\w-]+| et al\.)? (?:19|20)\d\d\b"
)  # such as "Mayorga, Wong & Milano 1992"


@cache
def section(title: str) -> str:
    """The text under a heading of the second level."""
    parts = re.split(r"^## (.+)\n", METHODS_PAGE.read_text(), flags=re.MULTILINE)
    found = dict(zip(parts[1::2], parts[2::2], strict=True))
    return found[title]


def entries(title: str) -> list[tuple[str, str]]:
    """The names and the texts of a section's entries."""
    parts = re.split(r"^### `(.+)`\n", section(title), flags=re.MULTILINE)
    return list(zip(parts[1::2], parts[2::2], strict=True))


def line(text: str, label: str) -> str:
    """What an entry says after a label."""
    found = re.findall(rf"^- {label}: (.+)$", text, flags=re.MULTILINE)
    assert len(found) == 1, (label, text)
    return str(found[0])


def reference_keys() -> set[str]:
    return set(re.findall(r"^\| ([^|]+?) \| ", REFERENCES.read_text(), flags=re.MULTILINE))


@pytest.mark.parametrize("title", NAMED)
def test_every_name_has_one_entry_with_formula_sources_and_options(title: str) -> None:
    assert sorted(name for name, _ in entries(title)) == sorted(NAMED[title])
    known = reference_keys()
    for name, text in entries(title):
        assert re.search(r"`|\$", text.split("\n- Source:")[0]), name
        for source in line(text, "Source").split("; "):
            assert any(source == key or source.startswith(f"{key}, ") for key in known), source
        said = line(text, "Options")
        named = re.findall(r"`(\w+)`", said)
        assert set(named) <= set(OPTIONS), name
        assert named or said == "none", name


@pytest.mark.parametrize("title", ["Methods by name", *list(NAMED)[1:3]])
def test_entry_says_when_to_use_it(title: str) -> None:
    for _, text in entries(title):
        assert line(text, "Use it")


def test_long_names_and_sources_of_methods_are_those_of_their_table() -> None:
    for info in dls_ik.method_table():
        text = dict(entries("Methods by name"))[info.name]
        assert line(text, "Source") == info.source
        assert text.startswith(f"\n**{info.long_name[0].upper()}{info.long_name[1:]}.**\n")


def test_parts_of_names_are_listed() -> None:
    text = section("How names combine").partition("`jp` is the default law")[0]
    words = {word for cell in re.findall(r"`([^`]+)`", text) for word in cell.split("+")}
    parts = {
        *damping.DAMPING_IDS,
        *limits.LIMIT_IDS,
        *error_clamping.CLAMPING_IDS,
        *step_bounds.STEP_BOUND_IDS,
    } - {
        "none",
        "active",
        "svf+ed",
    }
    assert parts | {"dls", "odls", "jp_near"} <= words
    assert words <= parts | {"dls", "odls", "jp_near", "+"} | {""}


def test_rows_of_table_v_are_those_of_their_methods() -> None:
    text = (ROOT / "docs" / "lab" / "table_v.md").read_text().partition("## As meant\n")[2]
    rows = re.findall(r"^\| `([\w+]+)`", text.partition("\n## ")[0], re.MULTILINE)
    assert sorted(rows) == sorted(TABLE_V_METHODS)


@pytest.mark.parametrize("call", re.findall(r"`(Task\(.*?\)|Task\.\w+\(.*?\))`", section("Tasks")))
def test_task_of_the_page_has_the_rows_it_says(call: str) -> None:
    rows = re.findall(rf"^\| `{re.escape(call)}` \| (\d) \|", section("Tasks"), re.MULTILINE)
    assert eval(call, {"Task": dls_ik.Task}).rows == int(rows[0])


def test_links_within_the_page_lead_somewhere() -> None:
    text = METHODS_PAGE.read_text()
    targets: list[str] = []
    for heading in re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE):
        slug = re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
        count = sum(
            re.fullmatch(rf"{re.escape(slug)}(-\d+)?", other) is not None for other in targets
        )
        targets.append(f"{slug}-{count}" if count else slug)
    assert set(re.findall(r"\]\(#([^)]+)\)", text)) <= set(targets)


@pytest.mark.parametrize("page", [METHODS_PAGE, ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
def test_files_that_a_page_links_to_exist(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_sources_that_docstrings_name_are_references() -> None:
    known = reference_keys()
    for file in (ROOT / "dls_ik").rglob("*.py"):
        text = re.sub(r"[\s#]+", " ", file.read_text())
        for key in KEY.findall(text):
            assert key in known, f"{file}: {key}"
