# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""scripts/wording.py: what it finds in docstrings and comments."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "wording.py"
GOOD = '''
"""Poses of a robot."""

MAX_STEPS = 3  # restarts count too; [s] would be wrong
TIMEOUT = 0.5  # [s] time until an answer
# A comment of two lines
# with a second line.


def solve(T):
    """Solve for a pose.

    Raises:
        PoseError: If the pose is not valid, at least for a tip.
        np.linalg.LinAlgError: If the matrix is singular.

    Returns:
        The path to the pose.
    """
'''
BAD = {
    "Raises entry without If": (
        'def f():\n    """Solve.\n\n    Raises:\n        E: for a pose.\n    """'
    ),
    "docstring begins with Let, Begin or Have": 'def f():\n    """Let it go."""',
    "comment is a fragment": "x = 1  # [s] of a cycle",
    "word with another term": "x = 1  # the nearer pair",
}


@pytest.fixture
def wording(monkeypatch):
    monkeypatch.setattr("sys.dont_write_bytecode", True)  # next to the script
    spec = spec_from_file_location("wording", SCRIPT)
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "wording", module)
    spec.loader.exec_module(module)
    return module


def kinds(wording, tmp_path, text):
    file = tmp_path / "module.py"
    file.write_text(text)
    return [each.kind for each in wording.findings(file)]


def test_plain_docstrings_and_comments_pass(wording, tmp_path):
    assert kinds(wording, tmp_path, GOOD) == []


@pytest.mark.parametrize("kind", BAD)
def test_each_kind_of_bad_wording_is_found(wording, tmp_path, kind):
    assert kinds(wording, tmp_path, BAD[kind]) == [kind]


@pytest.mark.parametrize("text", ["(n,) of all joints", "(b, n) [rad] by pose", "what is solved"])
def test_fragments_are_found_after_shapes_and_units(wording, tmp_path, text):
    assert kinds(wording, tmp_path, f"x = 1  # {text}") == ["comment is a fragment"]


def test_constants_with_one_name_and_several_values_are_found(wording, tmp_path, monkeypatch):
    monkeypatch.setattr(wording, "ROOT", tmp_path)
    (tmp_path / wording.PACKAGE).mkdir()
    for name, text in {"a": "A, B = 1, 2\nC = 3", "b": "A, B = 1, 2\nC = 4"}.items():
        (tmp_path / wording.PACKAGE / f"{name}.py").write_text(text)
    assert [each.text.partition(":")[0] for each in wording.several_values()] == ["C"]
