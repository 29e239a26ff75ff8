"""What several files say about the version, and about what the package runs with, agrees."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import yaml

import dls_ik
from dls_ik.solver import OLDEST_NUMBA

ROOT = Path(__file__).resolve().parents[1]
SETUP = (ROOT / "setup.py").read_text()
VERSION = ET.parse(ROOT / "package.xml").findtext("version")
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text())


def lower_bound(package: str) -> tuple[int, ...]:
    found = re.search(rf'"{package}>=([0-9.]+)"', SETUP)
    assert found is not None, package
    return numbers(found[1])


def numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def test_versions_agree() -> None:
    assert dls_ik.__version__ == CITATION["version"] == VERSION
    assert not re.search(r'version="', SETUP), "setup.py reads the version from package.xml"
    first = re.search(r"^(\S+) \(.*\)$", (ROOT / "CHANGELOG.rst").read_text(), re.MULTILINE)
    assert first is not None
    assert first[1] == VERSION


def test_the_changes_are_in_the_form_that_ros_tools_read() -> None:
    changelog = pytest.importorskip("catkin_pkg.changelog", reason="needs catkin_pkg")
    found = changelog.get_changelog_from_path(str(ROOT), package_name="dls_ik")
    assert [version for version, _, _ in found.foreach_version()] == [VERSION]


def test_papers_are_cited_as_on_the_page_of_references() -> None:
    lines = (ROOT / "docs" / "references.md").read_text().splitlines()
    papers = CITATION["references"]
    assert len(papers) == 5
    for paper in papers:
        names = [author["family-names"] for author in paper["authors"]]
        (row,) = (line for line in lines if line.startswith(f"| {' & '.join(names)} "))
        assert str(paper["year"]) in row
        assert paper["title"].lower() in row.lower()


def test_pythons_agree() -> None:
    pythons = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', SETUP)
    assert f'python_requires=">={pythons[0]}"' in SETUP
    target = f'target-version = "py{pythons[0].replace(".", "")}"'
    assert target in (ROOT / "pyproject.toml").read_text()


def test_an_older_numba_is_warned_of() -> None:
    assert lower_bound("numba") == OLDEST_NUMBA
