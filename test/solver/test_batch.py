# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Batches: rows are independent, any memory layout is accepted, arrays are not copied."""

import os
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from solve_cases import WAM, drawn

from dls_ik import IkBatchResult, IkResult, IkSolver, Status
from dls_ik.errors import JointValueError, PoseError
from dls_ik.solver.poses import batch_poses

SOLVER = IkSolver(WAM, max_restarts=100)


def tasks(count, seed=1):
    rng = np.random.default_rng(seed)
    Ts, seeds = WAM.fk(WAM.random(count, rng)), WAM.random(count, rng)
    Ts[::7, 0, 3] += 3.0  # some are out of reach
    return Ts, seeds


def assert_same(one, other, rows=slice(None)):
    for name in ("success", "status", "q", "position_error", "rotation_error", "iterations",
                 "restarts"):  # fmt: skip
        np.testing.assert_array_equal(getattr(one, name)[rows], getattr(other, name)[rows], name)


@pytest.mark.parametrize("method", ["auto", "ed", "svf+sd", "jc", "ctp+sd+svf"])
def test_a_batch_equals_single_solves(method):
    solver = IkSolver(WAM, method, max_restarts=5)
    Ts, seeds = tasks(40)
    inexact = Ts[::3, :3, :3]
    inexact += np.random.default_rng(3).uniform(-1e-5, 1e-5, inexact.shape)
    batch = solver.solve_batch(Ts, seeds)
    assert len(batch) == 40
    assert len(set(batch.status.tolist())) > 1
    for i, (T, seed) in enumerate(zip(Ts, seeds, strict=True)):
        alone = solver.solve(T, seed, timeout=3600.0)
        np.testing.assert_array_equal(batch.q[i], alone.q)
        assert batch[i][:2] == alone[:2]
        assert batch[i][3:7] == alone[3:7]
        assert alone.duration > 0.0


def test_single_seed_applies_to_all_poses_and_no_seed_means_mid_range():
    Ts, seeds = tasks(20)
    every = SOLVER.solve_batch(Ts, np.tile(seeds[0], (20, 1)))
    assert_same(SOLVER.solve_batch(Ts, seeds[0]), every)
    assert_same(SOLVER.solve_batch(Ts, seeds[:1].ravel().tolist()), every)
    middle, published = 0.5 * (WAM.lower + WAM.upper), IkSolver(WAM, "ed")
    assert_same(published.solve_batch(Ts), published.solve_batch(Ts, middle))


def test_empty_batch_gives_an_empty_result():
    for Ts, seeds in ((np.empty((0, 4, 4)), None), (np.empty((0, 4, 4)), np.empty((0, 7)))):
        result = SOLVER.solve_batch(Ts, seeds)
        assert len(result) == 0
        assert list(result) == []
        assert result.q.shape == (0, 7)


def test_a_row_is_selected_by_its_index():
    Ts, seeds = tasks(5)
    batch = SOLVER.solve_batch(Ts, seeds)
    rows = list(batch)
    assert len(rows) == 5
    for i, row in enumerate(rows):
        assert isinstance(row, IkResult)
        assert isinstance(row.status, Status)
        assert (row.success, row.status) == (batch.success[i], batch.status[i])
        assert row.duration == batch.duration / 5
    np.testing.assert_array_equal(batch[-1].q, batch.q[4])
    with pytest.raises(IndexError):
        batch[5]
    assert isinstance(batch, IkBatchResult)


BAD_ROWS = {
    "nan": (0, 3, np.nan),
    "nan in the rotation": (2, 2, np.nan),
    "inf": (1, 3, -np.inf),
    "far": (1, 3, 1e12),
    "last row": (3, 3, 0.5),
    "no rotation": (0, 0, 5.0),
}


def test_invalid_rows_fail_alone():
    Ts, seeds = tasks(30)
    clean, rows = SOLVER.solve_batch(Ts, seeds), [0, *range(4, 16, 2), 20, 29]
    for row, (i, j, value) in zip(rows[1:7], BAD_ROWS.values(), strict=True):
        Ts[row, i, j] = value
    seeds[[0, 20, 29], 3] = np.nan, np.inf, -np.inf
    result = SOLVER.solve_batch(Ts, seeds)
    assert_same(result, clean, np.delete(np.arange(30), rows))
    assert np.flatnonzero(result.status == Status.REFUSED).tolist() == rows
    assert not result.success[rows].any()
    assert np.isnan(result.q[rows]).all()
    assert np.isnan(result.position_error[rows]).all()
    assert np.isnan(result.rotation_error[rows]).all()
    assert (result.iterations[rows] == 0).all()
    assert (result.restarts[rows] == 0).all()


@pytest.mark.parametrize(
    "Ts", [np.eye(4), np.zeros((2, 3, 4)), np.zeros((2, 2, 4, 4)), [], 1.0, "poses", None,
           [[["a"] * 4] * 4], [np.eye(4), np.eye(3)]],
    ids=["one", "3x4", "4-d", "empty list", "number", "text", "none", "words", "ragged"],
)  # fmt: skip
def test_wrong_pose_shapes_are_refused(Ts):
    with pytest.raises(PoseError, match=r"\(b, 4, 4\)|pose \d of \d: a pose must be a 4x4 matrix"):
        SOLVER.solve_batch(Ts)


@pytest.mark.parametrize(
    "seeds", [np.zeros(6), np.zeros((5, 6)), np.zeros((4, 7)), np.zeros((6, 7)),
              np.zeros((1, 5, 7)), 0.0, "seeds", [["a"] * 7] * 5],
    ids=["short", "narrow", "few", "many", "3-d", "number", "text", "words"],
)  # fmt: skip
def test_wrong_seed_shapes_are_refused(seeds):
    with pytest.raises(JointValueError, match=r"seeds?"):
        SOLVER.solve_batch(tasks(5)[0], seeds)


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


def misaligned(array):
    raw = np.zeros(array.nbytes + 1, np.uint8)
    view = raw[1:].view(array.dtype).reshape(array.shape)
    view[...] = array
    return view


class ArraySubclass(np.ndarray):
    """Subclass of a NumPy array."""


LAYOUTS = {
    "as it is": lambda array: array,
    "read-only": read_only,
    "fortran": np.asfortranarray,
    "list": lambda array: array.tolist(),
    "list of arrays": list,
    "strided": lambda array: np.repeat(array, 2, axis=-1)[..., ::2],
    "every second": lambda array: np.repeat(array, 2, axis=0)[::2],
    "backwards": lambda array: array[::-1].copy()[::-1],
    "big endian": lambda array: array.astype(">f8"),
    "misaligned": misaligned,
    "object": lambda array: array.astype(object),
    "long double": lambda array: array.astype(np.longdouble),
    "subclass": lambda array: array.view(ArraySubclass),
    "masked": np.ma.array,
    "one broadcast": lambda array: np.broadcast_to(array[0], array.shape),
}


def answers_with_layout(layout):
    """Return the answers of solve_batch and solve to poses and seeds in a memory layout."""
    rng = np.random.default_rng(1)
    solver = IkSolver(WAM, max_restarts=100)
    Ts, seeds = WAM.fk(WAM.random(6, rng)), WAM.random(6, rng)
    given, given_seeds = LAYOUTS[layout](Ts), LAYOUTS[layout](seeds)
    return [
        solver.solve_batch(given, given_seeds).q,
        solver.solve_batch(given, given_seeds[0]).q,
        solver.solve_batch(given[:1], given_seeds[:1]).q,
        solver.solve_batch(given).q,
        solver.solve_path(given, given_seeds[0]).q,
        *(solver.solve(*task, 3600.0).q for task in zip(given, given_seeds, strict=True)),
    ]


@pytest.mark.parametrize("layout", [layout for layout in LAYOUTS if layout != "one broadcast"])
def test_the_memory_layout_does_not_change_the_answers(layout):
    for ours, expected in zip(
        answers_with_layout(layout), answers_with_layout("as it is"), strict=True
    ):
        np.testing.assert_array_equal(ours, expected)


def test_single_precision_poses_are_solved_as_given():
    rng = np.random.default_rng(2)
    solver = IkSolver(WAM, max_restarts=100)
    Ts = WAM.fk(WAM.random(6, rng)).astype(np.float32)
    seeds = WAM.random(6, rng).astype(np.float32)
    batch = solver.solve_batch(Ts, seeds)
    assert batch.success.all()
    np.testing.assert_array_equal(
        batch.q, solver.solve_batch(Ts.astype(float), seeds.astype(float)).q
    )


SIGNATURES = """
import test_batch
from dls_ik.core.search_rows import search_packed
for layout in test_batch.LAYOUTS:
    test_batch.answers_with_layout(layout)
print(len(search_packed.signatures))
"""


def test_no_layout_compiles_another_kernel():
    """A kernel compiled for another array type would delay the call as much as the first start."""
    result = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{SIGNATURES}"],
        env={**os.environ, "NUMBA_DISABLE_JIT": "0"},
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == ["1"]


FIELDS = ("success", "status", "q", "position_error", "rotation_error", "iterations", "restarts")


@pytest.mark.parametrize("layout", ["as it is", "read-only", "fortran", "misaligned"])
def test_given_arrays_are_not_changed(layout):
    Ts, _, seeds = drawn(WAM, 30)
    Ts[3, :3, :3] += 1e-5  # made exact in a copy
    Ts[7] = np.nan
    Ts, seeds = LAYOUTS[layout](Ts), LAYOUTS[layout](seeds)
    kept = np.array(Ts), np.array(seeds)
    for ask in (lambda: SOLVER.solve_batch(Ts, seeds, approximate=True),
                lambda: SOLVER.solve_batch(Ts, seeds, max_joint_change=0.01),
                lambda: SOLVER.solve_path(Ts, seeds[0])):  # fmt: skip
        ask()
        np.testing.assert_array_equal(Ts, kept[0])
        np.testing.assert_array_equal(seeds, kept[1])


@pytest.mark.parametrize("kind", [complex, "M8[s]", "m8[s]"])
def test_arrays_of_other_types_are_refused(kind):
    Ts = np.tile(np.eye(4), (2, 1, 1)).astype(kind)
    with pytest.raises(PoseError, match="numbers"):
        SOLVER.solve_batch(Ts)
    with pytest.raises(PoseError, match="numbers"):
        SOLVER.solve(Ts[0])
    with pytest.raises(JointValueError, match="numbers"):
        SOLVER.solve_batch(np.eye(4)[None], np.zeros(7).astype(kind))


def test_contiguous_arrays_are_not_copied():
    Ts = drawn(WAM, 10)[0]
    poses = batch_poses(Ts, 1)
    assert np.shares_memory(poses, Ts)
    assert poses.shape == (10, 1, 4, 4)
    assert np.shares_memory(batch_poses(np.stack([Ts, Ts], 1), 2)[0], poses) is False


def peak_bytes(call):
    """Return the peak allocation of NumPy and Python during a call, without kernel work space."""
    call()
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_is_proportional_to_the_answers():
    count = 6000
    q = WAM.random(count, np.random.default_rng(1))
    Ts = WAM.fk(q)
    peaks = [peak_bytes(lambda k=k: SOLVER.solve_batch(Ts[:k], q[:k])) for k in (count // 2, count)]
    answer = sum(getattr(SOLVER.solve_batch(Ts[:2], q[:2]), name).nbytes for name in FIELDS) / 2
    each = (peaks[1] - peaks[0]) / (count // 2)
    assert each < 2.0 * answer + 64
    assert each < Ts[0].nbytes + answer


def test_the_import_loads_no_heavy_modules():
    """Modules of threads, paths and tables are loaded with the first solver."""
    code = "import sys, dls_ik; print('numba' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == "False\n"
