"""Arrays in any memory layout: the same answers, from the same machine code."""

import os
import subprocess
import sys

import numpy as np
import pytest

from dls_ik import IkSolver, RobotModel

WAM = RobotModel.wam()


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


LAYOUTS = {
    "as it is": lambda array: array,
    "read-only": read_only,
    "fortran": np.asfortranarray,
    "list": lambda array: array.tolist(),
    "strided": lambda array: np.repeat(array, 2, axis=-1)[..., ::2],
    "every second": lambda array: np.repeat(array, 2, axis=0)[::2],
    "backwards": lambda array: array[::-1].copy()[::-1],
    "big endian": lambda array: array.astype(">f8"),
    "one broadcast": lambda array: np.broadcast_to(array[0], array.shape),
}


def solve_every_way(layout):
    """Answers of solve_batch and solve, with poses and seeds in a layout."""
    rng = np.random.default_rng(1)
    solver = IkSolver(WAM, max_restarts=100)
    Ts, seeds = WAM.fk(WAM.random(rng, 6)), WAM.random(rng, 6)
    given, given_seeds = LAYOUTS[layout](Ts), LAYOUTS[layout](seeds)
    return [
        solver.solve_batch(given, given_seeds).q,
        solver.solve_batch(given, given_seeds[0]).q,
        solver.solve_batch(given[:1], given_seeds[:1]).q,
        solver.solve_batch(given).q,
        *(solver.solve(*task, 3600.0).q for task in zip(given, given_seeds, strict=True)),
    ]


@pytest.mark.parametrize("layout", [layout for layout in LAYOUTS if layout != "one broadcast"])
def test_layout_makes_no_difference(layout):
    for ours, expected in zip(solve_every_way(layout), solve_every_way("as it is"), strict=True):
        np.testing.assert_array_equal(ours, expected)


def test_single_precision_is_taken_for_what_it_is():
    rng = np.random.default_rng(2)
    solver = IkSolver(WAM, max_restarts=100)
    Ts = WAM.fk(WAM.random(rng, 6)).astype(np.float32)
    seeds = WAM.random(rng, 6).astype(np.float32)
    batch = solver.solve_batch(Ts, seeds)
    assert batch.success.all()
    np.testing.assert_array_equal(
        batch.q, solver.solve_batch(Ts.astype(float), seeds.astype(float)).q
    )


COUNT = """
import test_layouts
from dls_ik.core.search_rows import search_packed
for layout in test_layouts.LAYOUTS:
    test_layouts.solve_every_way(layout)
print(len(search_packed.signatures))
"""


def test_every_layout_runs_the_same_machine_code():
    """Another type of array would be compiled for, which takes as long as at the first start."""
    result = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{COUNT}"],
        env={**os.environ, "NUMBA_DISABLE_JIT": "0"},
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == ["1"]
