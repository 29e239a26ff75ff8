# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The table of the layers in docs/architecture.md is the one of the import contracts."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "layers.py"
SPEC = importlib.util.spec_from_file_location("layers", SCRIPT)
layers = importlib.util.module_from_spec(SPEC)
sys.modules[SPEC.name] = layers
SPEC.loader.exec_module(layers)
del sys.modules[SPEC.name]

CONTRACTS = """
[[tool.importlinter.contracts]]
name = "Order"
type = "layers"
containers = ["tried"]
layers = ["(page) : (command)", "(maps) | (tables)", "core"]

[[tool.importlinter.contracts]]
name = "Core is plain"
type = "forbidden"
source_modules = ["tried.core"]
"""
ROWS = [
    "| `core` | Kernels: `numpy` only | no other layer | Core is plain |",
    "| `maps` | Text of maps | `core` |  |",
    "| `tables` | Text of tables | `core` |  |",
    "| `page` | Text of page | `command`, `maps`, `tables` and lower layers |  |",
    "| `command` | Text of command | `page`, `maps`, `tables` and lower layers |  |",
]


def test_the_page_has_the_table_of_the_contracts():
    page = (ROOT / layers.PAGE).read_text()
    assert layers.replaced(page, layers.table(ROOT)) == page


def test_the_check_passes_on_this_tree():
    done = subprocess.run([sys.executable, SCRIPT, "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_rows_follow_the_contracts_and_the_docstrings(tmp_path):
    (tmp_path / "pyproject.toml").write_text(CONTRACTS)
    package = tmp_path / "tried"
    (package / "core").mkdir(parents=True)
    (package / "core" / "__init__.py").write_text('"""Kernels: ``numpy``\nonly. No ROS."""\n')
    for name in ("maps", "tables", "page", "command"):
        (package / f"{name}.py").write_text(f'"""Text of {name}."""\n')
    assert layers.table(tmp_path).splitlines()[2:] == ROWS


def test_a_page_without_markers_is_an_error():
    with pytest.raises(ValueError, match="lacks the line <!-- layers"):
        layers.replaced("text\n", "")
    with pytest.raises(ValueError, match="lacks the line <!-- end"):
        layers.replaced(layers.START, "")
