# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""What several files say about the version, and about what the package runs with, agrees."""

from __future__ import annotations

import ast
import re
import shutil
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import yaml

import dls_ik
from dls_ik.solver import MIN_NUMBA

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
    assert re.findall(r'version="(.*)",', SETUP) == [VERSION]
    first = re.search(r"^(\S+) \(.*\)$", (ROOT / "CHANGELOG.rst").read_text(), re.MULTILINE)
    assert first is not None
    assert first[1] == VERSION


def test_catkin_prepare_release_sets_the_next_version(tmp_path: Path) -> None:
    """As ``catkin_prepare_release`` does, without git and without the questions that it asks."""
    version = pytest.importorskip("catkin_pkg.package_version", reason="needs catkin_pkg")
    packages = pytest.importorskip("catkin_pkg.packages")
    for name in ("package.xml", "setup.py"):
        shutil.copy(ROOT / name, tmp_path)
    (found,) = packages.find_packages(str(tmp_path)).values()
    following = version.bump_version(found.version, "minor")
    version.update_versions({str(tmp_path): found}, following)
    assert ET.parse(tmp_path / "package.xml").findtext("version") == following
    assert f'version="{following}",' in (tmp_path / "setup.py").read_text()


def imported_names(folder: Path) -> set[str]:
    """The top-level names of everything that the files of a folder import, lazily too."""
    names = set()
    for source in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(source.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                names.add(node.module.partition(".")[0])
    return names - {"dls_ik"} - set(sys.stdlib_module_names)


# Packages of rosdep and of PyPI whose names differ from those that are imported.
ROSDEP_NAMES = {
    "PyKDL": "python_orocos_kdl_vendor",
    "urdf_parser_py": "urdfdom_py",
}
WITH_ANOTHER = {
    "PIL": "matplotlib",
    "distributed": "dask",
    "llvmlite": "numba",
    "mpl_toolkits": "matplotlib",
    "trimesh": "yourdfpy",
    "typing_extensions": "mypy",  # imported for type checkers only
    "websockets": "viser",
}


def test_package_xml_declares_all_that_is_imported() -> None:
    package = ET.parse(ROOT / "package.xml").getroot()
    declared = {each.text for tag in ("depend", "exec_depend") for each in package.iter(tag)}
    optional = set(re.findall(r'"([a-z_]+)(?:\[\w+\])?>=', SETUP)) | {"mypy"}
    missing = []
    for name in sorted(imported_names(ROOT / "dls_ik") | imported_names(ROOT / "launch")):
        name = WITH_ANOTHER.get(name, name)
        known = {name, f"python3-{name}", ROSDEP_NAMES.get(name)}
        if not known & declared and name not in optional:
            missing.append(name)
    assert missing == []


def test_the_extra_for_ros_installs_the_message_packages_that_are_imported() -> None:
    """Except those that rclpy brings, and those that only underlay/ builds."""
    messages = {
        name
        for name in imported_names(ROOT / "dls_ik")
        if re.search(r"_(msgs|srvs|interfaces)$", name)
    }
    needed = messages - {"builtin_interfaces", "rcl_interfaces", "moveit_msgs", "control_msgs"}
    assert needed == {name.replace("-", "_") for name in re.findall(r'"ros-([a-z-]+)",', SETUP)}


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


def test_minimum_python_version_is_the_same_in_all_files() -> None:
    pythons = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', SETUP)
    assert f'python_requires=">={pythons[0]}"' in SETUP
    target = f'target-version = "py{pythons[0].replace(".", "")}"'
    assert target in (ROOT / "pyproject.toml").read_text()


def test_minimum_numba_version_matches_setup() -> None:
    assert lower_bound("numba") == MIN_NUMBA
