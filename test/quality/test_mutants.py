from pathlib import Path

import pytest

from quality.covering import mode

pytest.importorskip("cosmic_ray")
from quality.mutants import LEFT_OUT, changed_lines, mutants

ROOT = Path(__file__).parents[2]


def test_each_mutant_is_another_program():
    path = "dls_ik/core/error_clamping.py"
    right = (ROOT / path).read_text()
    wrong = [mutant.code(ROOT) for mutant in mutants(ROOT, path)]
    assert len(wrong) > 20
    assert right not in wrong
    for mutant, code in zip(mutants(ROOT, path), wrong, strict=True):
        compile(code, path, "exec")
        old, new = changed_lines(right, code)
        assert old != new
        assert old in right.splitlines()[mutant.line - 1]


def test_what_is_left_out_is_there():
    assert all((ROOT / path).is_file() for path in LEFT_OUT)
    assert all(mutants(ROOT, path) == [] for path in LEFT_OUT)


def test_kernels_are_run_as_plain_python():
    assert mode("dls_ik/core/error_clamping.py") == "plain"
    assert mode("dls_ik/solver/solver.py") == "compiled"
