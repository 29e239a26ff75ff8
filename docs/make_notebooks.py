# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Run the notebooks of examples/, and keep them with their outputs: python docs/make_notebooks.py.

A reader on a forge sees the pictures; the test suite runs the notebooks and compares what they say.
Pictures with sliders are kept as static pictures, because sliders need a running kernel.
"""

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).resolve().parents[1] / "examples" / "notebooks"
WIDGET = "application/vnd.jupyter.widget-view+json"  # type of an output with sliders
TIMEOUT = 300  # [s] for a cell, whose kernels may have to be compiled


def execute(path: Path) -> nbformat.NotebookNode:
    """Run a notebook in its own folder, and return it with its outputs.

    Raises:
        nbclient.exceptions.CellExecutionError: If a cell fails.
    """
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=TIMEOUT,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(path.parent)}},
    )
    client.execute()
    # Remove the parts that depend on the machine.
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return notebook


def static(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Remove sliders from the outputs of a notebook; their static pictures stay."""
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            output.get("data", {}).pop(WIDGET, None)
    return notebook


def main(names: list[str]) -> None:
    """Run all notebooks, or those that are named."""
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        if not names or path.name in names:
            nbformat.write(static(execute(path)), path)
            sys.stdout.write(f"{path.name}: {path.stat().st_size / 1e3:.0f} kB\n")


if __name__ == "__main__":
    main(sys.argv[1:])
