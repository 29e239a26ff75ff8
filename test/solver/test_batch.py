"""Batches: every row as if it were alone, in any layout in memory, without copies."""

import os
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from wishes import WAM, drawn

from dls_ik import IkBatchResult, IkResult, IkSolver, Status
from dls_ik.errors import JointValueError, PoseError
from dls_ik.solver.poses import batch_poses

SOLVER = IkSolver(WAM, max_restarts=100)


def tasks(count, seed=1):
    rng = np.random.default_rng(seed)
    Ts, seeds = WAM.fk(WAM.random(rng, count)), WAM.random(rng, count)
    Ts[::7, 0, 3] += 3.0  # some out of reach
    return Ts, seeds


def assert_same(one, other, rows=slice(None)):
    for name in ("success", "status", "q", "position_error", "rotation_error", "iterations",
                 "restarts"):  # fmt: skip
        np.testing.assert_array_equal(getattr(one, name)[rows], getattr(other, name)[rows], name)


@pytest.mark.parametrize("method", ["auto", "ed", "svf+sd", "jc", "ctp+sd+svf"])
def test_is_a_loop_of_solve(method):
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


def test_one_seed_for_all_or_none():
    Ts, seeds = tasks(20)
    every = SOLVER.solve_batch(Ts, np.tile(seeds[0], (20, 1)))
    assert_same(SOLVER.solve_batch(Ts, seeds[0]), every)
    assert_same(SOLVER.solve_batch(Ts, seeds[:1].ravel().tolist()), every)
    middle, published = 0.5 * (WAM.lower + WAM.upper), IkSolver(WAM, "ed")
    assert_same(published.solve_batch(Ts), published.solve_batch(Ts, middle))


def test_empty():
    for Ts, seeds in ((np.empty((0, 4, 4)), None), (np.empty((0, 4, 4)), np.empty((0, 7)))):
        result = SOLVER.solve_batch(Ts, seeds)
        assert len(result) == 0
        assert list(result) == []
        assert result.q.shape == (0, 7)


def test_a_row_by_its_index():
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


def test_bad_poses_and_seeds_are_refused_and_their_neighbours_are_solved():
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
def test_other_shapes_of_poses_are_refused(Ts):
    with pytest.raises(PoseError, match=r"\(b, 4, 4\)|pose \d of \d: a pose is a 4x4 matrix"):
        SOLVER.solve_batch(Ts)


@pytest.mark.parametrize(
    "seeds", [np.zeros(6), np.zeros((5, 6)), np.zeros((4, 7)), np.zeros((6, 7)),
              np.zeros((1, 5, 7)), 0.0, "seeds", [["a"] * 7] * 5],
    ids=["short", "narrow", "few", "many", "3-d", "number", "text", "words"],
)  # fmt: skip
def test_other_shapes_of_seeds_are_refused(seeds):
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


class Named(np.ndarray):
    """An array of another class."""


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
    "subclass": lambda array: array.view(Named),
    "masked": np.ma.array,
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
        solver.solve_path(given, given_seeds[0]).q,
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


SIGNATURES = """
import test_batch
from dls_ik.core.search_rows import search_packed
for layout in test_batch.LAYOUTS:
    test_batch.solve_every_way(layout)
print(len(search_packed.signatures))
"""


def test_every_layout_runs_the_same_machine_code():
    """Another type of array would be compiled for, which takes as long as at the first start."""
    result = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{SIGNATURES}"],
        env={**os.environ, "NUMBA_DISABLE_JIT": "0"},
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == ["1"]


FIELDS = ("success", "status", "q", "position_error", "rotation_error", "iterations", "restarts")


@pytest.mark.parametrize("layout", ["as it is", "read-only", "fortran", "misaligned"])
def test_given_arrays_stay_as_they_are(layout):
    Ts, _, seeds = drawn(WAM, 30)
    Ts[3, :3, :3] += 1e-5  # made exact, in a copy
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
def test_what_are_no_real_numbers_is_refused(kind):
    Ts = np.tile(np.eye(4), (2, 1, 1)).astype(kind)
    with pytest.raises(PoseError, match="numbers"):
        SOLVER.solve_batch(Ts)
    with pytest.raises(PoseError, match="numbers"):
        SOLVER.solve(Ts[0])
    with pytest.raises(JointValueError, match="numbers"):
        SOLVER.solve_batch(np.eye(4)[None], np.zeros(7).astype(kind))


def test_arrays_as_kernels_take_them_are_not_copied():
    Ts = drawn(WAM, 10)[0]
    poses = batch_poses(Ts, 1)
    assert np.shares_memory(poses, Ts)
    assert poses.shape == (10, 1, 4, 4)
    assert np.shares_memory(batch_poses(np.stack([Ts, Ts], 1), 2)[0], poses) is False


def peak_bytes(call):
    """What NumPy and Python allocate at most during a call, kernels' own scratch aside."""
    call()
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_grows_with_the_answers_alone():
    count = 6000
    q = WAM.random(np.random.default_rng(1), count)
    Ts = WAM.fk(q)
    peaks = [peak_bytes(lambda k=k: SOLVER.solve_batch(Ts[:k], q[:k])) for k in (count // 2, count)]
    answer = sum(getattr(SOLVER.solve_batch(Ts[:2], q[:2]), name).nbytes for name in FIELDS) / 2
    each = (peaks[1] - peaks[0]) / (count // 2)
    assert each < 2.0 * answer + 64
    assert each < Ts[0].nbytes + answer


def test_imports_stay_light():
    """Threads, paths and tables are not loaded before a solver is."""
    code = "import sys, dls_ik; print('numba' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == "False\n"
