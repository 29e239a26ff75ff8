"""Poses: what is a pose in any memory layout, what is nearly one, what is none."""

import numpy as np
import pytest
from oracle import rigid, rotation

from dls_ik import IkSolver, RobotModel, Status
from dls_ik.errors import DlsIkError, PoseError
from dls_ik.solver.poses import validated_pose

WAM = RobotModel.wam()
SOLVER = IkSolver(WAM, max_restarts=200)
GOOD = WAM.fk([0.3, -0.5, 0.7, 1.2, -0.4, 0.6, 1.0])
SEED = np.full(7, 0.1)


def solve(T):
    return SOLVER.solve(T, SEED, timeout=3600.0)


def with_rotation(R):
    return rigid(R, GOOD[:3, 3])


def changed(*entries):
    T = GOOD.copy()
    for i, j, value in entries:
        T[i, j] = value
    return T


R = GOOD[:3, :3]
BAD = {
    "none": None,
    "text": "pose",
    "words": [["a"] * 4] * 4,
    "ragged": [[1.0, 0.0], [0.0]],
    "a dict": {"x": 1},
    "3x4": GOOD[:3],
    "3x3": R,
    "one number": 1.0,
    "a list of poses": [GOOD, GOOD],
    "16 numbers": GOOD.ravel(),
    "empty": np.empty((0, 4, 4)),
    "nan": changed((0, 3, np.nan)),
    "nan in the rotation": changed((1, 1, np.nan)),
    "nan in the last row": changed((3, 2, np.nan)),
    "inf": changed((2, 3, np.inf)),
    "minus inf": changed((0, 0, -np.inf)),
    "last row": changed((3, 0, 0.1)),
    "last entry": changed((3, 3, 2.0)),
    "transposed": GOOD.T.copy(),
    "zero": np.zeros((4, 4)),
    "scaled": with_rotation(1.01 * R),
    "shrunk": with_rotation(0.99 * R),
    "mirrored": with_rotation(R @ np.diag([1.0, 1.0, -1.0])),
    "point reflection": with_rotation(-R),
    "sheared": with_rotation(R @ (np.eye(3) + 0.01 * np.eye(3, k=1))),
    "flat": with_rotation(R @ np.diag([1.0, 1.0, 0.0])),
}


@pytest.mark.parametrize("kind", BAD)
def test_refused(kind):
    for check in (validated_pose, solve):
        with pytest.raises(PoseError) as caught:
            check(BAD[kind])
        assert isinstance(caught.value, DlsIkError)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("3x4", ["4x4", "(3, 4)"]),
        ("text", ["4x4", "'pose'"]),
        ("nan", ["finite", "nan"]),
        ("last row", ["(0, 0, 0, 1)", "0.1"]),
        ("mirrored", ["rotation"]),
        ("scaled", ["rotation"]),
    ],
)
def test_says_what_was_given_and_what_is_valid(kind, words):
    with pytest.raises(PoseError) as caught:
        solve(BAD[kind])
    assert [word for word in words if word not in str(caught.value)] == []


LAYOUTS = {
    "list": GOOD.tolist(),
    "tuple of rows": tuple(GOOD),
    "fortran": np.asfortranarray(GOOD),
    "strided": np.repeat(np.repeat(GOOD, 2, 0), 3, 1)[::2, ::3],
    "backwards": GOOD[::-1, ::-1].copy()[::-1, ::-1],
    "big endian": GOOD.astype(">f8"),
    "unaligned": np.frombuffer(b"x" + GOOD.tobytes(), np.uint8)[1:].view("f8").reshape(4, 4),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layout_makes_no_difference(layout):
    expected = solve(GOOD)
    assert expected.success
    np.testing.assert_array_equal(solve(LAYOUTS[layout]).q, expected.q)


def test_read_only():
    T = GOOD.copy()
    T.flags.writeable = False
    np.testing.assert_array_equal(solve(T).q, solve(GOOD).q)


@pytest.mark.parametrize("kind", [np.float32, np.float16, np.longdouble])
def test_other_precisions(kind):
    T = GOOD.astype(kind)
    result = solve(T)
    assert result.success
    np.testing.assert_allclose(WAM.fk(result.q), GOOD, atol=2e-3 if kind is np.float16 else 2e-6)


def test_whole_numbers():
    assert validated_pose(np.eye(4, dtype=int)).dtype == np.float64


def test_given_arrays_stay_as_they_are():
    T, seed = with_rotation(R + 1e-5), SEED.copy()
    kept = T.copy()
    SOLVER.solve(T, seed, timeout=3600.0)
    np.testing.assert_array_equal(T, kept)
    np.testing.assert_array_equal(seed, SEED)


@pytest.mark.parametrize("size", [1e-13, 1e-10, 1e-7, 1e-4])
def test_a_slightly_inexact_rotation_is_made_exact(size):
    noise = np.random.default_rng(1).uniform(-size, size, (3, 3))
    polished = validated_pose(with_rotation(R + noise))
    S = polished[:3, :3]
    np.testing.assert_allclose(S @ S.T, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(S, R, atol=3 * size)
    result = solve(with_rotation(R + noise))
    assert result.success
    np.testing.assert_allclose(WAM.fk(result.q)[:3, :3], S, atol=2e-6)


def test_the_nearest_rotation_is_taken():
    R_stretched = R @ np.diag([1.0002, 0.9999, 1.0])  # nearest to it, in the Frobenius norm: R
    np.testing.assert_allclose(validated_pose(with_rotation(R_stretched))[:3, :3], R, atol=1e-12)


def test_a_rotation_typed_with_four_digits():
    T = with_rotation(np.round(rotation([1, 2, 3], 0.7) @ R, 4))
    assert np.linalg.norm(validated_pose(T)[:3, :3] - T[:3, :3]) < 2e-4


@pytest.mark.parametrize("far", [1e3, 1e6, 1e9, -1e9])
def test_however_far_away_the_answer_is_finite(far):
    T = changed((0, 3, far))
    result = SOLVER.solve(T, SEED, timeout=3600.0)
    assert result.status is Status.UNREACHABLE
    assert WAM.within_limits(result.q)
    assert result.position_error == pytest.approx(abs(far), rel=0.01)


@pytest.mark.parametrize("far", [1.1e9, -1e10, 1e100, 1e200, 1e299, 1e305])
def test_beyond_any_robot_it_is_refused(far):
    with pytest.raises(PoseError, match=r"1e\+09 m"):
        solve(changed((1, 3, far)))


@pytest.mark.parametrize(
    ("T", "words"),
    [
        (with_rotation(1.01 * R), ["off by 0.02", "may be by 0.001", "scaled by 1.01"]),
        (with_rotation(R + 0.01), ["off by 0.", "may be by 0.001", "U @ Vt", "numpy.linalg.svd"]),
        (with_rotation(R @ np.diag([1.0, 1.0, -1.0])), ["mirrors", "sign of one of its columns"]),
        (GOOD.T.copy(), ["last row", "transposed?"]),
    ],
    ids=["scaled", "rough", "mirrored", "transposed"],
)
def test_what_is_no_rotation_is_told_how_to_be_one(T, words):
    with pytest.raises(PoseError) as caught:
        solve(T)
    assert [word for word in words if word not in str(caught.value)] == []


def test_the_way_told_to_mend_a_rotation_mends_it():
    rough = R + 0.01
    U, _, Vt = np.linalg.svd(rough)
    assert solve(with_rotation(U @ Vt))
