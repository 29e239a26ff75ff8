"""What the package says about itself agrees with itself, and imports keep to their layer."""

from __future__ import annotations

import ast
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "dls_ik"
SOURCES = sorted(PACKAGE.rglob("*.py"))
ROS_PACKAGES = {"rclpy", "launch", "launch_ros", "tf2_ros", "ament_index_python"}


def imported_packages(source: Path) -> Iterator[str]:
    """Yield the top-level name of everything that a file imports."""
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.partition(".")[0]


def test_package_xml_is_an_ament_python_package() -> None:
    package = ET.parse(ROOT / "package.xml").getroot()
    assert package.get("format") == "3"
    assert package.findtext("export/build_type") == "ament_python"
    assert (ROOT / "resource" / str(package.findtext("name"))).is_file()


@pytest.mark.parametrize("source", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_source_is_ascii(source: Path) -> None:
    assert source.read_bytes().isascii()


def test_kernels_import_numpy_and_numba_only() -> None:
    allowed = {"numpy", "numba", "dls_ik"} | set(sys.stdlib_module_names)
    for source in (PACKAGE / "core").rglob("*.py"):
        assert set(imported_packages(source)) <= allowed, source


def test_only_the_ros_package_imports_ros() -> None:
    for source in SOURCES:
        if PACKAGE / "ros" in source.parents:
            continue
        names = set(imported_packages(source))
        ros = {name for name in names if name in ROS_PACKAGES or name.endswith("_msgs")}
        assert not ros, source
