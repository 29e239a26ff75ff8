# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Each notebook runs, says what is kept in it, and shows its pictures without a magic line."""

import importlib.util
import shutil

import pytest
from robots import ROOT

nbformat = pytest.importorskip("nbformat", reason="needs the extra notebook")
pytest.importorskip("nbclient", reason="needs the extra notebook")
pytest.importorskip("ipykernel", reason="needs the extra notebook")
pytest.importorskip("matplotlib", reason="matplotlib is not installed")

NOTEBOOKS = ROOT / "examples" / "notebooks"
NAMES = sorted(path.name for path in NOTEBOOKS.glob("*.ipynb"))
LARGEST = 300_000  # bytes


def runner():
    """docs/make_notebooks.py, which is no module of the package."""
    path = ROOT / "docs" / "make_notebooks.py"
    spec = importlib.util.spec_from_file_location("make_notebooks", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def printed(notebook):
    """What each cell prints; times are in results only."""
    return [
        [output.text for output in cell.get("outputs", ()) if output.output_type == "stream"]
        for cell in notebook.cells
    ]


def pictures(notebook):
    """How many pictures each cell shows."""
    return [
        sum("image/png" in output.get("data", {}) for output in cell.get("outputs", ()))
        for cell in notebook.cells
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_runs_and_shows_what_is_kept_in_it(name, tmp_path):
    shutil.copy(NOTEBOOKS / name, tmp_path / name)
    done = runner().run(tmp_path / name)
    kept = nbformat.read(NOTEBOOKS / name, as_version=4)
    assert printed(done) == printed(kept)
    assert pictures(done) == pictures(kept)
    assert sum(pictures(kept)) >= 2
    assert done.metadata == kept.metadata


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_small_has_exercises_and_no_magic(name):
    path = NOTEBOOKS / name
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert path.stat().st_size < LARGEST
    text = "\n".join(cell.source for cell in notebook.cells)
    assert "\n%" not in text
    assert "## Exercises" in text
    assert "## Solutions" in text
    assert f"[{name}](notebooks/{name})" in (ROOT / "examples" / "README.md").read_text()


def test_answers_are_not_drawn_as_a_motion():
    notebook = nbformat.read(NOTEBOOKS / "01_first_solve.ipynb", as_version=4)
    cell = next(cell.source for cell in notebook.cells if "solve_all(" in cell.source)
    assert "configurations(" in cell
    assert "stroboscope" not in cell
