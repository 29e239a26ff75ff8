"""Batches take arrays as they are: not modified, not copied where they need not be, any layout."""

import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from wishes import WAM, drawn

from dls_ik import IkSolver, Status
from dls_ik.errors import JointValueError, PoseError
from dls_ik.solver.batch import batch_poses

SOLVER = IkSolver(WAM, max_restarts=50)
FIELDS = ("success", "status", "q", "position_error", "rotation_error", "iterations", "restarts")


def assert_same(one, other):
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


def misaligned(array):
    raw = np.zeros(array.nbytes + 1, np.uint8)
    view = raw[1:].view(array.dtype).reshape(array.shape)
    view[...] = array
    return view


LAYOUTS = {
    "read-only": read_only,
    "Fortran": np.asfortranarray,
    "reversed twice": lambda array: array[::-1].copy()[::-1],
    "every other": lambda array: np.repeat(array, 2, axis=0)[::2],
    "list": lambda array: array.tolist(),
    "list of arrays": list,
    "big-endian": lambda array: array.astype(">f8"),
    "misaligned": misaligned,
    "object": lambda array: array.astype(object),
    "long double": lambda array: array.astype(np.longdouble),
    "subclass": lambda array: array.view(np.matrix.__mro__[1]).view(_Named),
    "masked": np.ma.array,
}


class _Named(np.ndarray):
    """An array of another class."""


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_make_no_difference(layout):
    Ts, _, seeds = drawn(WAM, 30)
    Ts[4, :3, 3] *= 9.0
    change, expected = LAYOUTS[layout], SOLVER.solve_batch(Ts, seeds)
    assert_same(SOLVER.solve_batch(change(Ts), change(seeds)), expected)
    path = SOLVER.solve_path(Ts, seeds[0])
    assert_same(SOLVER.solve_path(change(Ts), seeds[0].tolist()), path)


@pytest.mark.parametrize("layout", ["plain", "read-only", "Fortran", "misaligned"])
def test_given_arrays_stay_as_they_are(layout):
    Ts, _, seeds = drawn(WAM, 30)
    Ts[3, :3, :3] += 1e-5  # made exact, in a copy
    Ts[7] = np.nan
    change = LAYOUTS.get(layout, np.array)
    Ts, seeds = change(Ts), change(seeds)
    kept = np.array(Ts), np.array(seeds)
    for ask in (lambda: SOLVER.solve_batch(Ts, seeds, approximate=True),
                lambda: SOLVER.solve_batch(Ts, seeds, max_joint_change=0.01),
                lambda: SOLVER.solve_path(Ts, seeds[0])):  # fmt: skip
        ask()
        np.testing.assert_array_equal(Ts, kept[0])
        np.testing.assert_array_equal(seeds, kept[1])


def test_single_precision_is_made_exact():
    Ts, _, seeds = drawn(WAM, 30)
    result = SOLVER.solve_batch(Ts.astype(np.float32), seeds.astype(np.float32))
    assert result.success.all()
    assert result.q.dtype == np.float64
    for T, one in zip(Ts, result.q, strict=True):
        np.testing.assert_allclose(WAM.fk(one), T, atol=5e-6)


def test_whole_numbers():
    T = np.eye(4, dtype=int)
    assert SOLVER.solve_batch(T[None], np.zeros(7, int)).status.shape == (1,)


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
    count = 20_000
    q = WAM.random(np.random.default_rng(1), count)
    Ts = WAM.fk(q)
    peaks = [peak_bytes(lambda k=k: SOLVER.solve_batch(Ts[:k], q[:k])) for k in (count // 2, count)]
    answer = sum(getattr(SOLVER.solve_batch(Ts[:2], q[:2]), name).nbytes for name in FIELDS) / 2
    each = (peaks[1] - peaks[0]) / (count // 2)
    assert each < 2.0 * answer + 64
    assert each < Ts[0].nbytes + answer


def test_nothing_but_the_bad_rows_is_refused():
    Ts, _, seeds = drawn(WAM, 40)
    clean = SOLVER.solve_batch(Ts, seeds)
    bad = Ts.copy()
    bad[[3, 20, 39], [0, 1, 3], [3, 1, 0]] = np.nan, np.inf, 0.5
    result = SOLVER.solve_batch(bad, seeds, threads=3)
    refused = np.isin(np.arange(40), [3, 20, 39])
    np.testing.assert_array_equal(result.status == Status.REFUSED, refused)
    np.testing.assert_array_equal(result.q[~refused], clean.q[~refused])
    assert np.isnan(result.q[refused]).all()


def test_imports_stay_light():
    """Threads, paths and tables are not loaded before a solver is."""
    code = "import sys, dls_ik; print('numba' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == "False\n"
