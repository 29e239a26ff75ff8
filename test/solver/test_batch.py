"""Batches: every row as if it were alone, whatever its neighbours or its layout in memory."""

import numpy as np
import pytest

from dls_ik import IkBatchResult, IkResult, IkSolver, RobotModel, Status
from dls_ik.errors import JointValueError, PoseError

WAM = RobotModel.wam()
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
    batch = solver.solve_batch(Ts, seeds)
    assert len(batch) == 40
    assert len(set(batch.status.tolist())) > 1
    for i, (T, seed) in enumerate(zip(Ts, seeds, strict=True)):
        alone = solver.solve(T, seed, timeout=3600.0)
        np.testing.assert_array_equal(batch.q[i], alone.q)
        assert batch[i][:2] == alone[:2]
        assert batch[i][3:7] == alone[3:7]


def test_more_rows_than_a_thread_takes_at_a_time():
    Ts, seeds = tasks(600)
    whole = SOLVER.solve_batch(Ts, seeds)
    for first in (0, 250, 590):
        rows = slice(first, first + 10)
        part = SOLVER.solve_batch(Ts[rows], seeds[rows])
        np.testing.assert_array_equal(part.q, whole.q[rows])


def test_order_of_rows_makes_no_difference():
    Ts, seeds = tasks(100)
    order = np.random.default_rng(2).permutation(100)
    mixed, plain = SOLVER.solve_batch(Ts[order], seeds[order]), SOLVER.solve_batch(Ts, seeds)
    np.testing.assert_array_equal(mixed.q, plain.q[order])


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


@pytest.mark.parametrize("kind", BAD_ROWS)
def test_a_bad_pose_is_refused_and_its_neighbours_are_solved(kind):
    Ts, seeds = tasks(30)
    clean = SOLVER.solve_batch(Ts, seeds)
    i, j, value = BAD_ROWS[kind]
    Ts[4, i, j] = Ts[29, i, j] = value
    result = SOLVER.solve_batch(Ts, seeds)
    check_refused(result, [4, 29])
    assert_same(result, clean, np.delete(np.arange(30), [4, 29]))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_bad_seed_is_refused_and_its_neighbours_are_solved(value):
    Ts, seeds = tasks(30)
    clean = SOLVER.solve_batch(Ts, seeds)
    seeds[[0, 11], 3] = value
    result = SOLVER.solve_batch(Ts, seeds)
    check_refused(result, [0, 11])
    assert_same(result, clean, np.delete(np.arange(30), [0, 11]))


def check_refused(result, rows):
    assert np.flatnonzero(result.status == Status.REFUSED).tolist() == rows
    assert not result.success[rows].any()
    assert np.isnan(result.q[rows]).all()
    assert np.isnan(result.position_error[rows]).all()
    assert np.isnan(result.rotation_error[rows]).all()
    assert (result.iterations[rows] == 0).all()
    assert (result.restarts[rows] == 0).all()


def test_every_row_bad():
    check_refused(SOLVER.solve_batch(np.full((3, 4, 4), np.nan)), [0, 1, 2])


def test_slightly_inexact_rotations_are_as_in_solve():
    Ts, seeds = tasks(20)
    Ts[::3, :3, :3] += np.random.default_rng(3).uniform(-1e-5, 1e-5, (7, 3, 3))
    batch = SOLVER.solve_batch(Ts, seeds)
    assert not (batch.status == Status.REFUSED).any()
    for T, seed, q in zip(Ts, seeds, batch.q, strict=True):
        np.testing.assert_array_equal(SOLVER.solve(T, seed, timeout=3600.0).q, q)


@pytest.mark.parametrize(
    "Ts", [np.eye(4), np.zeros((2, 3, 4)), np.zeros((2, 2, 4, 4)), [], 1.0, "poses", None,
           [[["a"] * 4] * 4], [np.eye(4), np.eye(3)]],
    ids=["one", "3x4", "4-d", "empty list", "number", "text", "none", "words", "ragged"],
)  # fmt: skip
def test_other_shapes_of_poses_are_refused(Ts):
    with pytest.raises(PoseError, match=r"\(b, 4, 4\)"):
        SOLVER.solve_batch(Ts)


@pytest.mark.parametrize(
    "seeds", [np.zeros(6), np.zeros((5, 6)), np.zeros((4, 7)), np.zeros((6, 7)),
              np.zeros((1, 5, 7)), 0.0, "seeds", [["a"] * 7] * 5],
    ids=["short", "narrow", "few", "many", "3-d", "number", "text", "words"],
)  # fmt: skip
def test_other_shapes_of_seeds_are_refused(seeds):
    with pytest.raises(JointValueError, match=r"seeds?"):
        SOLVER.solve_batch(tasks(5)[0], seeds)


def test_given_arrays_stay_as_they_are():
    Ts, seeds = tasks(10)
    Ts[3, :3, :3] += 1e-5
    kept = Ts.copy(), seeds.copy()
    SOLVER.solve_batch(Ts, seeds)
    np.testing.assert_array_equal(Ts, kept[0])
    np.testing.assert_array_equal(seeds, kept[1])
