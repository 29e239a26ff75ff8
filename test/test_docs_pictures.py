# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Pictures that scripts draw for docs/: there, small, and the same whenever they are drawn."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from programs import run_python
from robots import ROOT

pytest.importorskip("matplotlib")

DOCS = ROOT / "docs"
PAGES = "".join((DOCS / page).read_text() for page in ("concepts.md", "collisions.md"))
SHOWN = re.findall(r"\]\(images/(concept_\w+\.png)\)", PAGES)
LARGEST = 120_000  # bytes
AGAIN = ("restarts", "singular", "spheres")  # drawn twice: threads and random numbers, text, meshes
Files = dict[str, bytes]  # content by name


def draw(folder: Path, script: str = "make_concepts.py", names: Sequence[str] = ()) -> Files:
    folder.mkdir()
    done = run_python(DOCS / script, folder, *names)
    assert done.returncode == 0, done.stderr
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.mark.slow
def test_pictures_are_the_same_whenever_they_are_drawn_and_small(tmp_path: Path) -> None:
    first = draw(tmp_path / "first")
    assert sorted(first) == sorted(SHOWN)
    again = draw(tmp_path / "second", names=AGAIN)
    assert again == {name: first[name] for name in again}
    assert len(again) == len(AGAIN)
    for name in SHOWN:
        picture = (DOCS / "images" / name).read_bytes()
        assert picture.startswith(b"\x89PNG")
        assert len(picture) < LARGEST


def test_diagrams_are_those_of_the_script(tmp_path: Path) -> None:
    for name, drawn in draw(tmp_path / "drawn", "make_diagrams.py").items():
        assert (DOCS / "images" / name).read_bytes() == drawn, name
        assert f"](images/{name})" in (DOCS / "architecture.md").read_text()
