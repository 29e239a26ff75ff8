# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""scripts/shape: files that git neither tracks nor ignores, and kernels with many parameters."""

import ast
import shutil
import subprocess
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "shape"


@pytest.fixture
def shape(monkeypatch):
    monkeypatch.setattr("sys.dont_write_bytecode", True)  # next to the script
    loader = SourceFileLoader("shape", str(SCRIPT))
    module = module_from_spec(spec_from_loader("shape", loader))
    loader.exec_module(module)
    return module


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_untracked_files_at_the_top_level_are_found(shape, tmp_path, monkeypatch):
    monkeypatch.setattr(shape, "ROOT", tmp_path)
    (tmp_path / "folder").mkdir()
    for name in ("tracked", "ignored", "picture.png", "folder/tracked", "folder/new"):
        (tmp_path / name).touch()
    (tmp_path / ".gitignore").write_text("ignored\n")
    assert shape.untracked() == []  # no repository
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    subprocess.run(
        ["git", "add", "tracked", "folder/tracked", ".gitignore"], cwd=tmp_path, check=True
    )
    assert shape.untracked() == ["picture.png"]
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "table.csv").touch()
    assert shape.untracked() == ["picture.png", "results/"]


def test_kernels_with_more_than_eight_parameters_are_found(shape):
    names = list("abcdefghi")
    sources = [
        f"@{decorator}\ndef {name}({', '.join(arguments)}): pass\n"
        for name, decorator, arguments in (
            ("nine", "kernel", names),
            ("keyword_only", "strict_fp", [*names[:8], "*", "i"]),
            ("eight", "force_inline", names[:8]),
            ("plain", "cache", names),
        )
    ]
    tree = ast.parse("".join(sources))
    assert list(shape.long_kernels("m", tree)) == ["m.nine: 9", "m.keyword_only: 9"]
