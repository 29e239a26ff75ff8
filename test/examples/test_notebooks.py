# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Each notebook runs, says what is kept in it, and shows its pictures without a magic line."""

import importlib.util
import re
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

# Parts of a text whose numbers are no results: code, links, years, labels such as "joint 3",
# numbers of equations, sections and exercises.
NO_RESULTS = re.compile(
    r"`[^`]*`|\]\([^)]*\)|\b\d x \d\b|\b(?:19|20)\d\d\b|^#+ .*$|^\d+\. |\(\d+\)|theorem [\d.]+"
    r"|\b(?:[Ff]igures?|[Tt]ables?|[Nn]otebooks?|joints?|direction)\s\d+(?:(?:,| and| to)\s\d+)*",
    re.MULTILINE,
)
FORMULA = re.compile(r"\$\$.*?\$\$|\$[^$]*\$", re.DOTALL)
NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:e[-+]?\d+)?(?!\w)")
UNIT_FACTORS = {"mm": 1e3, "%": 1e2, "mrad": 1e3}
EXEMPT = {0.0, 1.0, 2.0}  # numbers of phrases such as "from 0 to 1"


def runner():
    """docs/make_notebooks.py, which is no module of the package."""
    path = ROOT / "docs" / "make_notebooks.py"
    spec = importlib.util.spec_from_file_location("make_notebooks", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def printed(notebook):
    """What each cell prints, without messages of the first start such as the compiler's."""
    return [
        [output.text for output in cell.get("outputs", ()) if output.get("name") == "stdout"]
        for cell in notebook.cells
    ]


def pictures(notebook):
    """How many pictures each cell shows."""
    return [
        sum("image/png" in output.get("data", {}) for output in cell.get("outputs", ()))
        for cell in notebook.cells
    ]


def widgets(notebook, view):
    """How many outputs have sliders."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    return sum(view in output.get("data", {}) for output in outputs)


def known_numbers(notebook):
    """Numbers in the code of a notebook and in what the code prints."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    texts = [cell.source for cell in code]
    texts += [
        output.text
        for cell in code
        for output in cell.get("outputs", ())
        if output.output_type == "stream"
    ]
    return {float(number) for text in texts for number in NUMBER.findall(text.replace("_", ""))}


def unknown_numbers(notebook):
    """Numbers in the texts of a notebook that the notebook neither sets nor computes.

    A number with decimals agrees with every number that it is rounded from. Of formulas only
    numbers with decimals count.
    """
    known, unknown = known_numbers(notebook), []
    for cell in notebook.cells:
        if cell.cell_type != "markdown":
            continue
        text = NO_RESULTS.sub(" ", cell.source)
        formulas = " ".join(FORMULA.findall(text))
        found = [(each, "") for each in NUMBER.findall(formulas) if "." in each]
        words = FORMULA.sub(" ", text)
        for match in NUMBER.finditer(words):
            unit = re.match(r"\s?(mm|mrad|%)?", words[match.end() :]).group(1) or ""
            found.append((match.group(), unit))
        for number, unit in found:
            digits = len(number.partition(".")[2])
            scales = {1.0, UNIT_FACTORS.get(unit, 1.0)}
            values = {scale * each for scale in scales for each in known}
            rounded = {round(each, digits) if digits else round(each, 9) for each in values}
            if float(number) not in EXEMPT | rounded:
                unknown.append(f"{number} {unit}".strip())
    return unknown


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_notebook_reproduces_its_stored_output(name, tmp_path):
    shutil.copy(NOTEBOOKS / name, tmp_path / name)
    make = runner()
    done = make.execute(tmp_path / name)
    kept = nbformat.read(NOTEBOOKS / name, as_version=4)
    sliders = sum(cell.source.count("\nwith_sliders(") for cell in kept.cells)
    has_sliders = importlib.util.find_spec("ipywidgets") is not None
    assert widgets(done, make.WIDGET) == sliders * has_sliders
    assert widgets(kept, make.WIDGET) == 0
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


def test_first_notebook_draws_solutions_as_configurations():
    notebook = nbformat.read(NOTEBOOKS / "01_first_solve.ipynb", as_version=4)
    cell = next(cell.source for cell in notebook.cells if "solve_all(" in cell.source)
    assert "configurations(" in cell
    assert "stroboscope" not in cell


@pytest.mark.parametrize("name", NAMES)
def test_numbers_in_the_texts_are_set_or_computed_in_the_notebook(name):
    assert unknown_numbers(nbformat.read(NOTEBOOKS / name, as_version=4)) == []


def test_a_wrong_number_in_a_text_is_found():
    output = nbformat.v4.new_output("stream", text="0.9348 m, 7 steps")
    cells = [
        nbformat.v4.new_code_cell("lambda_ = 0.1\nedge = 0.02", outputs=[output]),
        nbformat.v4.new_markdown_cell(
            "# 3. Kim 2004\nWith $\\lambda = 0.1$ joint 5 is 0.93 m off after 7 steps of 20 mm."
        ),
    ]
    notebook = nbformat.v4.new_notebook(cells=cells)
    assert unknown_numbers(notebook) == []
    cells[1].source = "With $\\lambda = 0.2$ the tip is 0.94 m off after 8 steps of 30 mm."
    assert unknown_numbers(notebook) == ["0.2", "0.94", "8", "30 mm"]
