"""What several files say about the version, and about what the package runs with, agrees."""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import yaml

import dls_ik

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

from install_matrix import arm, rows

from dls_ik.solver.compilation import OLDEST

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


def test_rows_of_the_matrix_are_the_pythons_of_the_metadata() -> None:
    classifiers = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', SETUP)
    assert list(rows.PYTHONS) == list(rows.OLDEST) == classifiers
    assert f'python_requires=">={rows.PYTHONS[0]}"' in SETUP
    assert set(rows.ROS_PYTHONS) == set(rows.PYTHONS)
    assert (
        f'target-version = "py{rows.PYTHONS[0].replace(".", "")}"'
        in (ROOT / "pyproject.toml").read_text()
    )


@pytest.mark.parametrize(("index", "package"), [(0, "numba"), (1, "numpy")])
def test_oldest_rows_have_the_oldest_that_the_metadata_allow(index: int, package: str) -> None:
    bound = lower_bound(package)
    oldest = [numbers(versions[index]) for versions in rows.OLDEST.values()]
    assert oldest[0][: len(bound)] == bound == min(oldest)[: len(bound)]
    assert oldest == sorted(oldest)


def test_an_older_numba_is_warned_of() -> None:
    assert lower_bound("numba") == OLDEST


def test_oldest_rows_have_the_oldest_of_the_other_packages_too() -> None:
    for requirement in rows.OLDEST_OTHERS:
        package, version = requirement.split("==")
        assert numbers(version)[: len(lower_bound(package))] == lower_bound(package)


def test_a_row_that_is_not_there_is_refused() -> None:
    assert [row.name for row in rows.chosen(["3.12-n", "jazzy"])][-1] == "ros-jazzy"
    with pytest.raises(ValueError, match=r"'2\.7'.*3\.10-oldest"):
        rows.chosen(["2.7"])


def test_kinematics_of_the_matrix_are_those_of_the_arm() -> None:
    """They were written down again to check the package's."""
    robot = dls_ik.RobotModel.from_name("wam")
    assert arm.fk(arm.TARGET) == pytest.approx(robot.fk(arm.TARGET), abs=1e-12)
    assert arm.objection(list(arm.TARGET)) == ""
    assert "pose is off" in arm.objection(list(arm.SEED))
    assert "limits" in arm.objection([9.0, *arm.TARGET[1:]])
    assert [list(pair) for pair in arm.LIMITS] == [
        [low, high] for low, high in zip(robot.lower, robot.upper, strict=True)
    ]
