"""docs/pictures.md: its lines make its pictures, and it leaves no function out."""

import os
import re
import subprocess
import sys

import pytest
from robots import ROOT

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
pytest.importorskip("PIL", reason="Pillow is not installed")

from dls_ik import plot

PAGE = (ROOT / "docs" / "pictures.md").read_text()
SHOWN = re.findall(r"^!\[.+\]\(images/(.+)\)$", PAGE, flags=re.MULTILINE)
MOST = 150_000  # bytes


def test_snippets_make_the_pictures(tmp_path):
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "make_pictures.py"), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(SHOWN)
    for path in tmp_path.iterdir():
        assert path.read_bytes().startswith(b"\x89PNG")
        assert path.stat().st_size < MOST


@pytest.mark.parametrize("name", SHOWN)
def test_pictures_of_the_page_are_there_and_small(name):
    assert 5_000 < (ROOT / "docs" / "images" / name).stat().st_size < MOST


def test_no_function_is_left_out():
    drawing = set(plot.__all__) - {"check_picture", "save_picture"}
    assert drawing <= set(re.findall(r"^figure = (\w+)\(", PAGE, flags=re.MULTILINE))
