"""Seeds and timeouts: what is refused, what is taken, and what stands in for none."""

import numpy as np
import pytest

from dls_ik import IkSolver, RobotModel
from dls_ik.errors import DlsIkError, JointValueError, OptionError

WAM = RobotModel.wam()
SOLVER = IkSolver(WAM, max_restarts=200)
Q = np.array([0.3, -0.5, 0.7, 1.2, -0.4, 0.6, 1.0])
GOOD = WAM.fk(Q)
SEED = np.linspace(-0.5, 0.5, 7)

BAD = {
    "short": np.zeros(6),
    "long": np.zeros(8),
    "nan": np.where(np.arange(7) == 3, np.nan, 0.0),
    "inf": np.where(np.arange(7) == 3, -np.inf, 0.0),
    "a row": np.zeros((1, 7)),
    "a column": np.zeros((7, 1)),
    "one number": 0.0,
    "empty": [],
    "text": "zero",
    "words": ["a"] * 7,
    "none inside": [None] * 7,
    "ragged": [[0.0], 1.0],
    "a dict": {},
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_seeds_are_refused(kind):
    with pytest.raises(JointValueError) as caught:
        SOLVER.solve(GOOD, BAD[kind])
    assert isinstance(caught.value, DlsIkError)


def test_the_joint_is_named():
    with pytest.raises(JointValueError, match=r"wam_j4.*nan"):
        SOLVER.solve(GOOD, BAD["nan"])
    with pytest.raises(JointValueError, match=r"7.*\(6,\)"):
        SOLVER.solve(GOOD, BAD["short"])


def read_only(seed):
    seed = seed.copy()
    seed.flags.writeable = False
    return seed


LAYOUTS = {
    "list": SEED.tolist(),
    "tuple": tuple(SEED),
    "read-only": read_only(SEED),
    "strided": np.repeat(SEED, 3)[::3],
    "backwards": SEED[::-1].copy()[::-1],
    "big endian": SEED.astype(">f8"),
    "column of a matrix": np.column_stack([SEED, SEED])[:, 0],
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layout_makes_no_difference(layout):
    expected = SOLVER.solve(GOOD, SEED, timeout=3600.0)
    result = SOLVER.solve(GOOD, LAYOUTS[layout], timeout=3600.0)
    assert expected.success
    np.testing.assert_array_equal(result.q, expected.q)


def test_single_precision():
    expected = SOLVER.solve(GOOD, SEED.astype(np.float32).astype(float), timeout=3600.0)
    result = SOLVER.solve(GOOD, SEED.astype(np.float32), timeout=3600.0)
    np.testing.assert_array_equal(result.q, expected.q)


def test_whole_numbers():
    assert SOLVER.solve(GOOD, [0, 0, 0, 1, 0, 0, 0], timeout=3600.0).success


@pytest.mark.parametrize("name", ["ed", "ctp+sd+svf"])
def test_without_a_seed_a_published_method_starts_mid_range(name):
    solver = IkSolver(WAM, name)
    expected = solver.solve(GOOD, 0.5 * (WAM.lower + WAM.upper), timeout=3600.0)
    np.testing.assert_array_equal(solver.solve(GOOD, timeout=3600.0).q, expected.q)


def test_without_a_seed_auto_starts_near_the_pose():
    Ts = WAM.fk(WAM.random(np.random.default_rng(5), 200))
    near, middle = SOLVER.solve_batch(Ts), SOLVER.solve_batch(Ts, 0.5 * (WAM.lower + WAM.upper))
    assert near.success.all()
    assert near.iterations.mean() < 0.8 * middle.iterations.mean()


@pytest.mark.parametrize("far", [0.1, 1.0, 10.0, 1e3, 1e9, 1e300])
def test_seeds_outside_the_limits_are_taken_and_the_answer_is_inside(far):
    rng = np.random.default_rng(1)
    for _ in range(20):
        seed = np.where(rng.random(7) < 0.5, WAM.lower - far, WAM.upper + far)
        result = SOLVER.solve(WAM.fk(WAM.random(rng)), seed, timeout=3600.0)
        assert result.success
        assert (result.q >= WAM.lower).all()
        assert (result.q <= WAM.upper).all()


@pytest.mark.parametrize("seed", [WAM.lower, WAM.upper, Q])
def test_seeds_at_a_limit_or_at_the_answer(seed):
    result = SOLVER.solve(WAM.fk(seed), seed, timeout=3600.0)
    assert (result.success, result.iterations, result.restarts) == (True, 0, 0)
    np.testing.assert_array_equal(result.q, seed)


@pytest.mark.parametrize("timeout", [-1.0, -1e-9, np.nan, np.inf, 1e9, "soon", [1.0], 1j])
def test_bad_timeouts_are_refused(timeout):
    with pytest.raises(OptionError, match="timeout"):
        SOLVER.solve(GOOD, SEED, timeout=timeout)


@pytest.mark.parametrize("timeout", [0, 0.0, 1e-9, 1, np.float64(0.5), np.float32(0.5), 3600])
def test_timeouts(timeout):
    result = SOLVER.solve(WAM.fk(SEED), SEED, timeout)
    assert result.success
